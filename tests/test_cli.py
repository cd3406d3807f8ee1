"""The command as a person uses it: options, messages, exit codes, pipes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import Loopback
from samples import micro_rows, write_jsonl
from simulated import CASES, reply

ROOT = Path(__file__).resolve().parents[1]


def auditor(*arguments: object, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command; PYTHONPATH makes the checkout importable from any folder."""
    command = [sys.executable, "-W", "error", "-m", "auditor.cli", *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "cases.jsonl", CASES)


def test_every_command_has_help_with_an_example(tmp_path: Path) -> None:
    """A person who knows nothing gets a sentence and an example to copy."""
    for command in ("run", "gate", "parse", "report", "import", "export", "serve", "check", "list"):
        told = auditor(command, "--help", cwd=tmp_path)
        assert told.returncode == 0
        assert "Examples:" in told.stdout
        assert f"auditor {command}" in told.stdout
        assert "\x1b" not in told.stdout


def test_every_option_of_run_exists(tmp_path: Path) -> None:
    """The options that scripts rely on."""
    told = auditor("run", "--help", cwd=tmp_path).stdout
    named = "models tasks wrappers parsers seeds items max-tokens temperature pad shots concurrency transport"
    for option in [*named.split(), "out", "study", "yes", "quiet"]:
        assert f"--{option}" in told


def test_a_run_and_what_it_prints(cases: Path, tmp_path: Path) -> None:
    """Results on stdout without colour codes, messages on stderr, exit 0; quiet leaves stderr empty."""
    with Loopback(reply) as server:
        options = ["--models", f"compat/m@{server.url}", "--tasks", cases, "--items", 4, "--seeds", 1, "--out", "here"]
        told = auditor("run", *options, cwd=tmp_path)
        quiet = auditor("run", *options, "--quiet", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1] == "report: here/report.html"
    assert "20 generations planned, into here" in told.stderr
    assert "\x1b" not in told.stdout + told.stderr
    assert max(map(len, told.stdout.splitlines())) <= 100
    assert quiet.stderr == ""
    assert quiet.stdout == told.stdout


WRONG: list[tuple[list[str], str, str]] = [
    (["run", "--models", "gpt-4"], "model 'gpt-4' is not", "openai/gpt-4.1-mini"),
    (["run", "--models", "opnai/gpt-4"], "unknown provider 'opnai'", "openai"),
    (["run", "--models", "openai/gpt-4.1"], "OPENAI_API_KEY is not set", "export OPENAI_API_KEY"),
    (["run", "--wrappers", "jsn"], "unknown wrapper 'jsn'", "did you mean json"),
    (["run", "--parsers", "normalised"], "unknown parser 'normalised'", "did you mean normalized"),
    (["run", "--tasks", "arithmetics"], "unknown task 'arithmetics'", "did you mean arithmetic"),
    (["run", "--seeds", "0"], "--seeds 0: must be at least 1", ""),
    (["run", "--seeds", "many"], "valid integer", "--help"),
    (["run", "--max-tokens", "lots"], "max-tokens", ""),
    (["run", "--pad", "words"], "pad", ""),
    (["run", "--nonsense"], "No such option", "--help"),
    (["run", "--study", "fsy"], "unknown study 'fsy'", "fsi"),
    (["gate", "json", "--tasks", "arithmetic"], "the gate has no rule", "--min-parseability"),
    (["gate", "json", "--max-fsi", "0.1"], "--max-fsi needs at least two wrappers", ""),
    (["gate", "json", "--min-parseability", "0.9", "--claim", "universe"], "unknown claim 'universe'", "population"),
    (["report", "nowhere"], "nowhere: no run here", ""),
    (["import", "nowhere.jsonl"], "nowhere.jsonl: no such file", ""),
    (["parse", "nowhere.jsonl"], "nowhere.jsonl: No such file", ""),
    (["parse", "r", "--labels", "nowhere.jsonl"], "nowhere.jsonl: No such file", ""),
    (["parse", "r", "--disagreements", "no/d.jsonl"], "no/d.jsonl: cannot be written", ""),
    (["list", "models", "--show", "x"], "unknown kind to show 'models'", ""),
    (["run", "--columns", "question"], "--columns 'question' is not name=column", ""),
]


