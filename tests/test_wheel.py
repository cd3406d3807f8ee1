"""What is shipped: one top-level name, the catalogue inside, and a command that works without the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_only_top_level_name_is_auditor(wheel: Path) -> None:
    """`wrappers`, `parsers` and `tests` are no packages of anybody's environment."""
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"auditor"}


def test_the_catalogue_and_templates_are_in_it(wheel: Path) -> None:
    """Every wrapper and parser file of the checkout, and what the report is made of."""
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind in ("wrappers", "parsers"):
        assert {f"auditor/_data/{kind}/{path.name}" for path in (ROOT / kind).glob("*.toml")} <= names
    assert "auditor/report/templates/report.html.j2" in names
    assert "auditor/py.typed" in names


def test_the_shipped_package_finds_its_own_catalogue(wheel: Path, tmp_path: Path) -> None:
    """Unpacked anywhere, with a folder called wrappers in the current directory, it reads what it shipped."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "work" / "wrappers").mkdir(parents=True)
    (tmp_path / "work" / "wrappers" / "plain.toml").write_text("not ours")
    told = subprocess.run(
        [sys.executable, "-W", "error", "-m", "auditor.cli", "check"],
        cwd=tmp_path / "work",
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": ""},
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"{tmp_path}/site/auditor/_data/wrappers/plain.toml" in told.stdout
