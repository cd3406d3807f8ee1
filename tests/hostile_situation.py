"""What stays as it is at the hostile server: which server it is, and what it will not do for anybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import hostile_dialects as words
import msgspec
from hostile_dialects import Body, Dialect, Wire
from hostile_held import Holding, asked


@dataclass(frozen=True)
class Situation:
    """`key` and `model` (None: any) are what it wants, 401 and 404 otherwise. `refuses` has any of `max_tokens`,
    `temperature` and other parameters, and `system`. `context` is in words. So many requests at once as `allow` are
    let in, the next are answered 429 without delay, with `retry_after` in seconds where it is given. `latency` in
    seconds, whatever the load. After `gone_after` completion requests it is gone for good.
    """

    dialect: Dialect = "openai"
    model: str | None = None
    key: str | None = None
    refuses: frozenset[str] = frozenset()
    ignores_seed: bool = False
    holding: Holding = field(default_factory=Holding)
    context: int | None = None
    allow: int | None = None
    retry_after: float | None = None
    latency: float = 0.0
    gone_after: int | None = None

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether the key is right."""
        return self.key is None or headers.get("Authorization") == f"Bearer {self.key}"

    def over(self) -> Wire:
        """Too many at once."""
        wire = words.refusal(self.dialect, 429, "Too many requests at once.", "rate_limit_exceeded")
        if self.retry_after is None:
            return wire
        return msgspec.structs.replace(wire, headers=words.JSON | {"Retry-After": f"{self.retry_after:g}"})

    def refusal(self, body: Body) -> Wire | None:
        """Why this request is refused, however often it is asked; None where it is not."""
        if self.model is not None and body["model"] != self.model:
            return words.wrong_model(self.dialect, body["model"])
        if "system" in self.refuses and any(turn["role"] == "system" for turn in body["messages"]):
            return words.no_system(self.dialect)
        name = next((name for name in sorted(self.refuses) if name in body), None)
        if name is not None:
            return words.no_parameter(self.dialect, name, body[name])
        if (wire := self._too_long(body)) is not None:
            return wire
        if (constraint := asked(body)) and self.holding.judged(*constraint) == "refuse":
            return words.no_constraint(self.dialect, constraint[0])
        return None

    def _too_long(self, body: Body) -> Wire | None:
        if self.context is None:
            return None
        prompt, most = words.words(body["messages"]), body.get("max_tokens") or body.get("max_completion_tokens") or 0
        return words.too_long(self.dialect, self.context, prompt, most) if prompt + most > self.context else None
