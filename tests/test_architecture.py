"""Who may import whom, who may touch the outside, and how large a file may be."""

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "auditor"
FILES = sorted(PACKAGE.rglob("*.py"))

STAGES = frozenset(
    {"errors", "records", "figures", "sql", "catalogue", "study", "settings", "prompts", "constraints", "plan"}
    | {"parsing", "stats", "measure", "analysis", "arms", "verdict", "estimate", "tasks", "endpoints", "pacing", "send"}
    | {"probing", "lanes", "journal", "store", "stored", "rows", "report", "progress", "prepare", "audit", "gating"}
    | {"evidence", "labels", "reading", "extractor", "extractor_child", "lm_eval"}
    | {"folders", "results", "border", "checking", "listing", "serving", "options", "fields", "order", "ranges"}
    | {"tally", "across", "gaps", "comparisons", "groups"}
)
ANYTHING = STAGES | {"auditor"}

ALLOWED: dict[str, frozenset[str] | set[str]] = {
    "errors": set(),
    "records": set(),
    "sql": {"records"},
    "lm_eval": {"errors", "records"},
    "catalogue": {"auditor", "errors", "lm_eval", "records"},
    "extractor_child": set(),
    "extractor": {"errors", "extractor_child", "parsing", "records"},
    "reading": {"catalogue", "extractor", "parsing", "records", "study"},
    "figures": {"records"},
    "study": {"errors", "records"},
    "settings": {"errors", "records", "study"},
    "options": {"errors", "settings"},
    "prompts": {"catalogue", "records"},
    "constraints": {"records"},
    "plan": {"constraints", "prompts", "records"},
    "estimate": {"records"},
    "parsing": {"parsing", "records", "errors"},
    "stats": {"stats"},
    "measure": {"records"},
    "evidence": {"figures", "measure", "stats"},
    "across": {"figures", "measure", "stats"},
    "gaps": {"figures", "stats"},
    "comparisons": {"figures", "measure", "stats"},
    "groups": {"figures", "measure", "stats"},
    "analysis": {"across", "arms", "comparisons", "evidence", "fields", "figures", "gaps", "groups", "measure", "order"}
    | {"ranges", "records", "stats"},
    "arms": {"figures", "measure", "records", "stats"},
    "fields": {"figures", "measure", "stats"},
    "order": {"figures", "measure", "stats"},
    "ranges": {"figures", "stats"},
    "verdict": {"figures"},
    "tasks": {"tasks", "records", "errors"},
    "endpoints": {"endpoints", "records", "errors"},
    "pacing": set(),
    "send": {"errors", "pacing", "records"},
    "probing": {"endpoints", "errors", "figures", "pacing", "prompts", "records", "send"},
    "lanes": {"constraints", "endpoints", "errors", "estimate", "pacing", "parsing", "plan", "prepare", "probing"}
    | {"prompts", "records", "store", "study"},
    "stored": {"records"},
    "store": {"sql", "errors", "figures", "records", "stored"},
    "journal": {"records", "store"},
    "rows": {"errors", "records"},
    "labels": {"errors", "records", "rows"},
    "tally": {"records", "stats"},
    "report": {"report", "figures", "records", "errors", "tally", "verdict"},
    "progress": {"estimate", "send"},
    "prepare": {
        "catalogue",
        "constraints",
        "errors",
        "figures",
        "parsing",
        "plan",
        "prompts",
        "reading",
        "records",
        "study",
        "tasks",
    },
    "folders": {"errors", "store"},
    "results": {
        "analysis",
        "fields",
        "figures",
        "measure",
        "parsing",
        "reading",
        "records",
        "report",
        "store",
        "stored",
        "study",
    },
    "border": {"auditor", "catalogue", "errors", "folders", "labels", "measure", "parsing", "reading", "records"}
    | {"report", "results", "rows", "store", "stored", "tally"},
    "audit": ANYTHING,
    "gating": {
        "audit",
        "errors",
        "figures",
        "folders",
        "measure",
        "prepare",
        "records",
        "report",
        "stats",
        "store",
        "study",
        "verdict",
    },
    "checking": ANYTHING,
    "listing": ANYTHING,
    "serving": ANYTHING,
    "cli": ANYTHING,
}
"""Module or package -> what of ours it may import (`auditor`: the package itself). Stages meet in `audit`."""

