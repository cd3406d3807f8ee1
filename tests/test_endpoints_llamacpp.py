"""llama.cpp: what its server is told, what its tokenizer is asked, and clear errors where it is something else."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest
from samples import request

from auditor.endpoints import Place, llamacpp
from auditor.endpoints.tokenizers import LlamaCppTokenizer
from auditor.errors import EndpointDown, EndpointError, RequestRefused
from auditor.records import Constraint, Message, Part


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
    tokenizer = LlamaCppTokenizer(Place("llamacpp", "m", url))
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
        (200, b"<html>", RequestRefused, "the reply is no JSON object"),
        (200, b"[]", RequestRefused, "the reply is no JSON object"),
        (200, b'{"prompt": 3}', RequestRefused, "the reply has no prompt"),
    ],
)
def test_another_server_is_told_in_one_line(status: int, body: bytes, kind: type[EndpointError], message: str) -> None:
    """A refused key, a server that is not llama.cpp, one that still loads."""
    with saying(status, body) as (url, _), pytest.raises(kind) as caught:
        count(url)
    assert caught.value.message == f"{url.removesuffix('/v1')}/apply-template: {message}"
    assert "llamacpp/" in caught.value.hint


def test_nothing_listening_is_told_in_one_line() -> None:
    """The address is named."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        root = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(EndpointDown) as caught:
        count(f"{root}/v1")
    assert caught.value.message.startswith(f"{root}/apply-template does not answer: ")


def test_a_text_on_its_own_is_counted_without_a_template() -> None:
    """One request, without special tokens."""
    with saying(200, b'{"tokens": [7, 8]}') as (url, seen):
        tokenizer = LlamaCppTokenizer(Place("llamacpp", "m", url))
        assert tokenizer.count("Hi there") == 2
        tokenizer.close()
    assert seen == [("/tokenize", {"content": "Hi there"})]


# The dialect ---------------------------------------------------------------------------------------------------


def body(constraint: Constraint | None = None, **extra: Any) -> dict[str, Any]:
    asked = msgspec.structs.replace(request(), constraint=constraint, extra_body=extra)
    return llamacpp.parameters(asked, "m")


SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}


def test_its_own_sampling_is_switched_off() -> None:
    """Its unasked top_k, min_p, penalty and prompt cache are neutral; a study's own value wins."""
    assert body() == {
        "model": "m",
        "max_tokens": 64,
        "temperature": 0.7,
        "top_p": 1.0,
        "seed": 0,
        "stream": False,
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "cache_prompt": False,
    }
    assert body(top_k=7)["top_k"] == 7


def test_json_is_asked_for_as_elsewhere() -> None:
    """`response_format`, which says the schema strictly."""
    assert body(Constraint("json_object"))["response_format"] == {"type": "json_object"}
    assert body(Constraint("json_schema", schema=SCHEMA))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
    }


def test_a_grammar_is_gbnf_or_the_schema_where_there_is_one() -> None:
    """One of `grammar` and `json_schema`, and never `response_format` beside it: the server refuses both at once."""
    told = body(Constraint("grammar", grammar=(Part("one_of", ("A", "B")),)))
    assert told["grammar"] == 'root ::= ("A" | "B")'
    assert not {"json_schema", "response_format"} & set(told)
    told = body(Constraint("grammar", schema=SCHEMA))
    assert told["json_schema"] == SCHEMA
    assert not {"grammar", "response_format"} & set(told)
