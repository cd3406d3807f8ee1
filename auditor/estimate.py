"""Requests -> what they will take: generations, tokens, money, time, low and high. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from auditor.records import Price, Request

Range = tuple[float, float]

_PROMPT = (1 / 5.0, 1 / 2.5)
"""Tokens a character of a prompt, low and high: English prose is near 1/4.5, padding and code near 1/3."""
_FEWEST = 2
"""Completion tokens of the shortest reply."""


class Load(Struct, frozen=True):
    """What one model is asked: requests, characters a prompt and completion tokens at most, both on average."""

    requests: int
    characters: float
    completion_tokens: float


class ModelEstimate(Struct, frozen=True):
    """What one model takes. Tokens and USD are (low, high); `cost_usd` is None where its price is not known."""

    model: str
    generations: int
    prompt_tokens: Range
    completion_tokens: Range
    cost_usd: Range | None
    seconds: float | None


class Estimate(Struct, frozen=True):
    """What a run takes. `seconds` is None where no rate has been measured; models are asked at the same time."""

    models: tuple[ModelEstimate, ...]

    @property
    def generations(self) -> int:
        """Over all models."""
        return sum(one.generations for one in self.models)

    @property
    def prompt_tokens(self) -> Range:
        """Over all models."""
        return _sum([one.prompt_tokens for one in self.models])

    @property
    def completion_tokens(self) -> Range:
        """Over all models."""
        return _sum([one.completion_tokens for one in self.models])

    @property
    def cost_usd(self) -> Range | None:
        """Over all models, None where one price is not known."""
        costs = [one.cost_usd for one in self.models]
        return None if None in costs else _sum([cost for cost in costs if cost is not None])

    @property
    def seconds(self) -> float | None:
        """Until the slowest model is done."""
        times = [one.seconds for one in self.models if one.generations]
        return None if None in times else max((time for time in times if time is not None), default=0.0)


def estimate(model: str, load: Load, price: Price | None, per_token: float | None, rate: float | None) -> ModelEstimate:
    """What a load takes. `per_token`: characters a prompt token where a tokenizer or earlier replies told it; `rate` in
    generations a second."""
    low, high = (1 / per_token, 1 / per_token) if per_token else _PROMPT
    prompt = (load.requests * load.characters * low, load.requests * load.characters * high)
    most = load.requests * load.completion_tokens
    completion = (min(float(_FEWEST * load.requests), most), most)
    cost = None
    if price is not None:
        fees = price.request * load.requests
        cost = tuple(price.of(prompt[i], completion[i]) - price.request + fees for i in (0, 1))
    seconds = load.requests / rate if rate else None
    return ModelEstimate(model, load.requests, prompt, completion, cost, seconds)  # type: ignore[arg-type]


def sentence(total: Estimate) -> str:
    """`up to 3,500 requests, 0.4M to 0.8M prompt and 7.0k to 84.0k completion tokens, $0.05 to $0.20, about 3m05s`."""
    prompt, completion = (
        f"{short(low)} to {short(high)}" for low, high in (total.prompt_tokens, total.completion_tokens)
    )
    parts = [f"to ask: {total.generations:,} requests, {prompt} prompt and {completion} completion tokens"]
    cost = total.cost_usd
    if cost is None:
        unknown = ", ".join(one.model for one in total.models if one.cost_usd is None)
        parts.append(f"the price of {unknown} is not known")
    elif cost[1] > 0:
        parts.append(f"${cost[0]:,.2f} to ${cost[1]:,.2f}")
    if total.seconds is not None:
        parts.append(f"about {duration(total.seconds)}")
    return ", ".join(parts)


def table(total: Estimate) -> str:
    """A row per model and one for all of them, low to high."""
    head = ("model", "requests", "prompt tokens", "completion tokens", "USD", "time")
    rows = [(one.model, *_cells(one)) for one in total.models]
    if len(rows) > 1:
        rows.append(("all", *_cells(total)))
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def _cells(one: ModelEstimate | Estimate) -> tuple[str, str, str, str, str]:
    prompt, completion = (f"{short(low)} to {short(high)}" for low, high in (one.prompt_tokens, one.completion_tokens))
    cost, seconds = one.cost_usd, one.seconds
    usd = "price not known" if cost is None else f"{cost[0]:,.2f} to {cost[1]:,.2f}"
    time = "rate not measured" if seconds is None else duration(seconds)
    return f"{one.generations:,}", prompt, completion, usd, time


def short(count: float) -> str:
    """`912`, `9.2k`, `31.5M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(round(count))


def duration(seconds: float) -> str:
    """`42s`, `3m05s`, `2h10m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def most_usd(price: Price, request: Request) -> float:
    """What a request can cost at most: a byte a token, its schema with it, and every token of its limit."""
    size = sum(len(message.content.encode()) for message in request.messages)
    if request.constraint is not None:
        size += len(msgspec.json.encode(request.constraint))
    return price.of(size + 64, request.max_tokens)


def _sum(ranges: Sequence[Range]) -> Range:
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)
