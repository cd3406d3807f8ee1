import msgspec
import pytest
import report_samples as samples

from auditor.figures import EndpointRow, SeedDisagreementRow, Summary
from auditor.records import Adaptation
from auditor.report.endpoints import places, sent


def run(*rows: EndpointRow) -> Summary:
    return msgspec.structs.replace(samples.enforced(), endpoints=rows)


def row(**changes: object) -> EndpointRow:
    return msgspec.structs.replace(samples.endpoints()[0], **changes)


@pytest.mark.parametrize(
    ("adaptation", "told"),
    [
        (
            ("max_tokens", "24", "as max_completion_tokens", "why"),
            "max_tokens = 24 was sent as max_completion_tokens: why",
        ),
        (("seed", "0", "left out", "why"), "seed = 0 was left out: why"),
    ],
)
def test_an_adaptation_is_a_sentence(adaptation: tuple[str, str, str, str], told: str) -> None:
    """What was requested, what was sent, and in whose words why."""
    assert sent(Adaptation(*adaptation)) == told


def test_who_answered_is_counted() -> None:
    """Upstream providers and returned models come with their replies; without upstreams the dialect answers."""
    own, routed = places(run(*samples.endpoints()))
    assert (own.upstreams, own.models) == ("llamacpp", "smollm2-135m-instruct-q4_k_m (33,000 replies)")
    assert routed.upstreams == "DeepInfra (29,000 replies), Together (1 reply)"


def test_more_fingerprints_than_servers_are_a_change() -> None:
    """Two fingerprints of one server are a change; two of two servers, or of two upstream providers, are not."""
    assert places(run(row(fingerprints=2)))[0].changed
    assert not places(run(row(fingerprints=1)))[0].changed
    assert not places(run(row(fingerprints=2), row(fingerprints=2, server="http://127.0.0.1:8081/v1")))[0].changed
    assert not places(run(row(fingerprints=2, upstreams={"A": 1, "B": 1})))[0].changed
    assert places(run(row(fingerprints=0)))[0].fingerprints == ""


def test_an_ignored_seed_matters_with_several_seeds() -> None:
    """With one seed an ignored seed is told, with several it is a warning; an honoured one never is."""
    ignored = run(row(seed="ignored: the endpoint does not take one"))
    one_seed = msgspec.structs.replace(ignored, seed_disagreement=(SeedDisagreementRow("strict", "none", None, 0),))
    assert [place.seed_warning for place in places(ignored)] == [True]
    assert [place.seed_warning for place in places(one_seed)] == [False]
    assert [place.seed_warning for place in places(run(row()))] == [False]


def test_a_run_without_endpoints_has_no_places() -> None:
    """An imported run tells of no endpoint."""
    assert places(samples.realistic()) == ()
