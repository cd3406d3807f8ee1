"""What a run will take: generations, tokens, money and time, low and high."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.estimate import Estimate, Load, ModelEstimate, duration, estimate, most_usd, sentence, short, table
from auditor.records import Message, Price, Request

PRICE = Price(0.5, 2.0)
LOAD = Load(1000, 600.0, 64.0)

CHEAP = ModelEstimate("cheap", 1000, (120_000.0, 240_000.0), (2000.0, 64_000.0), (0.064, 0.248), 200.0)
"""1000 requests of 600 characters: at 1/5 and 1/2.5 tokens a character; completions of 2 to 64 tokens.
0.5 x 0.12 + 2 x 0.002 = 0.064; 0.5 x 0.24 + 2 x 0.064 = 0.248."""


def flat(one: ModelEstimate) -> tuple[float, ...]:
    return (*one.prompt_tokens, *one.completion_tokens, *(one.cost_usd or ()))


def test_an_estimate_by_hand() -> None:
    """Tokens from characters, cost from tokens, time from a measured rate."""
    found = estimate("cheap", LOAD, PRICE, None, 5.0)
    assert flat(found) == pytest.approx(flat(CHEAP))
    assert (found.model, found.generations, found.seconds) == ("cheap", 1000, 200.0)


def test_a_measured_size_of_tokens_leaves_no_range() -> None:
    """With 4 characters a token a prompt of 600 has 150 tokens."""
    found = estimate("m", LOAD, PRICE, 4.0, None)
    assert found.prompt_tokens == pytest.approx((150_000, 150_000))
    assert found.seconds is None


def test_a_price_for_each_request_counts_once_a_request() -> None:
    """A thousand requests at a cent are ten dollars more."""
    found = estimate("m", LOAD, Price(0.5, 2.0, 0.01), None, None)
    assert found.cost_usd == pytest.approx((10.064, 10.248))


def test_low_is_never_above_high() -> None:
    """With a limit of one token ten requests complete at most ten."""
    low, high = estimate("m", Load(10, 100.0, 1.0), PRICE, None, None).completion_tokens
    assert low <= high == 10


def test_an_unknown_price_is_no_price_of_nothing() -> None:
    """Cost is None where the price is not known, and 0 where it is 0; so is the total with one of them."""
    unknown, free = estimate("a", LOAD, None, None, 1.0), estimate("b", LOAD, Price(0.0, 0.0), None, 1.0)
    assert unknown.cost_usd is None
    assert free.cost_usd == (0.0, 0.0)
    assert Estimate((unknown, free)).cost_usd is None


def test_the_total_adds_tokens_and_money_and_takes_the_longest_time() -> None:
    """Models are asked at the same time."""
    slow = ModelEstimate("slow", 100, (1000.0, 2000.0), (200.0, 6400.0), (1.0, 3.0), 900.0)
    total = Estimate((CHEAP, slow))
    assert total.generations == 1100
    assert total.prompt_tokens == (121_000.0, 242_000.0)
    assert total.completion_tokens == (2200.0, 70_400.0)
    assert total.cost_usd == pytest.approx((1.064, 3.248))
    assert total.seconds == 900.0


def test_a_model_with_nothing_left_holds_up_no_time() -> None:
    """Where a model is done its rate need not be known; where one that is asked has none, neither has the run."""
    done = ModelEstimate("done", 0, (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), None)
    assert Estimate((CHEAP, done)).seconds == 200.0
    assert Estimate((done,)).seconds == 0.0
    unmeasured = ModelEstimate("new", 1, (1.0, 1.0), (1.0, 1.0), (0.0, 0.0), None)
    assert Estimate((CHEAP, unmeasured)).seconds is None


def test_the_sentence() -> None:
    """One line with what is known; a price that is not is named with its model."""
    assert sentence(Estimate((CHEAP,))) == (
        "to ask: 1,000 requests, 120.0k to 240.0k prompt and 2.0k to 64.0k completion tokens, $0.06 to $0.25, "
        "about 3m20s"
    )
    unknown = ModelEstimate("new", 1, (10.0, 20.0), (2.0, 64.0), None, None)
    assert sentence(Estimate((CHEAP, unknown))) == (
        "to ask: 1,001 requests, 120.0k to 240.0k prompt and 2.0k to 64.1k completion tokens, "
        "the price of new is not known"
    )
    free = ModelEstimate("own", 1, (10.0, 20.0), (2.0, 64.0), (0.0, 0.0), None)
    assert "$" not in sentence(Estimate((free,)))


def test_the_table() -> None:
    """A row per model, what is not known in words, and one row for all where there are several."""
    unknown = ModelEstimate("new", 1, (10.0, 20.0), (2.0, 64.0), None, None)
    assert table(Estimate((CHEAP, unknown))).splitlines() == [
        "model  requests  prompt tokens     completion tokens  USD              time",
        "cheap  1,000     120.0k to 240.0k  2.0k to 64.0k      0.06 to 0.25     3m20s",
        "new    1         10 to 20          2 to 64            price not known  rate not measured",
        "all    1,001     120.0k to 240.0k  2.0k to 64.1k      price not known  rate not measured",
    ]
    assert len(table(Estimate((CHEAP,))).splitlines()) == 2


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0"), (912, "912"), (9_200, "9.2k"), (31_500_000, "31.5M"), (999_999, "1000.0k")]
)
def test_short_counts(count: float, said: str) -> None:
    """Thousands and millions with one decimal."""
    assert short(count) == said


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"),
        (0.4, "0s"),
        (42, "42s"),
        (59.6, "1m00s"),
        (185, "3m05s"),
        (3599.7, "1h00m"),
        (7800, "2h10m"),
        (90_061, "25h01m"),
    ],
)
def test_durations(seconds: float, expected: str) -> None:
    """Seconds, minutes and seconds, hours and minutes; never 60s or 60m."""
    assert duration(seconds) == expected


# At most -------------------------------------------------------------------------------------------------------


def asking(*contents: str, limit: int = 64) -> Request:
    messages = tuple(Message("user", content) for content in contents)
    return Request("m", "t", "i", "w", "none", 0, "d", "p", messages, limit, 0.7, 1.0)


def test_the_most_a_request_can_cost_by_hand() -> None:
    """A byte a token and 64 for what stands around them; every token of the limit; the fee once."""
    found = most_usd(Price(2.0, 10.0, 0.5), asking("abcd", "é" * 3, limit=100))
    assert found == pytest.approx((2 * (10 + 64) + 10 * 100) / 1e6 + 0.5)


prices = st.builds(Price, st.floats(0, 100), st.floats(0, 100), st.floats(0, 1))


@given(prices, st.text(max_size=200), st.integers(1, 1000), st.floats(0, 1), st.floats(0, 1))
def test_no_reply_within_the_limit_costs_more(
    price: Price, text: str, limit: int, prompt_share: float, completion_share: float
) -> None:
    """Whatever a tokenizer makes of it, down to two bytes a token, and however long the reply."""
    request = asking(text, limit=limit)
    prompt = prompt_share * (len(text.encode()) / 2 + 32)
    assert price.of(prompt, completion_share * limit) <= most_usd(price, request) * (1 + 1e-12)
