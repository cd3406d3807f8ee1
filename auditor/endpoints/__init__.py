"""An endpoint that can be asked: one model at one server, or at several that are used together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from auditor.endpoints.adapt import LIMITS, adaptation, adapted, folded
from auditor.endpoints.classify import classify, exhausted_for
from auditor.endpoints.places import PROVIDERS, Place, Provider, masked, places
from auditor.endpoints.transport import HttpReply, NetworkError, Transport
from auditor.records import Adaptation, Attempt, Fault, Message, Price, Reply, Request

__all__ = ["PROVIDERS", "Endpoint", "Place", "Pool", "Provider", "places"]

REQUEST_TIMEOUT = 300.0
_ENCODER = msgspec.json.Encoder()


class Endpoint:
    """One model at one base URL. `adaptations` is what it refused until now, by parameter, and grows with it."""

    def __init__(
        self,
        place: Place,
        transport: Transport,
        *,
        adaptations: Sequence[Adaptation] = (),
        price: Price | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self.place = place
        self.base_url = place.base_url
        self.adaptations = {one.parameter: one for one in adaptations}
        self.routing: dict[str, Any] = {}
        """Fields of `provider`, found out at the start, that no study says."""
        self.in_flight = 0
        self._transport = transport
        self._price = price
        self._timeout = timeout
        self._url = place.url
        self._headers = {"Content-Type": "application/json", **place.headers}
        self._secrets = place.secrets

    def __repr__(self) -> str:
        return f"Endpoint({self.place!r})"

    async def attempt(self, request: Request) -> tuple[Reply | Fault, Attempt]:
        """Ask once."""
        told, messages = self._told(request), self._messages(request)
        sent = _ENCODER.encode({name: value for name, value in told.items() if name != "seed"})
        body = _ENCODER.encode(told | {"messages": messages})
        started, clock = time.time(), time.perf_counter()
        http: HttpReply | None = None
        answer: Reply | Fault
        self.in_flight += 1
        try:
            http = self._hidden(await self._transport.post(self._url, self._headers, body, self._timeout))
            answer = self._adapt(self._safe(classify(http)), http, told, messages)
        except NetworkError as error:
            passes = error.kind in ("network", "timeout")
            answer = self._safe(Fault(error.kind, str(error), retryable=passes, fatal=error.kind == "certificate"))
        finally:
            self.in_flight -= 1
        return answer, Attempt(
            started,
            (time.perf_counter() - clock) * 1000,
            None if http is None else http.status,
            answer.kind if isinstance(answer, Fault) else None,
            b"" if http is None else http.body,
            sent,
            self.base_url,
            self._cost(answer),
            None if http is None else exhausted_for(http.headers),
        )

    async def close(self) -> None:
        """Give the connections back."""
        await self._transport.close()

    def _told(self, request: Request) -> dict[str, Any]:
        """The body as it is sent now, without messages."""
        told = self.place.dialect.parameters(request, self.place.model_id)
        if self.routing:
            told["provider"] = {**self.routing, **told.get("provider", {})}
        told.pop("messages", None)
        return adapted(told, self.adaptations) if self.adaptations else told

    def _messages(self, request: Request) -> tuple[Message, ...]:
        return folded(request.messages) if "system" in self.adaptations else request.messages

    def _adapt(
        self, answer: Reply | Fault, http: HttpReply, told: dict[str, Any], messages: tuple[Message, ...]
    ) -> Reply | Fault:
        """A refused parameter is left out from now on, and this request is asked again at once."""
        if not isinstance(answer, Fault) or answer.kind != "bad_request":
            return answer
        found = adaptation(http.body, told, messages)
        if found is None or (found.parameter == "system" and folded(messages) == messages):
            return answer
        if LIMITS.get(found.parameter) in self.adaptations:  # it takes neither name
            return answer
        self.adaptations.setdefault(found.parameter, found)
        return Fault("adapted", answer.message, retryable=True, retry_after=0.0)

    def _cost(self, answer: Reply | Fault) -> float | None:
        """What the endpoint says it charged, else what its price makes of its token counts."""
        if answer.cost_usd is not None or isinstance(answer, Fault):
            return answer.cost_usd
        if self._price is None or answer.prompt_tokens is None or answer.completion_tokens is None:
            return None
        return self._price.of(answer.prompt_tokens, answer.completion_tokens)

    def _safe(self, answer: Reply | Fault) -> Reply | Fault:
        """No message either: it may name where a redirect leads, or what a wire said."""
        if isinstance(answer, Reply) or not self._secrets:
            return answer
        return msgspec.structs.replace(answer, message=masked(answer.message.encode(), self._secrets).decode())

    def _hidden(self, http: HttpReply) -> HttpReply:
        """No record holds a secret, whatever a server echoes."""
        if not self._secrets:
            return http
        return HttpReply(http.status, http.headers, masked(http.body, self._secrets))


class Pool:
    """One model at several servers, the least busy first. One that failed is passed over for a while, so that its
    quick failures do not draw every request to it."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self.base_url = " and ".join(endpoint.base_url for endpoint in endpoints)
        self._failures = dict.fromkeys(self.endpoints, 0)
        self._back = dict.fromkeys(self.endpoints, 0.0)

    async def attempt(self, request: Request) -> tuple[Reply | Fault, Attempt]:
        """Ask one of them once."""
        now = time.monotonic()
        free = [one for one in self.endpoints if self._back[one] <= now]
        endpoint = min(free or self.endpoints, key=lambda one: (one.in_flight, self._failures[one]))
        answer, attempt = await endpoint.attempt(request)
        if attempt.http_status is None or attempt.http_status in (502, 503):
            self._failures[endpoint] += 1
            self._back[endpoint] = time.monotonic() + min(60.0, 2.0 ** min(self._failures[endpoint], 6))
        else:
            self._failures[endpoint] = 0
        return answer, attempt

    async def close(self) -> None:
        """Give the connections back."""
        for endpoint in self.endpoints:
            await endpoint.close()
