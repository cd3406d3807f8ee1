"""Where a model is asked: URLs, keys, headers and query from name, environment or default, and no secret shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import msgspec
import pytest
from rich.pretty import pretty_repr
from samples import request

from auditor.endpoints import PROVIDERS, Endpoint, Place, places
from auditor.endpoints.transport import HttpReply
from auditor.errors import UsageError
from auditor.records import EndpointOptions

SECRET = "hunter2-hunter2"


def where(provider: str, url: str | None, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """Base URL and key of the one place there is."""
    (place,) = places(provider, "m", (url,) if url else (), environment=environment)
    return place.base_url, place.key


class Recording:
    """A transport that keeps what it was given."""

    def __init__(self) -> None:
        self.url = ""
        self.headers: dict[str, str] = {}
        self.body = b""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        self.url, self.headers, self.body = url, dict(headers), body
        return HttpReply(200, {}, b"{}")

    async def close(self) -> None:
        return


def sent(place: Place) -> Recording:
    """What goes over the wire to a place."""
    recording = Recording()
    asyncio.run(Endpoint(place, recording).attempt(request()))
    return recording


# Where ---------------------------------------------------------------------------------------------------------


def test_the_name_goes_over_the_environment_and_that_over_the_default() -> None:
    """`@base_url`, then the provider's variable, then its default; slashes and spaces at the end go."""
    environment = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": " http://proxy:1/v1/ "}
    assert where("openai", "http://named:2/v1/", environment) == ("http://named:2/v1", "sk-1")
    assert where("openai", None, environment) == ("http://proxy:1/v1", "sk-1")
    assert where("openai", None, {"OPENAI_API_KEY": "sk-1"}) == ("https://api.openai.com/v1", "sk-1")
    assert where("openai", None, {**environment, "OPENAI_BASE_URL": ""})[0] == "https://api.openai.com/v1"
    assert where("openrouter", None, {"OPENROUTER_API_KEY": "k"}) == ("https://openrouter.ai/api/v1", "k")
    assert where("llamacpp", None, {}) == ("http://127.0.0.1:8080/v1", None)
    assert where("vllm", None, {}) == ("http://127.0.0.1:8000/v1", None)
    assert where("vllm", None, {"VLLM_BASE_URL": "http://gpu:1/v1", "VLLM_API_KEY": "k"}) == ("http://gpu:1/v1", "k")
    assert where("compat", "https://[::1]:8000/v1", {}) == ("https://[::1]:8000/v1", None)


def test_several_urls_are_several_places_in_their_order() -> None:
    """Several `@url`, or a variable with commas or spaces between them; each place has the key."""
    one, two, three = "http://a:1/v1", "http://b:2/v1", "http://c:3/v1"
    named = places("vllm", "m", (one, f"{two}/"), environment={"VLLM_BASE_URL": three, "VLLM_API_KEY": "k"})
    assert [(place.base_url, place.key) for place in named] == [(one, "k"), (two, "k")]
    told = places("vllm", "m", environment={"VLLM_BASE_URL": f" {one}, {two},{three} "})
    assert [place.base_url for place in told] == [one, two, three]
    assert {(place.provider, place.model_id) for place in told} == {("vllm", "m")}
    assert len(places("vllm", "m", environment={"VLLM_BASE_URL": f"{one}\n{two}"})) == 2


def test_each_of_several_urls_is_checked() -> None:
    """The one at fault is named."""
    with pytest.raises(UsageError, match=r"'b:2/v1' of vllm is not http\(s\)"):
        places("vllm", "m", environment={"VLLM_BASE_URL": "http://a:1/v1,b:2/v1"})


