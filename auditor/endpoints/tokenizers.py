"""Counting tokens with a server's own tokenizer and chat template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from auditor.endpoints.asking import Asker
from auditor.endpoints.places import Place
from auditor.errors import RequestRefused
from auditor.records import Message

_HINTS = {
    "llamacpp": "llamacpp/ is for llama.cpp's own server with the right key; any other one is compat/<model>@<url>",
    "vllm": "vllm/ is for vLLM's own server with the right key; name any other one compat/<model>@<url>",
}


class LlamaCppTokenizer:
    """llama.cpp: the template first, then tokens. Raises EndpointDown, RequestRefused."""

    def __init__(self, place: Place) -> None:
        self._asker = Asker(place, place.base_url.removesuffix("/v1"), _HINTS["llamacpp"])

    def context(self) -> int | None:
        """Tokens of a prompt and its reply together, at most; a longer reply is cut without a word."""
        told = self._asker.get("/props").get("default_generation_settings")
        room = told.get("n_ctx") if isinstance(told, dict) else None
        return room if isinstance(room, int) and room > 0 else None

    def count(self, text: str) -> int:
        """Tokens of a text on its own."""
        return len(self._asker.post("/tokenize", {"content": text}, "tokens", list))

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation as the model sees it."""
        prompt = self._asker.post("/apply-template", {"messages": msgspec.to_builtins(messages)}, "prompt", str)
        told: dict[str, Any] = {"content": prompt, "add_special": True, "parse_special": True}
        return len(self._asker.post("/tokenize", told, "tokens", list))

    def close(self) -> None:
        """Give the connections back."""
        self._asker.close()


class VllmTokenizer:
    """vLLM: one call for either. Raises EndpointDown, RequestRefused."""

    def __init__(self, place: Place) -> None:
        self._asker = Asker(place, place.base_url.removesuffix("/v1"), _HINTS["vllm"])
        self._model = place.model_id

    def context(self) -> int | None:
        """Tokens of a prompt and its reply together, at most; a longer reply is cut without a word.

        Raises RequestRefused where the server does not list the model.
        """
        listed = self._asker.get("/v1/models").get("data")
        rooms = {one.get("id"): one.get("max_model_len") for one in listed or () if isinstance(one, dict)}
        if self._model not in rooms:
            names = ", ".join(str(name) for name in rooms) or "none"
            raise RequestRefused(f"the server does not serve {self._model!r}", f"it serves: {names}")
        room = rooms[self._model]
        return room if isinstance(room, int) else None

    def count(self, text: str) -> int:
        """Tokens of a text on its own."""
        return self._count({"prompt": text, "add_special_tokens": False})

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation as the model sees it."""
        return self._count({"messages": msgspec.to_builtins(messages), "add_generation_prompt": True})

    def close(self) -> None:
        """Give the connections back."""
        self._asker.close()

    def _count(self, told: dict[str, Any]) -> int:
        return self._asker.post("/tokenize", {"model": self._model, **told}, "count", int)


Tokenizer = LlamaCppTokenizer | VllmTokenizer


def tokenizer_of(place: Place) -> Tokenizer | None:
    """The tokenizer of the server at a place, where its kind has one."""
    match place.provider:
        case "local" | "llamacpp":
            return LlamaCppTokenizer(place)
        case "vllm":
            return VllmTokenizer(place)
        case _:
            return None


def build_of(place: Place) -> str | None:
    """Which build of a server this is: enforcement is proved for one build only. None where nobody says it."""
    match place.provider:
        case "local" | "llamacpp":
            path, field = "/props", "build_info"
        case "vllm":
            path, field = "/version", "version"
        case _:
            return None
    asker = Asker(place, place.base_url.removesuffix("/v1"), _HINTS.get(place.provider, ""))
    try:
        told = asker.get(path).get(field)
    finally:
        asker.close()
    return f"{'vLLM' if place.provider == 'vllm' else 'llama.cpp'} {told}" if isinstance(told, str) else None
