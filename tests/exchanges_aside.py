"""Replies to what is asked beside completions, made up: model lists and prices, keys, tokenizers, versions."""

from __future__ import annotations

from typing import Any

from exchanges import exchange, llama_error


def _router_model(name: str, pricing: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "canonical_slug": name,
        "name": name,
        "created": 1790000000,
        "context_length": 131072,
        "architecture": {"modality": "text->text", "tokenizer": "Other", "instruct_type": None},
        "pricing": pricing,
        "top_provider": {"context_length": 131072, "max_completion_tokens": 16384, "is_moderated": False},
        "per_request_limits": None,
        "supported_parameters": ["max_tokens", "temperature", "seed", "response_format", "structured_outputs"],
    }


_PLAIN_PRICE = {"prompt": "0.00000002", "completion": "0.00000005", "request": "0", "image": "0"}
_LONG_PRICE = {
    "prompt": "0.00000125",
    "completion": "0.00001",
    "request": "0",
    "internal_reasoning": "0.00001",
    "overrides": [{"min_prompt_tokens": 200000, "prompt": "0.0000025", "completion": "0.000015"}],
}

ASIDE = {
    "openrouter/models": exchange(
        "models",
        200,
        {
            "data": [
                _router_model("maker/model-8b", _PLAIN_PRICE),
                _router_model("maker/model-8b:free", {"prompt": "0", "completion": "0"}),
                _router_model("maker/model-long", _LONG_PRICE),
                _router_model("openrouter/auto", {"prompt": "-1", "completion": "-1"}),
            ]
        },
    ),
    "openrouter/endpoints": exchange(
        "endpoints",
        200,
        {
            "data": {
                "id": "maker/model-8b",
                "name": "Maker: Model 8B",
                "created": 1790000000,
                "endpoints": [
                    {
                        "name": f"{provider} | maker/model-8b",
                        "provider_name": provider,
                        "tag": tag,
                        "quantization": "fp8",
                        "context_length": 131072,
                        "max_completion_tokens": 16384,
                        "pricing": _PLAIN_PRICE,
                        "supported_parameters": ["max_tokens", "temperature", "seed"],
                        "status": 0,
                        "uptime_last_30m": 99.9,
                    }
                    for provider, tag in (("Acme", "acme/fp8"), ("Bolt", "bolt"))
                ],
            }
        },
    ),
    "openrouter/key": exchange(
        "key",
        200,
        {
            "data": {
                "label": "sk-or-v1-abc...123",
                "usage": 25.5,
                "limit": 100,
                "limit_remaining": 74.5,
                "is_free_tier": False,
                "rate_limit": {"requests": -1, "interval": "10s"},
            }
        },
    ),
    "vllm/models": exchange(
        "models",
        200,
        {
            "object": "list",
            "data": [
                {
                    "id": "maker/model-8b",
                    "object": "model",
                    "created": 1790000000,
                    "owned_by": "vllm",
                    "root": "maker/model-8b",
                    "parent": None,
                    "max_model_len": 8192,
                }
            ],
        },
    ),
    "vllm/tokenize": exchange(
        "tokenize", 200, {"count": 3, "max_model_len": 8192, "tokens": [1, 9906, 1917], "token_strs": None}
    ),
    "vllm/version": exchange("version", 200, {"version": "0.30.0"}),
    "llamacpp/props": exchange(
        "props",
        200,
        {
            "default_generation_settings": {"id": 0, "n_ctx": 4096, "params": {"temperature": 0.8, "top_k": 40}},
            "total_slots": 4,
            "model_path": "/models/model.gguf",
            "chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}",
            "build_info": "b9999-abcdef0",
        },
    ),
    "llamacpp/models": exchange(
        "models",
        200,
        {
            "object": "list",
            "data": [{"id": "model.gguf", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}],
        },
    ),
    "llamacpp/tokenize": exchange("tokenize", 200, {"tokens": [1, 9906, 1917]}),
    "llamacpp/template": exchange("template", 200, {"prompt": "<|user|>Hello world<|end|><|assistant|>"}),
    "llamacpp/health_loading": exchange("health", 503, llama_error(503, "unavailable_error", "Loading model")),
    "llamacpp/health": exchange("health", 200, {"status": "ok"}),
}
"""By dialect and name."""
