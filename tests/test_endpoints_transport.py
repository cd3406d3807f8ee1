"""The transports: one request in, one whole reply or NetworkError out, the same for each."""

from __future__ import annotations

import asyncio
import gc
import gzip
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Mapping

import pytest

from auditor.endpoints import transport
from auditor.endpoints.transport import TRANSPORTS, HttpReply, NetworkError, Transport, one_line

each = pytest.mark.parametrize("name", list(TRANSPORTS))

Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def saying(raw: bytes) -> Handler:
    """A server that says these bytes and closes."""

    async def handle(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return handle


async def _silent(_: bytes, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


async def _dripping(_: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


AUTHORIZED = {"Authorization": "Bearer k"}


async def _answering(
    client: Transport, url: str, handle: Handler, timeout: float, headers: Mapping[str, str] = AUTHORIZED
) -> tuple[HttpReply, bytes]:
    """What the transport gives, and the request the server saw. `url` may hold the server's `{port}`."""
    seen = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        seen.extend(head + await reader.readexactly(length))
        try:
            await handle(bytes(seen), writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        reply = await client.post(url.format(port=port), headers, b'{"a": 1}', timeout)
        return reply, bytes(seen)
    finally:
        await client.close()
        server.close()


def ask(name: str, handle: Handler, timeout: float = 5, url: str = "http://127.0.0.1:{port}/v1/x") -> HttpReply:
    return asyncio.run(_answering(TRANSPORTS[name](), url, handle, timeout))[0]


def failure(name: str, handle: Handler, timeout: float = 5) -> NetworkError:
    with pytest.raises(NetworkError) as caught:
        ask(name, handle, timeout)
    return caught.value


@each
def test_a_request_arrives_as_told(name: str) -> None:
    """Path, header and body are sent as given."""
    _, seen = asyncio.run(_answering(TRANSPORTS[name](), "http://127.0.0.1:{port}/v1/x?y=1", saying(OK), 5))
    assert seen.startswith(b"POST /v1/x?y=1 HTTP/1.1\r\n")
    assert b"authorization: bearer k\r\n" in seen.lower()
    assert seen.endswith(b'\r\n\r\n{"a": 1}')


@pytest.mark.parametrize("told", [{}, {"api-key": "k"}, {"authorization": "Bearer k", "content-type": "text/plain"}])
@each
def test_no_header_is_added_that_says_more_than_the_client(
    name: str, told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key of the environment, no account, no telemetry, and no header twice."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: 1")
    url = "http://127.0.0.1:{port}/v1/x"
    _, seen = asyncio.run(_answering(TRANSPORTS[name](), url, saying(OK), 5, told))
    lines = seen.decode().split("\r\n\r\n")[0].split("\r\n")[1:]
    sent = [line.split(":")[0].lower() for line in lines]
    usual = {"host", "accept", "accept-encoding", "connection", "user-agent", "content-length", "content-type"}
    assert len(sent) == len(set(sent))
    assert {*told} <= {*sent} <= usual | {*told}
    assert {f"{header}: {value}" for header, value in told.items()} <= {
        line.split(": ")[0].lower() + ": " + line.split(": ")[1] for line in lines
    }


PACKED = gzip.compress(b'{"packed": true}')


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (OK, HttpReply(200, {"content-type": "application/json", "content-length": "2"}, b"{}")),
        (
            b"HTTP/1.1 429 Slow Down\r\nRETRY-AFTER: 1.5\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 4\r\n\r\n\xff\x00ok",
            HttpReply(429, {"retry-after": "1.5", "x-a": "2", "content-length": "4"}, b"\xff\x00ok"),
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            HttpReply(200, {"transfer-encoding": "chunked"}, b"abcde"),
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(PACKED), PACKED),
            HttpReply(200, {"content-encoding": "gzip", "content-length": str(len(PACKED))}, b'{"packed": true}'),
        ),
        (
            b'HTTP/1.1 500 Oops\r\nX-Should-Retry: true\r\nContent-Length: 15\r\n\r\n{"error": "no"}',
            HttpReply(500, {"x-should-retry": "true", "content-length": "15"}, b'{"error": "no"}'),
        ),
        (
            b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}",
            HttpReply(401, {"content-length": "2"}, b"{}"),
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=latin-1\r\nContent-Length: 9\r\n\r\n<p>\xe9</p>\n",
            HttpReply(200, {"content-type": "text/html; charset=latin-1", "content-length": "9"}, b"<p>\xe9</p>\n"),
        ),
        (
            b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n{"a"',
            HttpReply(200, {"content-type": "application/json", "content-length": "4"}, b'{"a"'),
        ),
        (
            b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 24\r\n\r\n{"error": {"code": 502}}',
            HttpReply(200, {"content-type": "application/json", "content-length": "24"}, b'{"error": {"code": 502}}'),
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", HttpReply(204, {}, b"")),
        (b"HTTP/1.0 503 Busy\r\n\r\nuntil the end", HttpReply(503, {}, b"until the end")),
    ],
    ids=[
        "json",
        "repeated headers",
        "chunked",
        "gzip",
        "server error",
        "no key",
        "html",
        "broken json",
        "error inside",
        "no content",
        "until closed",
    ],
)
@each
def test_the_same_reply_from_each_transport(name: str, raw: bytes, expected: HttpReply) -> None:
    """Status, lower-case header names and the decoded body are those the server sent."""
    assert ask(name, saying(raw)) == expected


@each
def test_redirects_are_not_followed(name: str) -> None:
    """A redirect is a reply like any other: following it would carry the key elsewhere."""
    raw = b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/elsewhere\r\nContent-Length: 0\r\n\r\n"
    reply = ask(name, saying(raw))
    assert (reply.status, reply.headers["location"]) == (307, "http://127.0.0.1:1/elsewhere")


@each
def test_cookies_are_not_kept(name: str) -> None:
    """A request does not depend on the replies before it."""

    async def twice() -> bytes:
        seen: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for _ in range(2):
                seen.append(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(2))
                writer.write(OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=1\r\n\r\n"))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        client = TRANSPORTS[name]()
        for _ in range(2):
            await client.post(f"http://localhost:{server.sockets[0].getsockname()[1]}/", {}, b"{}", 5)
        await client.close()
        server.close()
        return seen[1]

    assert b"cookie" not in asyncio.run(twice()).lower()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip",
        b"HTTP/1.1 2x0 \x1b[31mOK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.0\r\n",
    ],
)
@each
def test_an_incomplete_or_broken_reply_is_the_networks_failure(name: str, raw: bytes) -> None:
    """A dropped connection, a body shorter than announced, and what is no HTTP: kind network, told in one line."""
    error = failure(name, saying(raw))
    assert error.kind == "network"
    assert str(error)
    assert str(error).isprintable()


@each
def test_nothing_listening_is_the_networks_failure(name: str) -> None:
    """A refused connection fails at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with pytest.raises(NetworkError) as caught:
        ask(name, saying(OK), url=url)
    assert caught.value.kind == "network"
    assert str(caught.value) == "cannot connect: Connection refused"


@each
def test_a_connection_that_never_opens_is_the_networks_failure(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing accepts, the connection is given up long before the reply would be."""
    monkeypatch.setattr(transport, "CONNECT_TIMEOUT", 0.2)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = deaf.getsockname()
        held = [socket.socket() for _ in range(4)]
        for one in held:
            one.setblocking(False)
            one.connect_ex(address)
        began = time.monotonic()
        with pytest.raises(NetworkError) as caught:
            ask(name, saying(OK), timeout=10, url=f"http://127.0.0.1:{address[1]}/")
        for one in held:
            one.close()
    assert (caught.value.kind, str(caught.value)) == ("network", "no connection within 0.2 s")
    assert time.monotonic() - began < 3


async def _resetting(_: bytes, writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@each
def test_a_reset_connection_is_the_networks_failure(name: str) -> None:
    """Told in the system's words, the same for each."""
    error = failure(name, _resetting)
    assert (error.kind, str(error)) == ("network", "Connection reset by peer")


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 1048577",
        b"Transfer-Encoding: chunked",
        b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked",
    ],
)
@pytest.mark.parametrize("status", [b"200 OK", b"500 Oops"])
@each
def test_a_reply_that_is_too_large_is_given_up(
    name: str, status: bytes, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted as it arrives and after decompression, not after it was read."""
    monkeypatch.setattr(transport, "MOST_BYTES", 2**20)
    body = gzip.compress(b"x" * 1048577) if b"gzip" in head else b"x" * 1048577
    if b"chunked" in head:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    error = failure(name, saying(b"HTTP/1.1 %b\r\n%b\r\n\r\n%b" % (status, head, body)))
    assert (error.kind, str(error)) == ("endless_reply", "reply larger than 1 MiB")


@each
def test_a_reply_of_the_largest_size_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound itself is allowed."""
    monkeypatch.setattr(transport, "MOST_BYTES", 2**20)
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + b"x" * 2**20
    assert ask(name, saying(raw)).body == b"x" * 2**20


@pytest.mark.parametrize("handle", [_silent, _dripping])
@each
def test_no_whole_reply_in_time_is_a_timeout(name: str, handle: Handler) -> None:
    """The limit is on the whole reply: a server that drips does not stretch it."""
    began = time.monotonic()
    error = failure(name, handle, timeout=0.2)
    assert (error.kind, str(error)) == ("timeout", "no complete reply within 0.2 s")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("url", ["http://a..b/", "http://\u2028.example/", "http://xn--/"])
@each
def test_an_address_that_is_none_is_the_networks_failure(name: str, url: str) -> None:
    """A malformed host is no crash."""
    with pytest.raises(NetworkError):
        asyncio.run(_post_and_close(name, url))


async def _post_and_close(name: str, url: str) -> None:
    client = TRANSPORTS[name]()
    try:
        await client.post(url, {}, b"", 5)
    finally:
        await client.close()


@each
def test_closing_leaves_nothing_behind(name: str) -> None:
    """Sessions close without warnings (which are errors here), twice, unused, and after a failure."""

    async def use() -> None:
        client = TRANSPORTS[name]()
        await client.close()
        await _answering(client, "http://127.0.0.1:{port}/", saying(OK), 5)
        await client.close()
        with pytest.raises(NetworkError):
            await client.post("http://127.0.0.1:1/", {}, b"", 1)
        await client.close()

    asyncio.run(use())
    gc.collect()


def test_one_line() -> None:
    """No line breaks, no control characters, no more than the limit."""
    assert one_line("a\r\n b\x1b[2J\x00c\u2028d") == "a b [2J c d"
    assert one_line("x" * 10_000, 7) == "x" * 7
