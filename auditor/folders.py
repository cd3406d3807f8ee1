"""A run's folder: made, held by its lock, and removed again when nothing came of it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor.errors import ConflictError, UsageError
from auditor.store import FILE, Store


def default_folder(name: str) -> Path:
    """`reports/<date>-<name>`."""
    return Path("reports") / f"{datetime.date.today():%Y-%m-%d}-{name}"


@contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """The run's store. A folder that this run makes and nothing is answered into is removed again."""
    made, fresh = not folder.exists(), not (folder / FILE).exists()
    if not made and not folder.is_dir():
        raise ConflictError(f"--out {folder} is a file", "name a folder")
    if not made and fresh and any(folder.iterdir()):
        raise ConflictError(f"--out {folder}: the folder is not empty and holds no run", "name another --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror}") from error
    keep = True
    try:
        with Store(folder, writable=True, create=True) as store:
            (folder / ".gitignore").write_text("*\n")
            try:
                yield store
            except BaseException:
                keep = not fresh or store.has_answers() or store.has_cost()
                raise
    finally:
        if not keep:
            for path in [*folder.glob("run.*"), folder / ".gitignore"]:
                path.unlink(missing_ok=True)
            if made:
                folder.rmdir()


def describe(store: Store, name: str) -> None:
    """Say once when the run was made and what it is called."""
    if store.meta("created") is None:
        store.set_meta(created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), name=name)
