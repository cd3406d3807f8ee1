"""The seam to the network: url, headers, body bytes -> status, headers, body bytes. Nothing here knows a dialect."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from auditor.endpoints.network import CONNECT_TIMEOUT, Network, network_for

if TYPE_CHECKING:
    import aiohttp
    import httpx
    import openai

MOST_BYTES = 64 * 2**20
"""A reply larger than this is an error, not an answer. Counted after decompression."""


class HttpReply(Struct, frozen=True):
    """What came over the wire, the body decompressed. Header names are lower case; of a repeated one, the last."""

    status: int
    headers: dict[str, str]
    body: bytes


class NetworkError(Exception):
    """No complete reply came: the wire failed, the time ran out, or, which no retry mends, the server's certificate
    is not trusted or its reply has no end."""

    def __init__(self, kind: Literal["network", "timeout", "certificate", "endless_reply"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Transport(Protocol):
    """Sends one POST. Redirects are not followed: they would carry the key elsewhere."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        """Raises NetworkError; UsageError where no network was given and the environment's cannot be used."""

    async def close(self) -> None:
        """Give the connections back."""


class AiohttpTransport:
    """The default: about a tenth of a millisecond of CPU per request.

    For one endpoint, as each transport: without a network, the first URL asked decides.
    """

    def __init__(self, network: Network | None = None) -> None:
        self._network = network
        self._session: aiohttp.ClientSession | None = None
        self._proxied: dict[str, Any] = {}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        """Raises NetworkError."""
        import aiohttp

        limit = aiohttp.ClientTimeout(total=timeout, connect=CONNECT_TIMEOUT)
        session = self._session or self._open(url)
        try:
            async with session.post(
                url, headers=headers, data=body, timeout=limit, allow_redirects=False, **self._proxied
            ) as reply:
                content = await within_bounds(reply.content.iter_any())
                return HttpReply(reply.status, {name.lower(): value for name, value in reply.headers.items()}, content)
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            raise _timed_out(error, timeout, self._network) from error
        except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as error:
            raise _unconnected(error, self._network) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failed(error) from error

    def _open(self, url: str) -> aiohttp.ClientSession:
        import aiohttp

        network = self._network = self._network or network_for(url)
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ssl=network.tls or True)
        # No cookies: a request must not depend on the replies before it.
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        if network.proxy is not None:
            self._proxied = {"proxy": network.proxy.url, "proxy_headers": network.proxy.headers}
            if url.startswith("http:"):  # no tunnel: the request itself is what the proxy reads
                self._session.headers.update(network.proxy.headers)
        return self._session

    async def close(self) -> None:
        """Give the connections back."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class HttpxTransport:
    """For networks where httpx is known to work and aiohttp is not; costs about ten times the CPU."""

    def __init__(self, network: Network | None = None) -> None:
        self._network = network
        self._client: httpx.AsyncClient | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        """Raises NetworkError."""
        import httpx

        client = self._client or self._open(url)
        limit = httpx.Timeout(timeout, connect=CONNECT_TIMEOUT)
        try:
            async with asyncio.timeout(timeout):
                response = await client.post(url, headers=dict(headers), content=body, timeout=limit)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise _from_httpx(error, timeout, self._network) from error
        return _reply(response)

    def _open(self, url: str) -> httpx.AsyncClient:
        from auditor.endpoints.whole import WholeClient

        self._network = self._network or network_for(url)
        self._client = WholeClient(self._network)
        return self._client

    async def close(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


class OpenaiTransport:
    """The openai SDK's client, for what only it gets through. It neither retries, parses nor adds a header."""

    def __init__(self, network: Network | None = None) -> None:
        self._network = network
        self._sdk: openai.AsyncOpenAI | None = None
        self._omitted: dict[str, Any] = {}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        """Raises NetworkError."""
        import httpx
        import openai

        limit = httpx.Timeout(timeout, connect=CONNECT_TIMEOUT)
        try:
            httpx.URL(url)  # the SDK would raise an error that is not its own
            sdk: Any = self._sdk or self._open(url)
            options = {"headers": self._omitted | dict(headers), "timeout": limit}
            async with asyncio.timeout(timeout):
                response = await sdk.post(url, cast_to=httpx.Response, content=body, options=options)
        except openai.APIStatusError as error:
            response = error.response
        except openai.APIConnectionError as error:
            raise _from_httpx(error.__cause__ or error, timeout, self._network) from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise _from_httpx(error, timeout, self._network) from error
        return _reply(response)

    def _open(self, url: str) -> openai.AsyncOpenAI:
        import openai

        from auditor.endpoints.whole import WholeClient

        self._network = self._network or network_for(url)
        client: Any = WholeClient(self._network)
        sdk = openai.AsyncOpenAI(api_key="unused", base_url=url, max_retries=0, http_client=client)
        counted = ("X-Stainless-Retry-Count", "X-Stainless-Read-Timeout")
        self._omitted = dict.fromkeys([*sdk.default_headers, *counted, "Authorization"], openai.Omit())
        self._sdk = sdk
        return sdk

    async def close(self) -> None:
        """Give the connections back."""
        if self._sdk is not None:
            await self._sdk.close()
            self._sdk = None


