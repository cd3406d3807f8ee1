"""What is asked of a server beside completions, one blocking call each: tokens, versions, lists of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import httpx

from auditor.endpoints.classify import error_text, status_fault
from auditor.endpoints.network import client
from auditor.endpoints.places import Place, masked
from auditor.endpoints.transport import one_line
from auditor.errors import EndpointDown, RequestRefused

T = TypeVar("T")
_TIMEOUT = 60.0


class Asker:
    """One server, asked for JSON. Raises EndpointDown where it does not answer, RequestRefused where it refuses."""

    def __init__(self, place: Place, root: str, hint: str = "") -> None:
        """`root` is what paths stand below: the base URL, or what lies above its `/v1`."""
        self._root = root
        self._place = place
        self._hint = hint
        self._client = client(root, place.headers, _TIMEOUT)

    def get(self, path: str) -> dict[str, Any]:
        """The JSON object at a path."""
        return self._json(path, "GET", None)

    def post(self, path: str, body: Mapping[str, Any], field: str, kind: type[T]) -> T:
        """One field of the JSON object that answers a body."""
        value = self._json(path, "POST", body).get(field)
        if not isinstance(value, kind):
            raise RequestRefused(f"{self._root}{path}: the reply has no {field}", self._hint)
        return value

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _json(self, path: str, method: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        where = f"{self._root}{path}"
        try:
            reply = self._client.request(method, where, params=self._place.query or None, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = one_line(str(error)) or type(error).__name__
            hint = "is the server running, and is the address right? of several URLs, leave out a dead one"
            raise EndpointDown(f"{where} does not answer: {self._hidden(said)}", hint) from error
        if reply.status_code != 200:
            fault = status_fault(reply.status_code, error_text(reply.content), {})
            kind_of_error = EndpointDown if fault.retryable else RequestRefused
            raise kind_of_error(f"{where}: {self._hidden(fault.message)}", self._hint)
        try:
            value = reply.json()
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise RequestRefused(f"{where}: the reply is no JSON object", self._hint)
        return value

    def _hidden(self, text: str) -> str:
        return masked(text.encode(), self._place.secrets).decode()
