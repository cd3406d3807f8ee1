"""The seam to the network: url, headers, body bytes -> status, headers, body bytes. Nothing here knows a dialect."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import ssl
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

if TYPE_CHECKING:
    import aiohttp
    import httpx

CONNECT_TIMEOUT = 4.0
"""Two retransmissions of a lost SYN. Short, so that an address where nothing is can be told within seconds."""


class HttpReply(Struct, frozen=True):
    """What came over the wire. Header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class NetworkError(Exception):
    """No complete reply came: `kind` says whether the wire failed or the time ran out."""

    def __init__(self, kind: Literal["network", "timeout"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Transport(Protocol):
    """Sends one POST. Redirects are not followed: they would carry the key elsewhere."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        """Raises NetworkError."""

    async def close(self) -> None:
        """Give the connections back."""


class AiohttpTransport:
    """The default: about a tenth of a millisecond of CPU per request. For one endpoint: the proxy is looked up once."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._proxy: str | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        """Raises NetworkError."""
        import aiohttp

        limit = aiohttp.ClientTimeout(total=timeout, connect=CONNECT_TIMEOUT)
        session = self._session or self._open(url)
        try:
            async with session.post(
                url, headers=headers, data=body, timeout=limit, allow_redirects=False, proxy=self._proxy
            ) as reply:
                content = await reply.read()
                return HttpReply(reply.status, {name.lower(): value for name, value in reply.headers.items()}, content)
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            raise _timed_out(error, timeout) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failed(error) from error

    def _open(self, url: str) -> aiohttp.ClientSession:
        import aiohttp

        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ssl=_verify(url))
        self._proxy = proxy_for(url)
        # No cookies: a request must not depend on the replies before it.
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    async def close(self) -> None:
        """Give the connections back."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class HttpxTransport:
    """For networks where httpx is known to work and aiohttp is not; costs about ten times the CPU."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        """Raises NetworkError."""
        import httpx

        client = self._client or self._open(url)
        limit = httpx.Timeout(timeout, connect=CONNECT_TIMEOUT)
        try:
            async with asyncio.timeout(timeout):
                reply = await client.post(url, headers=dict(headers), content=body, timeout=limit)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise _timed_out(error, timeout) from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise _failed(error) from error
        client.cookies.clear()
        return HttpReply(reply.status_code, dict(reply.headers.multi_items()), reply.content)

    def _open(self, url: str) -> httpx.AsyncClient:
        import httpx

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._client = httpx.AsyncClient(
            limits=limits, follow_redirects=False, trust_env=False, verify=_verify(url), proxy=proxy_for(url)
        )
        return self._client

    async def close(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


TRANSPORTS: dict[str, type[AiohttpTransport] | type[HttpxTransport]] = {
    "aiohttp": AiohttpTransport,
    "httpx": HttpxTransport,
}


def proxy_for(url: str) -> str | None:
    """The environment's HTTP proxy for a URL, or None. NO_PROXY is heeded, and loopback is never proxied."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    proxy = urllib.request.getproxies().get(parts.scheme, "")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def one_line(text: str, limit: int = 300) -> str:
    """What others wrote, fit for a terminal: one line, no control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * limit]).split())[:limit]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _verify(url: str) -> ssl.SSLContext | bool:
    """The system's certificates and SSL_CERT_FILE, the same for both transports."""
    return ssl.create_default_context() if url.startswith("https:") else True


def _failed(error: Exception) -> NetworkError:
    if isinstance(cause := getattr(error, "os_error", None), OSError):  # aiohttp repeats host and ssl instead
        said = os.strerror(cause.errno) if cause.errno is not None and cause.errno > 0 else cause.strerror or str(cause)
        return NetworkError("network", one_line(f"cannot connect: {said}"))
    return NetworkError("network", one_line(str(error)) or type(error).__name__)


def _timed_out(error: Exception, timeout: float) -> NetworkError:
    """A connection that never opened is the wire's failure; a reply that never came is a timeout."""
    if "connect" in type(error).__name__.lower():
        return NetworkError("network", f"no connection within {CONNECT_TIMEOUT:g} s")
    return NetworkError("timeout", f"no complete reply within {timeout:g} s")