TRANSPORTS: dict[str, type[AiohttpTransport] | type[HttpxTransport] | type[OpenaiTransport]] = {
    "aiohttp": AiohttpTransport,
    "httpx": HttpxTransport,
    "openai": OpenaiTransport,
}


def one_line(text: str, limit: int = 300) -> str:
    """What others wrote, fit for a terminal: one line, no control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * limit]).split())[:limit]


async def within_bounds(chunks: AsyncIterator[bytes]) -> bytes:
    """The chunks of a body as one. Raises NetworkError above MOST_BYTES."""
    read, size = [], 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MOST_BYTES:
            raise NetworkError("endless_reply", f"reply larger than {MOST_BYTES / 2**20:g} MiB")
        read.append(chunk)
    return b"".join(read)


def _reply(response: Any) -> HttpReply:
    reply: HttpReply = response.extensions["reply"]
    return reply


def _from_httpx(error: BaseException, timeout: float, network: Network | None) -> NetworkError:
    import httpx

    if isinstance(error, NetworkError):  # raised below an SDK that wraps whatever is raised below it
        return error
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return _timed_out(error, timeout, network)
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return _unconnected(error, network)
    return _failed(error)


def _timed_out(error: BaseException, timeout: float, network: Network | None) -> NetworkError:
    """A connection that never opened is the wire's failure; a reply that never came is a timeout."""
    if "connect" in type(error).__name__.lower():
        return NetworkError("network", f"no connection{_through(network)} within {CONNECT_TIMEOUT:g} s")
    return NetworkError("timeout", f"no complete reply within {timeout:g} s")


def _unconnected(error: BaseException, network: Network | None) -> NetworkError:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError) and (said := getattr(cause, "verify_message", "")):
            hint = "SSL_CERT_FILE names the certificates to trust"
            return NetworkError("certificate", one_line(f"certificate verification failed: {said} ({hint})"))
    return NetworkError("network", one_line(f"cannot connect{_through(network)}: {_reason(error)}"))


def _failed(error: BaseException) -> NetworkError:
    return NetworkError("network", one_line(_reason(error)))


def _through(network: Network | None) -> str:
    return f" through the proxy {network.proxy.address}" if network and network.proxy else ""


def _reason(error: BaseException) -> str:
    """The system's words where it was the system: the clients' differ, and repeat host and port."""
    for cause in reversed(list(_causes(error))):
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    if isinstance(status := getattr(error, "status", None), int):  # aiohttp's, for a proxy that refuses
        return f"{status} {getattr(error, 'message', '')}"
    return str(error) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what led to it, outermost first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