PURE = (
    "plan",
    "constraints",
    "estimate",
    "parsing",
    "measure",
    "stats",
    "tally",
    "verdict",
    "analysis",
    "arms",
    "evidence",
    "fields",
    "order",
    "ranges",
)
OUTSIDE = frozenset(
    {"os", "io", "pathlib", "sqlite3", "socket", "ssl", "select", "selectors", "http", "urllib", "httpx", "aiohttp"}
    | {"requests", "openai", "asyncio", "threading", "multiprocessing", "concurrent", "subprocess", "shutil", "glob"}
    | {"tempfile", "logging", "rich", "typer", "click", "huggingface_hub", "pyarrow"}
)
HEAVY = ("numpy", "pandas", "scipy", "aiohttp", "httpx", "pyarrow", "rich", "openai", "jsonschema", "jinja2")


def part(file: Path) -> str:
    """The stage a file belongs to: its package, or the module itself."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def imports(file: Path) -> frozenset[str]:
    """Absolute names of everything a file imports, wherever in it the import stands."""
    return frozenset(_imports(file))


def _imports(file: Path) -> Iterator[str]:
    package = ("auditor", *file.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def ours(file: Path) -> set[str]:
    """The stages a file imports, and `auditor` where it imports the package itself."""
    found = set()
    for name in imports(file):
        first, _, rest = name.partition(".")
        if first == "auditor":
            stage = rest.partition(".")[0]
            found.add(stage if stage in ALLOWED else "auditor")
    return found


def name_of(file: Path) -> str:
    return str(file.relative_to(PACKAGE))


def test_the_reader_sees_every_form_of_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute, relative, nested and plain imports are all seen; otherwise the tests below would hold nothing."""
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "tasks").mkdir()
    file = tmp_path / "tasks" / "x.py"
    file.write_text(
        "import os.path\nimport auditor.store\nfrom auditor import plan, __version__\nfrom ..errors import unknown\n"
        "from .. import send\nfrom . import words\nfrom .words import A\ndef f():\n    from auditor.stats import wins\n"
    )
    assert imports(file) == {
        "os.path",
        "auditor.store",
        "auditor.plan",
        "auditor.__version__",
        "auditor.errors.unknown",
        "auditor.send",
        "auditor.tasks.words",
        "auditor.tasks.words.A",
        "auditor.stats.wins",
    }
    assert ours(file) == {"store", "plan", "auditor", "errors", "send", "tasks", "stats"}


def test_the_table_is_complete() -> None:
    """Every module and package has its row in the table, and no row is left of one that is gone."""
    assert {part(file) for file in FILES} - {"__init__"} == set(ALLOWED)
    assert STAGES | {"cli"} == set(ALLOWED)


@pytest.mark.parametrize("file", [file for file in FILES if part(file) != "__init__"], ids=name_of)
def test_allowed_arrows(file: Path) -> None:
    """A module imports only what the table allows; nothing imports the command line."""
    assert ours(file) - ALLOWED[part(file)] == set()


@pytest.mark.parametrize("file", [file for file in FILES if part(file) in PURE], ids=name_of)
def test_pure_stages_do_not_touch_the_outside(file: Path) -> None:
    """Plan, parsing, measure, statistics and verdict read and write nothing: no such import, no open, no print."""
    assert {name.partition(".")[0] for name in imports(file)} & OUTSIDE == set()
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert calls & {"open", "print", "input", "exec", "eval", "__import__"} == set()


def test_only_the_store_knows_sqlite() -> None:
    """`sqlite3` is imported in one place."""
    assert [name_of(file) for file in FILES if "sqlite3" in imports(file)] == ["store.py"]


@pytest.mark.parametrize("module", ["auditor", "auditor.cli"])
def test_importing_is_light(module: str) -> None:
    """The package and the command line load nothing heavy before it is used."""
    code = f"import sys, {module}; print(*sorted(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_package_itself_brings_no_stage() -> None:
    """`import auditor` loads nothing of ours: what its public names need is loaded when they are asked for."""
    code = "import sys, auditor; print(*sorted(name for name in sys.modules if name.startswith('auditor.')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_files_stay_small() -> None:
    """No file has more than 560 lines, and the median file fewer than 250."""
    lines = {name_of(file): len(file.read_text("utf-8").splitlines()) for file in FILES}
    assert {name: count for name, count in lines.items() if count > 560} == {}
    assert statistics.median(count for count in lines.values() if count > 1) < 250
