"""For tests: a forward proxy on loopback, and servers behind it under made-up names, with certificates of their own."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

HOST = "api.example.test"

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Handler = Callable[[Reader, Writer], Awaitable[None]]


@dataclass
class Server:
    """Answers each POST with `{}`. `heads` are the requests' lines and headers, in lower case."""

    heads: list[str] = field(default_factory=list)

    async def handle(self, reader: Reader, writer: Writer) -> None:
        while True:
            head, _ = await _request(reader)
            self.heads.append(head.decode("latin-1").lower())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()


@dataclass
class Proxy:
    """Tunnels CONNECT and forwards requests in absolute form to the loopback ports that `routes` names.

    `lines` are the request lines, `wire` every byte that a client sent, `logins` what asked for each.
    """

    routes: Mapping[str, int]
    login: str | None = None
    lines: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)
    wire: bytearray = field(default_factory=bytearray)

    async def handle(self, reader: Reader, writer: Writer) -> None:
        head, body = await _request(reader)
        self.wire += head + body
        line, *headers = head.decode("latin-1").split("\r\n")
        told = {name.lower(): value for name, _, value in (header.partition(": ") for header in headers)}
        self.lines.append(line)
        self.logins.append(told.get("proxy-authorization"))
        method, target, _ = line.split(" ")
        authority = target if method == "CONNECT" else target.split("/")[2]
        if self.login is not None and self.logins[-1] != basic(self.login):
            writer.write(b"HTTP/1.1 407 Who Are You\r\nContent-Length: 0\r\n\r\n")
        elif authority not in self.routes:
            writer.write(b"HTTP/1.1 502 No Such Host\r\nContent-Length: 0\r\n\r\n")
        else:
            await self._relay(reader, writer, authority, b"" if method == "CONNECT" else _forwarded(head) + body)

    async def _relay(self, reader: Reader, writer: Writer, authority: str, first: bytes) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.routes[authority])
        try:
            back.write(first)
            if not first:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_pump(reader, back, self.wire), _pump(there, writer, bytearray()))
        finally:
            back.close()


def basic(login: str) -> str:
    """What Proxy-Authorization says for user:password."""
    return "Basic " + base64.b64encode(login.encode()).decode()


@contextmanager
def serving(handle: Handler, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve on a loopback port, in a thread of its own; gives the port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def connected(reader: Reader, writer: Writer) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            try:
                await handle(reader, writer)
                await writer.drain()
            finally:
                writer.close()
                await writer.wait_closed()

    async def stop(server: asyncio.Server) -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)

    try:
        start = asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        server = asyncio.run_coroutine_threadsafe(start, loop).result(10)
        yield server.sockets[0].getsockname()[1]
        asyncio.run_coroutine_threadsafe(stop(server), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def certified(folder: Path, host: str = HOST) -> tuple[Path, ssl.SSLContext]:
    """A new CA's certificate, and a server context with one that it signed for the host and for 127.0.0.1.

    Needs the openssl command.
    """

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=30)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    signs = ["-addext", "keyUsage=critical,keyCertSign"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test CA", "-days", "2", *signs)
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={host}")
    extensions = f"subjectAltName=DNS:{host},IP:127.0.0.1\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    (folder / "extensions").write_text(extensions)
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "extensions"]
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", *signed)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return folder / "ca.pem", context


async def _request(reader: Reader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head, await reader.readexactly(int(lengths[0]) if lengths else 0)


def _forwarded(head: bytes) -> bytes:
    """In the form a server reads, without what was for the proxy."""
    line, *headers = head.split(b"\r\n")
    method, target, version = line.split(b" ")
    kept = [header for header in headers if not header.lower().startswith(b"proxy-")]
    return b"\r\n".join([b" ".join([method, b"/" + target.split(b"/", 3)[3], version]), *kept])


async def _pump(source: Reader, sink: Writer, seen: bytearray) -> None:
    while chunk := await source.read(65536):
        seen += chunk
        sink.write(chunk)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()
