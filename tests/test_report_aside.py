"""Files that are replaced whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.report.aside import aside


def test_a_file_is_replaced_at_the_end(tmp_path: Path) -> None:
    """Until the last byte is written the old file is there."""
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with aside(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_changes_nothing(tmp_path: Path) -> None:
    """The old file stays, and no part of the new one."""
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def write() -> None:
        with aside(path) as file:
            file.write(b"ne")
            raise ValueError("midway")

    with pytest.raises(ValueError, match="midway"):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
