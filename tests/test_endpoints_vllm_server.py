"""A vLLM server of our own: which Python runs it, what it is told, and how its life and death are followed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from auditor import serving
from auditor.endpoints.vllm_server import MODULE, VllmServer, cause, command, interpreter
from auditor.errors import EndpointDown, UsageError

ROOT = Path(__file__).resolve().parents[1]
KEY = "vllm-test-key-0123456789"

HEALTHY = """
import http.server, json, os, subprocess, sys, time
told = sys.argv[1:]
born = time.monotonic()
engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready = time.monotonic() - born > 0.7
        told_of = {"argv": told, "engine": engine.pid, "key": os.environ.get("VLLM_API_KEY"), "path": sys.path[0]}
        body = b"" if self.path == "/health" else json.dumps(told_of).encode()
        self.send_response(200 if ready or self.path != "/health" else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
print("x" * 200_000, flush=True)
http.server.HTTPServer(("127.0.0.1", int(told[told.index("--port") + 1])), Handler).serve_forever()
"""

DYING = """
import os, sys, time
time.sleep(0.2)
print("INFO loading", flush=True)
print("(EngineCore pid=7) ERROR 11-30 07:53:06 [core.py:9] ValueError: no memory, key " + os.environ["VLLM_API_KEY"])
raise RuntimeError("Engine core initialization failed. See root cause above.")
"""


def fake(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `vllm` that this Python, and any it starts, finds."""
    module = folder.joinpath(*MODULE.split(".")).with_suffix(".py")
    module.parent.mkdir(parents=True)
    for package in module.parents[:3]:
        (package / "__init__.py").touch()
    module.write_text(body)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def gone(pid: int, within: float = 5.0) -> bool:
    """Whether a process ends, or is one that nobody asked about yet."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z":
            return True
        time.sleep(0.05)
    return False


# What it is told ------------------------------------------------------------------------------------------------


def test_the_command_line() -> None:
    """Model, name, loopback and port are ours, the user's own arguments come last and untouched."""
    told = command("/p/python", "models/m", "m", 8001, ["--enforce-eager", "--max-model-len", "2048", "-O0"])
    assert told == [
        *("/p/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "models/m"),
        *("--served-model-name", "m", "--host", "127.0.0.1", "--port", "8001"),
        *("--enforce-eager", "--max-model-len", "2048", "-O0"),
    ]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--host", "--host cannot be given after --: auditor sets it"),
        ("--port=9", "--port cannot be given after --: auditor sets it"),
        ("--por", "--por cannot be given after --: auditor sets it"),
        ("--model", "--model cannot be given after --: auditor sets it"),
        ("--served_model_name=x", "--served-model-name cannot be given after --: auditor sets it"),
        ("--uds", "--uds cannot be used: the server is reached by http on loopback"),
        ("--ssl-keyfile=k", "--ssl-keyfile cannot be used: the server is reached by http on loopback"),
        ("--api-key", "--api-key would show the key to every user of this machine"),
    ],
)
def test_what_is_ours_to_say(argument: str, message: str) -> None:
    """The error names the option, in whichever spelling vLLM would take it, and never its value."""
    with pytest.raises(UsageError) as caught:
        command("python", "m", "m", 8001, ["--enforce-eager", argument, "value"])
    assert caught.value.message == message


@pytest.mark.parametrize("argument", ["--", "-", "--model-impl", "--hf-token", "value", "--port-x", "http://--host"])
def test_what_merely_looks_alike_is_the_users(argument: str) -> None:
    """Longer names, values and dashes are passed on."""
    assert command("python", "m", "m", 8001, [argument])[-1] == argument


# Which Python ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_vllm")
def test_without_vllm_the_error_says_what_to_install() -> None:
    """One line, and both ways out in the hint."""
    with pytest.raises(UsageError, match="needs vLLM, which is not installed here") as caught:
        interpreter({})
    assert "pip install vllm" in caught.value.hint
    assert "VLLM_PYTHON=" in caught.value.hint


@pytest.mark.usefixtures("no_vllm")
def test_another_python_can_be_named() -> None:
    """VLLM_PYTHON is a path or a program on PATH; one that is not there is told by its name."""
    assert interpreter({"VLLM_PYTHON": sys.executable}) == sys.executable
    with pytest.raises(UsageError, match="VLLM_PYTHON '/nowhere/python' is not a program"):
        interpreter({"VLLM_PYTHON": "/nowhere/python"})


def test_this_python_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where vllm can be imported here, nothing else is asked."""
    fake(tmp_path, HEALTHY, monkeypatch)
    assert interpreter({"VLLM_PYTHON": "/nowhere/python"}) == sys.executable


@pytest.mark.usefixtures("no_vllm")
def test_a_folder_called_vllm_is_no_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would import any folder of that name."""
    (tmp_path / "vllm").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="not installed here"):
        interpreter({})