@pytest.mark.parametrize(
    ("provider", "url", "environment", "message", "hint"),
    [
        ("openai", None, {}, "openai needs a key and OPENAI_API_KEY is not set", "export OPENAI_API_KEY=..."),
        ("openai", None, {"OPENAI_API_KEY": " \n"}, "openai needs a key and OPENAI_API_KEY is not set", "export"),
        ("openrouter", None, {}, "openrouter needs a key and OPENROUTER_API_KEY is not set", "export OPENROUTER"),
        ("compat", None, {}, "compat needs a base URL", "compat/<model>@http://host:8000/v1"),
        ("compact", None, {}, "unknown provider 'compact'", "did you mean compat"),
        ("llamcpp", None, {}, "unknown provider 'llamcpp'", "did you mean llamacpp"),
        ("zzz", None, {}, "unknown provider 'zzz'", "known: compat"),
        ("compat", "ftp://host/v1", {}, "'ftp://host/v1' of compat is not http(s)://", ""),
        ("compat", "host:8000/v1", {}, "'host:8000/v1' of compat is not http(s)://", ""),
        ("compat", "http:///v1", {}, "'http:///v1' of compat is not http(s)://", ""),
        ("compat", "http://[::1/v1", {}, "of compat is not http(s)://", ""),
        ("compat", "http://host:port/v1", {}, "of compat is not http(s)://", ""),
        ("compat", "http://host:99999/v1", {}, "of compat is not http(s)://", ""),
        ("compat", "http://u:hunter2@host/v1", {}, "the base URL of compat carries a password", "environment"),
        ("compat", "ftp://u:hunter2@host/v1", {}, "the base URL of compat carries a password", "environment"),
        ("compat", "http://u:hunter2@host:x/v1", {}, "of compat is not http(s)://", ""),
        ("compat", "http://host/v1?key=hunter2", {}, "the base URL of compat has a query", "[endpoint] takes a query"),
        ("openai", None, {"OPENAI_API_KEY": "sk-hunter2 # mine"}, "OPENAI_API_KEY holds a space", "the key alone"),
        ("openai", None, {"OPENAI_API_KEY": "sk-hunter2\nx"}, "OPENAI_API_KEY holds a space", "the key alone"),
        ("openai", None, {"OPENAI_API_KEY": "“sk-hunter2”"}, "OPENAI_API_KEY holds a space or a character", ""),
    ],
)
def test_what_cannot_be_is_said_in_one_line_without_secrets(
    provider: str, url: str | None, environment: dict[str, str], message: str, hint: str
) -> None:
    """The provider, the variable or the URL at fault, what to do, and never a password or a key."""
    with pytest.raises(UsageError) as caught:
        where(provider, url, environment)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "hunter2" not in caught.value.message + caught.value.hint
    assert "\n" not in caught.value.message


# Keys ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", sorted(PROVIDERS.keys() - {"openai"}))
def test_openais_key_goes_to_no_other_provider(provider: str) -> None:
    """A key in the environment is for its provider alone."""
    environment = {
        "OPENAI_API_KEY": SECRET,
        "OPENAI_BASE_URL": "http://theirs/v1",
        "OPENROUTER_API_KEY": "its-own",
    }
    (place,) = places(provider, "m", ("http://mine/v1",), environment=environment)
    assert place.key == ("its-own" if provider == "openrouter" else None)
    told = sent(place)
    assert SECRET not in repr(vars(told))
    assert told.url == "http://mine/v1/chat/completions"


def test_each_provider_has_a_key_of_its_own() -> None:
    """A server that wants one finds it in the provider's variable."""
    environment = {"AUDITOR_API_KEY": "k1", "VLLM_API_KEY": "k2", "LLAMACPP_API_KEY": "k3"}
    assert [where(name, "http://x/v1", environment)[1] for name in ("compat", "vllm", "llamacpp")] == ["k1", "k2", "k3"]


def test_a_key_may_end_with_a_newline() -> None:
    """As it does when it was read from a file."""
    assert where("openai", None, {"OPENAI_API_KEY": "sk-1\n"})[1] == "sk-1"


# What a gateway wants ------------------------------------------------------------------------------------------

GATEWAY = EndpointOptions(headers={"X-Team": "TEAM"}, query={"api-version": "VERSION"})


def test_headers_and_query_take_their_values_from_the_variables_named() -> None:
    """They go with every request, beside the key."""
    environment = {"TEAM": "blue\n", "VERSION": "2026-01+preview", "OPENAI_API_KEY": "sk-1"}
    (place,) = places("openai", "m", ("http://gw/v1",), GATEWAY, environment)
    told = sent(place)
    assert told.url == "http://gw/v1/chat/completions?api-version=2026-01%2Bpreview"
    assert (told.headers["X-Team"], told.headers["Authorization"]) == ("blue", "Bearer sk-1")


def test_the_key_can_travel_in_a_header_of_the_gateways_own() -> None:
    """Instead of Authorization, from the variable named, and never OpenAI's key beside it."""
    options = EndpointOptions(auth_header={"api-key": "GATEWAY_KEY"})
    environment = {"GATEWAY_KEY": "gw-1", "OPENAI_API_KEY": SECRET}
    (place,) = places("openai", "m", ("http://gw/v1",), options, environment)
    told = sent(place)
    assert told.headers["api-key"] == "gw-1"
    assert "Authorization" not in told.headers
    assert SECRET not in repr(vars(told))
    assert places("openai", "m", ("http://gw/v1",), options, {"GATEWAY_KEY": "gw-1"}) == (place,)