@pytest.mark.parametrize(("arguments", "said", "hint"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_wrong_input_is_one_clear_line(tmp_path: Path, arguments: list[str], said: str, hint: str) -> None:
    """Exit 2, one line that names the value, a hint, no traceback, no box, nothing written."""
    told = auditor(*arguments, cwd=tmp_path)
    lines = told.stderr.strip().splitlines()
    assert told.returncode == 2, told.stderr
    assert lines[0].startswith("auditor: ")
    assert said in lines[0]
    assert len(lines) <= 2
    assert hint in told.stderr
    assert told.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_bad_files_name_file_and_line(tmp_path: Path) -> None:
    """Task and wrapper files: the file, the line, the column or placeholder, the value."""
    write_jsonl(tmp_path / "no_answer.jsonl", [{"id": "1", "question": "?", "choices": ["a", "b"]}])
    (tmp_path / "broken.jsonl").write_text('{"id": "1", "question": "?", "answer": "true"}\n{"id": \n')
    write_jsonl(tmp_path / "none.jsonl", [{"id": "1", "question": "?", "choices": ["a", "b"], "answer": "E"}])
    (tmp_path / "wrapper.toml").write_text(
        'name = "w"\nuser = """\n{{content}}\n{{pad}}\n{{anwser}}.\n"""\n[contract]\nkind = "text"\n'
    )
    before = sorted(path.name for path in tmp_path.iterdir())
    for arguments, said in (
        (["--tasks", "no_answer.jsonl"], ["no_answer.jsonl", "answer"]),
        (["--tasks", "broken.jsonl"], ["broken.jsonl:2"]),
        (["--tasks", "none.jsonl"], ["none.jsonl:1", "'E'"]),
        (["--wrappers", "wrapper.toml"], ["wrapper.toml:5", "{{anwser}}"]),
    ):
        told = auditor("run", *arguments, cwd=tmp_path)
        assert told.returncode == 2, told.stderr
        for part in said:
            assert part in told.stderr.splitlines()[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_import_report_export_parse(tmp_path: Path) -> None:
    """The border commands on one run: import, look again, write out, read with parsers."""
    write_jsonl(tmp_path / "scored.jsonl", micro_rows())
    assert auditor("import", "scored.jsonl", "--out", "x", cwd=tmp_path).returncode == 0
    assert auditor("report", "x", cwd=tmp_path).returncode == 0
    exported = auditor("export", "x", cwd=tmp_path).stdout.splitlines()
    assert len(exported) == 48
    assert json.loads(exported[0])["wrapper"] == "plain"
    parsed = auditor("parse", "x", cwd=tmp_path)
    assert {json.loads(line)["parser"] for line in parsed.stdout.splitlines()} == {"given"}
    for name in ("rows.csv", "rows.parquet", "rows.jsonl"):
        assert auditor("export", "x", "--to", name, cwd=tmp_path).returncode == 0
        assert (tmp_path / name).stat().st_size > 0
    assert auditor("export", "x", "--to", "rows.xlsx", cwd=tmp_path).returncode == 2
    assert auditor("export", "x", "--outcomes", "--to", "outcomes.parquet", cwd=tmp_path).returncode == 0


def test_parse_writes_only_json_lines_to_stdout(tmp_path: Path) -> None:
    """The table of agreement goes to stderr or to a file; stdout pipes."""
    row = {"model": "m", "task": "t", "item": "i", "wrapper": "json", "choices": ["A", "B"], "gold": "B"}
    write_jsonl(tmp_path / "r.jsonl", [{**row, "text": '{"answer": "B"}'}, {**row, "text": "B"}])
    told = auditor("parse", "r.jsonl", "--parsers", "strict,normalized", cwd=tmp_path)
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert list(lines[0]) == [
        *("model", "task", "item", "wrapper", "seed", "parser"),
        *("outcome", "value", "candidates", "reason", "needed", "correct"),
    ]
    assert [(line["parser"], line["outcome"]) for line in lines[:3]] == [
        ("strict", "parsed"),
        ("normalized", "parsed"),
        ("strict", "unparseable"),
    ]
    assert "strict              normalized                      1/2   0.500" in told.stderr
    assert auditor("parse", "r.jsonl", "--summary", "table.txt", cwd=tmp_path).stderr == ""
    assert "strict" in (tmp_path / "table.txt").read_text()
    dash = auditor("parse", "r.jsonl", "--parsers", "strict,normalized", "--summary", "-", cwd=tmp_path)
    assert (dash.stdout, dash.stderr) == (told.stdout, told.stderr)
    assert not (tmp_path / "-").exists()


def test_an_extractor_is_audited(tmp_path: Path) -> None:
    """Labels, the rows on which parsers or a label differ, and the whole comparison as JSON."""
    key = {"model": "m", "task": "t", "wrapper": "json", "seed": 0}
    row = {**key, "choices": ["A", "B"], "gold": "B"}
    texts = ['{"answer": "B"}', "B", "no idea", '{"answer": "A"}']
    write_jsonl(tmp_path / "r.jsonl", [{**row, "item": str(i), "text": text} for i, text in enumerate(texts)])
    labels = [{**key, "item": "1", "label": "B"}, {**key, "item": "2", "label": None, "ambiguous": True}]
    write_jsonl(tmp_path / "l.jsonl", [*labels, {**key, "item": "3", "label": "B"}])
    options = ["--labels", "l.jsonl", "--disagreements", "d.jsonl", "--summary", "s.json"]
    told = auditor("parse", "r.jsonl", "--parsers", "strict,normalized", *options, cwd=tmp_path)
    assert (told.returncode, told.stderr, len(told.stdout.splitlines())) == (0, "", 8)
    assert [json.loads(line) for line in (tmp_path / "d.jsonl").read_text().splitlines()] == [
        {**key, "item": "1", "arm": "none", "text": "B", "gold": "B", "label": "B", "ambiguous": False}
        | {"values": {"strict": None, "normalized": "B"}, "reasons": {"strict": "invalid_json"}},
        {**key, "item": "3", "arm": "none", "text": texts[3], "gold": "B", "label": "B", "ambiguous": False}
        | {"values": {"strict": "A", "normalized": "A"}, "reasons": {}},
    ]
    summary = json.loads((tmp_path / "s.json").read_text())
    assert (summary["rows"], summary["labels"]) == (4, 3)
    errors = [
        (each["parser"], each["reference"], each["n"], each["false_positive"]["count"], each["false_negative"]["count"])
        for each in summary["comparisons"]
    ]
    assert errors == [("strict", "normalized", 4, 0, 1), ("strict", "label", 3, 1, 1), ("normalized", "label", 3, 1, 0)]
    assert [each["name"] for each in summary["tolerances"]] == ["bare_answer"]


def test_a_parser_is_explained_on_a_reply(tmp_path: Path) -> None:
    """`list parsers --show` with a reply goes through its steps; choices and the wrapper's contract count."""
    options = ["list", "parsers", "--show", "normalized", "--wrapper", "json"]
    told = auditor(*options, "--choices", "A=iron,B=copper", "--reply", 'Sure: {"answer": "Copper"}', cwd=tmp_path)
    assert told.returncode == 0
    last = told.stdout.splitlines()[-2:]
    assert last == [
        "  locate_contract: found 'Copper' (extra_text)",
        "  one_value: parsed B, needed extra_text, option_text",
    ]
    piped = auditor(*options, "--choices", "A=iron,B=copper", "--reply", "-", cwd=tmp_path, stdin="{}")
    assert piped.stdout.splitlines()[-1] == "  locate_contract: unparseable: missing_key"
    for wrong in (["--choices", "A=x,B"], ["--answer-type", "letter"], ["--answer-type", "label"]):
        refused = auditor(*options, *wrong, "--reply", "B", cwd=tmp_path)
        assert (refused.returncode, refused.stderr.count("\n") <= 2, refused.stdout) == (2, True, "")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.toml", 'name = "p"\nsteps = ["classify_replie"]\n', "p.toml: parser 'p', step 1: unknown parser step"),
        ("p.toml", 'name = "p"\nsteps = [{step = "regex", regex_pattern = "("}]\n', "is not a regular expression"),
        (
            "p.yaml",
            "filter_list: [{name: x, filter: [{function: regx}]}]\n",
            "p.yaml:1: filter_list[0]",
        ),
        ("python:no_such_module:f", "", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_parser_that_cannot_be_is_one_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    """Unknown step, bad pattern, unknown filter, function that is not there: one line and a hint, exit 2, no output."""
    if text:
        (tmp_path / name).write_text(text)
    write_jsonl(tmp_path / "r.jsonl", micro_rows())
    told = auditor("parse", "r.jsonl", "--parsers", name, cwd=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert message in told.stderr.splitlines()[0]
    assert len(told.stderr.splitlines()) <= 2


def test_what_parse_reads_it_does_not_overwrite(tmp_path: Path) -> None:
    """An output that is also an input, or another output, is refused; nothing is written when a row is bad."""
    row = {"model": "m", "task": "t", "item": "i", "wrapper": "json", "choices": ["A", "B"], "text": "B"}
    source = write_jsonl(tmp_path / "r.jsonl", [row, {**row, "gold": "E"}])
    before = source.read_bytes()
    for options in (["--disagreements", "./r.jsonl"], ["--summary", "d", "--disagreements", "d"]):
        told = auditor("parse", "r.jsonl", *options, cwd=tmp_path)
        assert (told.returncode, "is named twice" in told.stderr, told.stdout) == (2, True, "")
    assert auditor("parse", "r.jsonl", "--disagreements", "d", cwd=tmp_path).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]
    assert source.read_bytes() == before


def test_a_link_is_written_through(tmp_path: Path) -> None:
    """A link (`/dev/stdout` is one) keeps its place; what it leads to is written."""
    row = {"model": "m", "task": "t", "item": "i", "wrapper": "json", "choices": ["A", "B"], "text": "B"}
    write_jsonl(tmp_path / "r.jsonl", [row])
    (tmp_path / "link").symlink_to("there")
    told = auditor("parse", "r.jsonl", "--disagreements", "link", cwd=tmp_path)
    assert (told.returncode, (tmp_path / "link").is_symlink()) == (0, True)
    assert json.loads((tmp_path / "there").read_text())["values"]["strict"] is None


def test_an_unknown_wrapper_is_said_once(tmp_path: Path) -> None:
    """`parse` and `import` read it as plain text and say so; of a row that was scored elsewhere nothing is read."""
    row = {"model": "m", "task": "t", "item": "i", "wrapper": "mine", "choices": ["A", "B"], "gold": "B", "text": "B"}
    write_jsonl(tmp_path / "r.jsonl", [{**row, "seed": seed} for seed in range(3)])
    said = "wrapper 'mine' is not known: its replies are read as plain text"
    assert auditor("parse", "r.jsonl", cwd=tmp_path).stderr.count(said) == 1
    assert auditor("import", "r.jsonl", "--out", "x", cwd=tmp_path).stderr.splitlines() == [said]
    (tmp_path / "mine.toml").write_text('name = "mine"\nuser = "{{content}}"\n[contract]\nkind = "text"\n')
    own = ["--wrappers", "mine.toml", "--summary", "s"]
    assert auditor("parse", "r.jsonl", *own, cwd=tmp_path).stderr == ""
    write_jsonl(tmp_path / "scored.jsonl", micro_rows())
    assert auditor("import", "scored.jsonl", "--out", "y", cwd=tmp_path).stderr == ""


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    """`auditor export x | head -1` is no error."""
    write_jsonl(tmp_path / "scored.jsonl", micro_rows())
    auditor("import", "scored.jsonl", "--out", "x", cwd=tmp_path)
    command = f"{sys.executable} -m auditor.cli export x | true; echo ${{PIPESTATUS[0]}}"
    told = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/bin:/usr/bin"},
    )
    assert told.stderr == ""
    assert told.stdout.strip() in ("0", "1")


def test_check_runs_our_own_catalogue(tmp_path: Path) -> None:
    """Every example in every wrapper and parser file holds."""
    told = auditor("check", cwd=tmp_path)
    assert told.returncode == 0, told.stdout
    assert all(line.startswith("ok") for line in told.stdout.splitlines())
    assert len(told.stdout.splitlines()) >= 9


def test_check_names_a_broken_example(tmp_path: Path) -> None:
    """An example that does not hold is found, with what was read."""
    example = '[[examples]]\nreply = "B."\nchoices = ["A", "B"]\nstrict = "B"\n'
    (tmp_path / "w.toml").write_text('name = "w"\nuser = "{{content}}"\n[contract]\nkind = "text"\n' + example)
    told = auditor("check", "w.toml", cwd=tmp_path)
    assert told.returncode == 2
    assert "FAIL w.toml: strict reads 'B.'" in told.stdout


def test_list_shows_what_there_is(tmp_path: Path) -> None:
    """Wrappers, parsers, tasks and models, and one of each explained."""
    assert "structured_delim" in auditor("list", cwd=tmp_path).stdout
    for what, name in (("parsers", "normalized"), ("tasks", "lookup"), ("models", "local/smollm2-135m-instruct")):
        assert name in auditor("list", what, cwd=tmp_path).stdout
    assert "<BEGIN ANSWER>" in auditor("list", "wrappers", "--show", "structured_delim", cwd=tmp_path).stdout
    assert "Steps:" in auditor("list", "parsers", "--show", "normalized", cwd=tmp_path).stdout
    assert "answer:" in auditor("list", "tasks", "--show", "arithmetic", cwd=tmp_path).stdout


def test_gate_writes_every_view(cases: Path, tmp_path: Path) -> None:
    """JSON, JUnit and markdown beside the console, and the exit code of the verdict."""
    with Loopback(reply) as server:
        options = ["--models", f"compat/m@{server.url}", "--tasks", cases, "--items", 20, "--seeds", 1, "--out", "g"]
        views = ["--json", "v.json", "--junit", "v.xml", "--markdown", "v.md"]
        told = auditor("gate", "json", *options, "--min-parseability", 0.95, *views, cwd=tmp_path)
        assert told.returncode == 1, told.stderr
        assert told.stdout.splitlines()[-1].startswith("FAIL")
        assert json.loads((tmp_path / "v.json").read_text())["judgement"] == "FAIL"
        assert "failure" in (tmp_path / "v.xml").read_text()
        assert "FAIL" in (tmp_path / "v.md").read_text()
        piped = auditor("gate", "json", *options, "--min-parseability", 0.1, "--json", "-", cwd=tmp_path)
    assert piped.returncode == 0
    assert json.loads(piped.stdout)["judgement"] == "PASS"


def test_a_study_file_speaks_and_options_override_it(cases: Path, tmp_path: Path) -> None:
    """`auditor.toml` in the folder is used and said so; an option wins over it."""
    with Loopback(reply) as server:
        models = f'name = "mine"\nmodels = ["compat/m@{server.url}"]\n'
        rest = 'tasks = ["cases.jsonl"]\nitems = 3\nseeds = 1\nwrappers = ["plain"]\npreflight = false\n'
        (tmp_path / "auditor.toml").write_text(models + rest)
        told = auditor("run", "--out", "x", "--items", 2, cwd=tmp_path)
        assert told.returncode == 0, told.stderr
        assert len(server.requests) == 2
    assert "using ./auditor.toml" in told.stderr


def test_version(tmp_path: Path) -> None:
    """`--version` prints the package's version."""
    import auditor as package

    assert auditor("--version", cwd=tmp_path).stdout == f"auditor {package.__version__}\n"
