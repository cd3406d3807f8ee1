"""A vLLM server on loopback, in a process group of its own, run by the Python that vLLM is installed for."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import httpx

from auditor.endpoints.transport import one_line
from auditor.errors import EndpointDown, UsageError

MODULE = "vllm.entrypoints.openai.api_server"
KEY = "VLLM_API_KEY"
"""vLLM reads it itself; a command line can be read by every user of the machine."""

_OURS = ("--model", "--served-model-name", "--host", "--port")
_UNREACHABLE = ("--uds", "--ssl-keyfile", "--ssl-certfile")
_POLL = 0.5
_GRACE = 20.0
_KEPT, _SHOWN = 400, 3
_LOGGED = re.compile(r"\([^)]*pid=\d+\) (?:[A-Z]+ \S+ \S+ \[[^]]*\] ?)?")
_NAMED = re.compile(r"(error|exception)[:,] ", re.IGNORECASE)
_NO_CAUSE = re.compile(r"See root cause above|\bWARNING\b")


def interpreter(environment: Mapping[str, str] = os.environ) -> str:
    """The Python that has vLLM: this one, or the one that VLLM_PYTHON names. Raises UsageError."""
    spec = importlib.util.find_spec("vllm")
    if spec is not None and spec.origin is not None:  # a folder that merely is called vllm has no origin
        return sys.executable
    named = environment.get("VLLM_PYTHON", "")
    if not named:
        raise UsageError(
            "serving a vllm/ model needs vLLM, which is not installed here",
            "pip install vllm, or VLLM_PYTHON=/path/to/python of an environment that has it",
        )
    found = shutil.which(named)
    if found is None:
        raise UsageError(f"VLLM_PYTHON {named!r} is not a program", "the path of a Python that has vLLM")
    return found


def command(python: str, model: str, name: str, port: int, arguments: Sequence[str] = ()) -> list[str]:
    """The command line, the user's own arguments last and untouched. Raises UsageError for one that is ours to say."""
    for argument in arguments:
        _check(argument)
    ours = ["--model", model, "--served-model-name", name, "--host", "127.0.0.1", "--port", str(port)]
    return [python, "-m", MODULE, *ours, *arguments]


def _check(argument: str) -> None:
    """vLLM takes `--served_model_name`, `--port=1` and, as argparse does, `--por`."""
    name = argument.partition("=")[0].replace("_", "-")
    if len(name) < 3 or not name.startswith("--"):
        return
    if "--api-key".startswith(name):
        raise UsageError(f"{name} would show the key to every user of this machine", f"set {KEY} instead")
    if any(option.startswith(name) for option in _UNREACHABLE):
        raise UsageError(f"{name} cannot be used: the server is reached by http on loopback")
    if any(option.startswith(name) for option in _OURS):
        hint = "the model and its name stand in vllm/<path or id>, the port in --port; the host is always 127.0.0.1"
        raise UsageError(f"{name} cannot be given after --: auditor sets it", hint)


class VllmServer:
    """A vLLM server that lives as long as this object."""

    def __init__(self, model: str, name: str, *, port: int = 0, arguments: Sequence[str] = ()) -> None:
        self.model = model
        self.name = name
        self.base_url = ""
        self._port = port
        self._arguments = tuple(arguments)
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._child: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> VllmServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> str:
        """Start and wait until it is healthy, however long loading takes; returns the base URL.

        Raises UsageError, and EndpointDown with what the process said last when it ends instead.
        """
        python, port = interpreter(), _free(self._port)
        self._child = subprocess.Popen(
            command(python, self.model, self.name, port, self._arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env=os.environ | {"PYTHONSAFEPATH": "1"},  # as -P, which older Pythons refuse: no import from this folder
        )
        self._reader = threading.Thread(target=self._read, args=(self._child,), daemon=True)
        self._reader.start()
        try:
            self._await_health(self._child, f"http://127.0.0.1:{port}/health")
        except BaseException:
            self.stop()
            raise
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self.base_url

    def wait(self) -> None:
        """Until it ends by itself, which a server should not. Raises EndpointDown."""
        if self._child is not None:
            self._child.wait()
            raise self._ended(self._child)

    def stop(self) -> None:
        """End it as Ctrl-C does; what is left of its processes after that, by force."""
        if self._child is None:
            return
        child, self._child = self._child, None
        try:
            child.send_signal(signal.SIGINT)
            child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _kill_group(child)
            if self._reader is not None:
                self._reader.join(_GRACE)

    def _read(self, child: subprocess.Popen[str]) -> None:
        """An unread pipe would stop the server once it is full."""
        assert child.stdout is not None
        with child.stdout as said:
            self._lines.extend(said)

    def _await_health(self, child: subprocess.Popen[str], url: str) -> None:
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            while child.poll() is None:
                with contextlib.suppress(httpx.HTTPError):
                    if client.get(url).status_code == 200:
                        return
                time.sleep(_POLL)
        raise self._ended(child)

    def _ended(self, child: subprocess.Popen[str]) -> EndpointDown:
        _kill_group(child)
        if self._reader is not None:
            self._reader.join(_GRACE)
        key = os.environ.get(KEY)
        lines = [line.replace(key, "[key]") if key else line for line in self._lines]
        said = "".join(f"\n    {line}" for line in cause(lines))
        return EndpointDown(f"vLLM ended with status {child.returncode} while serving {self.model}", f"it said:{said}")


def cause(lines: Iterable[str]) -> list[str]:
    """The last lines that name an error, each once; where none does, the last lines. Tracebacks bury the cause."""
    told = (one_line(_LOGGED.sub("", line, count=1)) for line in lines if not _NO_CAUSE.search(line))
    kept = [line for line in told if line]
    named = [line for line in kept if _NAMED.search(line)]
    return list(dict.fromkeys(named or kept))[-_SHOWN:]


def _kill_group(child: subprocess.Popen[str]) -> None:
    """The server and the engine processes it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _free(port: int) -> int:
    """The port, or for 0 a free one. Raises UsageError where it is taken: the health of another server is not ours."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"port {port} cannot be used: {why}", "name another --port") from error
        taken: int = probe.getsockname()[1]
        return taken
