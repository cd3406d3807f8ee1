"""The server that the study runs against is a real vLLM."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

MODEL = "smollm2-135m-instruct"
ASKED = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture
def client(vllm_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=vllm_url.removesuffix("/v1"), trust_env=False, timeout=120) as client:
        yield client


def test_it_completes(client: httpx.Client) -> None:
    """The capital of France, under the model's name, and usage as the client counts it."""
    body = {"model": MODEL, "messages": ASKED, "max_tokens": 16, "temperature": 0}
    answer = client.post("/v1/chat/completions", json=body).raise_for_status().json()
    assert "Paris" in answer["choices"][0]["message"]["content"]
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["prompt_tokens"] == 37


def test_it_tokenizes(client: httpx.Client) -> None:
    """`/tokenize` counts messages as the completion does, and knows the special tokens of the chat template."""
    counted = client.post("/tokenize", json={"model": MODEL, "messages": ASKED}).raise_for_status().json()
    assert (counted["count"], len(counted["tokens"]), counted["max_model_len"]) == (37, 37, 4096)
    plain = client.post("/tokenize", json={"prompt": "<|im_start|>"}).raise_for_status().json()
    assert plain["tokens"] == [1]


def test_it_holds_to_a_regex(client: httpx.Client) -> None:
    """What the prompt asks for gives way to the constraint."""
    asked = [{"role": "user", "content": "Reply with the single word purple and nothing else."}]
    held = {"structured_outputs": {"regex": "(red|green)"}}
    body = {"model": MODEL, "messages": asked, "max_tokens": 16, "temperature": 0} | held
    answer = client.post("/v1/chat/completions", json=body).raise_for_status().json()
    assert answer["choices"][0]["message"]["content"] in ("red", "green")
