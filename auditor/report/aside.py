"""A file written aside and renamed: a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def aside(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of `path` at the end; nothing is left of it when writing fails."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
