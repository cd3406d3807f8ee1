"""llama.cpp's tokenizer over HTTP: what it is asked, and clear errors where it is not what it should be."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from auditor.endpoints.llamacpp import Tokenizer
from auditor.errors import EndpointDown, EndpointError, RequestRefused
from auditor.records import Message


@contextmanager
def saying(status: int, *bodies: bytes) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """A server that says these bodies in turn; its base URL, and the (path, body) it saw."""
    seen: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(bodies[len(seen) - 1])

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def count(url: str) -> int:
    tokenizer = Tokenizer(url, {})
    try:
        return tokenizer.count_prompt([Message("user", "Hi")])
    finally:
        tokenizer.close()


def test_a_prompt_is_templated_and_then_tokenized_with_its_special_tokens() -> None:
    """Two requests beside `/v1`; the count is that of the tokens."""
    with saying(200, b'{"prompt": "<|user|>Hi"}', b'{"tokens": [1, 2, 3]}') as (url, seen):
        assert count(url) == 3
    assert seen == [
        ("/apply-template", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("/tokenize", {"content": "<|user|>Hi", "add_special": True, "parse_special": True}),
    ]


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (401, b'{"error": {"message": "Invalid API Key"}}', RequestRefused, "HTTP 401: Invalid API Key"),
        (404, b"not here", RequestRefused, "HTTP 404: not here"),
        (503, b'{"error": {"message": "Loading model"}}', EndpointDown, "HTTP 503: Loading model"),
        (200, b"<html>", RequestRefused, "the reply has no prompt"),
        (200, b"[]", RequestRefused, "the reply has no prompt"),
        (200, b'{"prompt": 3}', RequestRefused, "the reply has no prompt"),
    ],
)
def test_another_server_is_told_in_one_line(status: int, body: bytes, kind: type[EndpointError], message: str) -> None:
    """A refused key, a server that is not llama.cpp, one that still loads."""
    with saying(status, body) as (url, _), pytest.raises(kind) as caught:
        count(url)
    assert caught.value.message == f"the tokenizer at {url.removesuffix('/v1')}/apply-template: {message}"
    assert "llamacpp/" in caught.value.hint


def test_nothing_listening_is_told_in_one_line() -> None:
    """The address is named."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        root = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(EndpointDown) as caught:
        count(f"{root}/v1")
    assert caught.value.message.startswith(f"the tokenizer at {root}/apply-template does not answer: ")
