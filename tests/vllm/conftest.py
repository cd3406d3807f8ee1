"""A real vLLM server on the CPU, started as `auditor serve vllm/...` starts one; `make test-vllm` brings it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from auditor.endpoints.vllm_server import VllmServer

NAME = "smollm2-135m-instruct"


@pytest.fixture(scope="session")
def vllm_url() -> Iterator[str]:
    """The base URL of a server of SmolLM2 under its own name, without a key."""
    model = os.environ.get("VLLM_MODEL")
    if not model or not os.environ.get("VLLM_PYTHON"):
        pytest.skip("VLLM_PYTHON and VLLM_MODEL do not say where vLLM and its model are (make test-vllm does)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "2")
        patch.setenv("VLLM_NO_USAGE_STATS", "1")
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.delenv("VLLM_API_KEY", raising=False)
        with VllmServer(model, NAME, arguments=["--enforce-eager", "--max-model-len", "4096"]) as server:
            yield server.base_url
