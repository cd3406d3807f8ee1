"""An httpx client that reads each reply to its end, within bounds. httpx and the openai SDK both send through it."""

from __future__ import annotations

from typing import Any

import httpx

from auditor.endpoints.network import Network
from auditor.endpoints.transport import HttpReply, within_bounds


class WholeClient(httpx.AsyncClient):
    """What came stands in each response's `extensions["reply"]`; the response itself has status and body."""

    def __init__(self, network: Network) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=30)
        super().__init__(limits=limits, follow_redirects=False, **network.for_httpx())

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Raises what httpx raises, and NetworkError for a reply that is too large."""
        response = await super().send(request, **options | {"stream": True})
        self.cookies.clear()  # a request must not depend on the replies before it
        try:
            body = await within_bounds(response.aiter_bytes())
        finally:
            await response.aclose()
        reply = HttpReply(response.status_code, dict(response.headers.multi_items()), body)
        return httpx.Response(reply.status, content=body, request=request, extensions={"reply": reply})