def test_where_the_study_sets_headers_a_missing_key_is_no_error() -> None:
    """A gateway may know its callers by a header alone; the provider's key still goes where it is set."""
    options = EndpointOptions(headers={"X-Pass": "PASS"})
    (place,) = places("openai", "m", ("http://gw/v1",), options, {"PASS": "p"})
    assert place.headers == {"X-Pass": "p"}
    (place,) = places("openai", "m", ("http://gw/v1",), options, {"PASS": "p", "OPENAI_API_KEY": "sk-1"})
    assert place.headers == {"X-Pass": "p", "Authorization": "Bearer sk-1"}


@pytest.mark.parametrize(
    "options",
    [
        EndpointOptions(headers={"X-Team": "TEAM_KEY"}),
        EndpointOptions(query={"code": "TEAM_KEY"}),
        EndpointOptions(auth_header={"api-key": "TEAM_KEY"}),
    ],
)
@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_variable_that_is_named_and_missing_is_told(options: EndpointOptions, value: str | None) -> None:
    """By its name, with what to do."""
    environment = {} if value is None else {"TEAM_KEY": value}
    with pytest.raises(UsageError, match="wants the variable TEAM_KEY, which is not set") as caught:
        places("compat", "m", ("http://gw/v1",), options, environment)
    assert caught.value.hint == "export TEAM_KEY=..."


def test_a_value_that_no_header_can_carry_is_refused_unseen() -> None:
    """The variable is named, its value is not."""
    with pytest.raises(UsageError, match="TEAM holds a space or a character outside ASCII") as caught:
        places("compat", "m", ("http://gw/v1",), GATEWAY, {"TEAM": f"{SECRET} x", "VERSION": "1"})
    assert SECRET not in caught.value.message + caught.value.hint


def test_openrouter_is_told_who_asks() -> None:
    """Its attribution headers go with the key, and to nobody else."""
    (place,) = places("openrouter", "m", environment={"OPENROUTER_API_KEY": "k"})
    headers = sent(place).headers
    assert headers["X-OpenRouter-Title"] == "auditor"
    assert headers["HTTP-Referer"].startswith("https://")
    assert headers["Authorization"] == "Bearer k"
    assert not {"HTTP-Referer", "X-OpenRouter-Title"} & set(sent(Place("compat", "m", "http://x/v1")).headers)


# Nothing shows -------------------------------------------------------------------------------------------------

FULL = Place("compat", "m", "http://x/v1", f"key-{SECRET}", {"X-Team": f"header-{SECRET}"}, {"code": f"query-{SECRET}"})


def test_a_repr_holds_nothing_secret() -> None:
    """Neither of a place nor of an endpoint, alone or in a list."""
    assert repr(FULL) == str(FULL) == "Place('compat', 'm', 'http://x/v1', key=set)"
    assert SECRET not in repr([FULL, Endpoint(FULL, Recording())])


def test_what_rich_shows_of_a_place_holds_nothing_secret() -> None:
    """A traceback with local variables, or a print, of a program that uses rich."""
    assert SECRET not in pretty_repr(FULL)


def test_what_is_secret_is_sent_and_not_recorded() -> None:
    """Header, query and key go over the wire; the attempt knows the base URL alone."""
    recording = Recording()
    _, tried = asyncio.run(Endpoint(FULL, recording).attempt(request()))
    assert recording.headers["Authorization"] == f"Bearer key-{SECRET}"
    assert recording.headers["X-Team"] == f"header-{SECRET}"
    assert recording.url.endswith(f"?code=query-{SECRET}")
    assert SECRET not in recording.body.decode()
    assert SECRET not in msgspec.json.encode(tried).decode()
    assert tried.server == "http://x/v1"
    assert "messages" not in json.loads(tried.sent)


def test_secrets_are_told_the_longest_first_and_placeholders_not_at_all() -> None:
    """What masks them must not leave the end of a longer one, nor rewrite answers that say `none`."""
    headers = {"X-A": "abc123-and-much-more", "X-B": "none"}
    place = Place("compat", "m", "http://x/v1", "abc123", headers, {"api-version": "2024-10-21"})
    assert place.secrets == ("abc123-and-much-more", "abc123")
    assert Place("compat", "m", "http://x/v1", "EMPTY").secrets == ()