@pytest.fixture
def no_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without vLLM, also where the tests run in one that has it."""
    without = [entry for entry in sys.path if not Path(entry, "vllm", "__init__.py").exists()]
    monkeypatch.setattr(sys, "path", without)


# Life and death -------------------------------------------------------------------------------------------------


def test_a_server_is_waited_for_and_ended_with_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not healthy at once and writes much; the key is in its environment only; its engine ends with it."""
    fake(tmp_path, HEALTHY, monkeypatch)
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with VllmServer("org/model", "m", arguments=["--enforce-eager"]) as server:
        assert server.base_url.startswith("http://127.0.0.1:")
        with httpx.Client(trust_env=False) as client:
            seen = client.get(f"{server.base_url}/told").json()
        assert seen["argv"][:4] == ["--model", "org/model", "--served-model-name", "m"]
        assert seen["argv"][-1] == "--enforce-eager"
        assert seen["key"] == KEY
        assert KEY not in seen["argv"]
        assert seen["path"] == str(tmp_path), "modules in the user's folder would be imported"
        assert not gone(seen["engine"], within=0.1)
    assert gone(seen["engine"])
    with pytest.raises(httpx.ConnectError), httpx.Client(trust_env=False) as client:
        client.get(server.base_url)


def test_a_server_that_dies_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the exit status and the cause, not the traceback, and hides the key."""
    fake(tmp_path, DYING, monkeypatch)
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    with pytest.raises(EndpointDown) as caught:
        VllmServer("org/model", "m").start()
    assert caught.value.message == "vLLM ended with status 1 while serving org/model"
    assert caught.value.hint == "it said:\n    ValueError: no memory, key [key]"


def test_a_server_that_dies_later_is_an_error_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for a server ends when it does, with its status."""
    fake(tmp_path, HEALTHY, monkeypatch)
    with VllmServer("org/model", "m") as server, httpx.Client(trust_env=False) as client:
        engine = client.get(f"{server.base_url}/told").json()["engine"]
        parent = int(Path(f"/proc/{engine}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
        with pytest.raises(EndpointDown, match="ended with status -9"):
            server.wait()
        assert gone(engine)


def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server's health would be taken for ours."""
    fake(tmp_path, HEALTHY, monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} cannot be used"):
            VllmServer("m", "m", port=port).start()


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["usage: x", "  [--a A]", "x.py: error: unknown: --b"], ["x.py: error: unknown: --b"]),
        (["(Api pid=1) WARNING 1 2 [a.py:3] `OSError: [Errno 24]` may come", "", "Killed"], ["Killed"]),
        (["KeyError: 'a'", "(E pid=2) ERROR 11-30 07:53 [c.py:1] KeyError: 'a'", "  ^^^"], ["KeyError: 'a'"]),
        ([f"ValueError: {n}" for n in range(9)], ["ValueError: 6", "ValueError: 7", "ValueError: 8"]),
        (["a\x1b[31m", "b"], ["a [31m", "b"]),
        ([], []),
    ],
)
def test_the_cause_is_found_in_what_was_written(lines: list[str], shown: list[str]) -> None:
    """Lines that name an error, without log prefixes, warnings, repetitions and control characters."""
    assert cause(lines) == shown


# auditor serve --------------------------------------------------------------------------------------------------


SERVE = """
import sys
from auditor import serving
def say(text): print(text, file=sys.stderr, flush=True)
def tell(text): print(text, flush=True)
try:
    serving.serve(sys.argv[1], 0, 1, say=say, tell=tell, arguments=sys.argv[2:])
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_serve_prints_what_to_use_and_ends_with_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """One --models value on standard output, a folder's name in it; the key is named, not shown; nothing stays."""
    fake(tmp_path, HEALTHY, monkeypatch)
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    (tmp_path / "smol").mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", SERVE, f"vllm/{tmp_path / 'smol'}", "--enforce-eager"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        value = child.stdout.readline().strip()
        assert value.startswith("vllm/smol@http://127.0.0.1:")
        with httpx.Client(trust_env=False) as client:
            seen = client.get(f"{value.partition('@')[2]}/told").json()
        assert seen["argv"][:4] == ["--model", str(tmp_path / "smol"), "--served-model-name", "smol"]
    finally:
        child.send_signal(number)
        _, said = child.communicate(timeout=20)
    assert child.returncode == 130
    assert gone(seen["engine"])
    assert f"use it as: auditor run --models {value}" in said
    assert "the api_key that VLLM_API_KEY holds" in said
    assert KEY not in said


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("openai/gpt", [], "'openai/gpt' is not a model this machine can run"),
        (
            "vllm/m@http://127.0.0.1:8000/v1",
            [],
            "'vllm/m@http://127.0.0.1:8000/v1' is not a model this machine can run",
        ),
        ("local/smollm2-135m-instruct", ["--x"], "'local/smollm2-135m-instruct' takes no arguments after --: '--x'"),
    ],
)
def test_what_cannot_be_served(model: str, arguments: list[str], message: str) -> None:
    """A model of elsewhere, a server that already runs, and vLLM's arguments for llama.cpp."""
    with pytest.raises(UsageError) as caught:
        serving.serve(model, 0, 1, say=print, tell=print, arguments=arguments)
    assert caught.value.message == message
