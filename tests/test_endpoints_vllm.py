"""vLLM: what its server is told, and what its tokenizer and version are asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest
from samples import request

from auditor.endpoints import Place
from auditor.endpoints.tokenizers import LlamaCppTokenizer, VllmTokenizer, build_of, tokenizer_of
from auditor.endpoints.vllm import parameters
from auditor.errors import EndpointDown, EndpointError, RequestRefused
from auditor.records import Constraint, Message, Part

SECRET = "hunter2-hunter2"
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}
DOCUMENTED = b'{"count": 3, "max_model_len": 4096, "tokens": [1, 2, 3], "token_strs": null}'


def body(constraint: Constraint | None = None, **extra: Any) -> dict[str, Any]:
    return parameters(msgspec.structs.replace(request(), constraint=constraint, extra_body=extra), "m")


@contextmanager
def saying(status: int, content: bytes) -> Iterator[tuple[str, list[tuple[str, Any, dict[str, str]]]]]:
    """A server that says this; its base URL, and the (path, body, headers) it saw."""
    seen: list[tuple[str, Any, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((self.path, json.loads(told) if told else None, dict(self.headers)))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815

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


# The dialect ---------------------------------------------------------------------------------------------------


def test_the_models_own_sampling_defaults_are_switched_off() -> None:
    """What its generation_config.json would add is sent as neutral; a study's own value wins."""
    assert body() == {
        "model": "m",
        "max_tokens": 64,
        "temperature": 0.7,
        "top_p": 1.0,
        "seed": 0,
        "stream": False,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    assert (body(top_k=20)["top_k"], body(top_k=20)["min_p"]) == (20, 0.0)


def test_json_is_asked_for_as_elsewhere() -> None:
    """`response_format`, so that arms can be compared between servers."""
    assert body(Constraint("json_object"))["response_format"] == {"type": "json_object"}
    assert body(Constraint("json_schema", schema=SCHEMA))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
    }


def test_a_grammar_is_a_regex_or_the_schema_where_there_is_one() -> None:
    """Exactly one field of `structured_outputs`, without `response_format`, which would go over it."""
    told = body(Constraint("grammar", grammar=(Part("text", ("answer: ",)), Part("one_of", ("A", "B")))))
    assert told["structured_outputs"] == {"regex": "answer: (A|B)"}
    assert "response_format" not in told
    told = body(Constraint("grammar", schema=SCHEMA))
    assert told["structured_outputs"] == {"json": SCHEMA}
    assert "response_format" not in told


# The tokenizer -------------------------------------------------------------------------------------------------


def test_a_prompt_is_counted_in_one_request_beside_v1() -> None:
    """The messages go as they are, with the turn that the model is to take; the count is the server's."""
    with saying(200, DOCUMENTED) as (url, seen):
        tokenizer = VllmTokenizer(Place("vllm", "acme/m", url, SECRET))
        assert tokenizer.count_prompt([Message("system", "Be brief."), Message("user", "Hi")]) == 3
        tokenizer.close()
    ((path, told, headers),) = seen
    assert path == "/tokenize"
    assert told == {
        "model": "acme/m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "add_generation_prompt": True,
    }
    assert headers["Authorization"] == f"Bearer {SECRET}"


def test_a_text_on_its_own_is_counted_without_special_tokens() -> None:
    """The padding and the answers are measured, not the model's way to begin."""
    with saying(200, DOCUMENTED) as (url, seen):
        tokenizer = VllmTokenizer(Place("vllm", "m", url, query={"code": "q1"}))
        assert tokenizer.count("answer: B") == 3
        tokenizer.close()
    assert seen[0][:2] == ("/tokenize?code=q1", {"model": "m", "prompt": "answer: B", "add_special_tokens": False})


@pytest.mark.parametrize(
    ("status", "content", "kind", "message"),
    [
        (401, b'{"error": "Unauthorized"}', RequestRefused, "HTTP 401: Unauthorized"),
        (404, b'{"error": {"message": "The model `m` does not exist."}}', RequestRefused, "HTTP 404: The model `m`"),
        (400, f"no: {SECRET}".encode(), RequestRefused, "HTTP 400: no: [key]"),
        (500, b"", EndpointDown, "HTTP 500"),
        (200, b"<html>", RequestRefused, "the reply is no JSON object"),
        (200, b"[3]", RequestRefused, "the reply is no JSON object"),
        (200, b'{"tokens": [1, 2]}', RequestRefused, "the reply has no count"),
        (200, b'{"count": "3"}', RequestRefused, "the reply has no count"),
    ],
)
def test_another_server_is_told_in_one_line(
    status: int, content: bytes, kind: type[EndpointError], message: str
) -> None:
    """A refused key, a server that is not vLLM, one that fails; never the key."""
    with saying(status, content) as (url, _):
        tokenizer = VllmTokenizer(Place("vllm", "m", url, SECRET))
        with pytest.raises(kind) as caught:
            tokenizer.count("Hi")
        tokenizer.close()
    assert caught.value.message.startswith(f"{url.removesuffix('/v1')}/tokenize: {message}")
    assert "vllm/" in caught.value.hint
    assert SECRET not in caught.value.message


def test_each_kind_of_server_has_its_tokenizer_or_none() -> None:
    """Where none is, tokens are estimated."""
    kinds = {"vllm": VllmTokenizer, "llamacpp": LlamaCppTokenizer, "local": LlamaCppTokenizer}
    for provider in ("openai", "openrouter", "compat", "vllm", "llamacpp", "local"):
        tokenizer = tokenizer_of(Place(provider, "m", "http://127.0.0.1:1/v1"))
        assert type(tokenizer) is kinds.get(provider, type(None))
        if tokenizer is not None:
            tokenizer.close()


# The build -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "content", "path", "expected"),
    [
        ("vllm", b'{"version": "0.11.2"}', "/version", "vLLM 0.11.2"),
        ("vllm", b'{"version": 3}', "/version", None),
        ("llamacpp", b'{"build_info": "b6543-1a2b3c", "n_ctx": 4096}', "/props", "llama.cpp b6543-1a2b3c"),
        ("local", b"{}", "/props", None),
    ],
)
def test_a_server_says_which_build_it_is(provider: str, content: bytes, path: str, expected: str | None) -> None:
    """Asked beside `/v1`; None where it does not say it."""
    with saying(200, content) as (url, seen):
        assert build_of(Place(provider, "m", url)) == expected
    assert seen[0][0] == path


def test_other_providers_say_no_build_and_are_not_asked() -> None:
    """Nothing listens there."""
    for provider in ("openai", "openrouter", "compat"):
        assert build_of(Place(provider, "m", "http://127.0.0.1:1/v1")) is None
