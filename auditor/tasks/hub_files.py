"""The Parquet files of a set at one commit, from the Hugging Face hub or from its cache.

`HF_ENDPOINT`, `HF_TOKEN`, `HF_HOME`, `HF_HUB_CACHE` and `HF_HUB_OFFLINE` mean what they mean everywhere. Nothing that
comes from there is run: files are listed, copied into the cache, and read as data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from auditor.errors import UsageError

CONVERTED = "refs/convert/parquet"
"""Where the hub keeps its own Parquet copy of a set that is stored otherwise."""
LAYOUTS = ("{config}/{split}-*.parquet", "data/{split}-*.parquet", "{config}/{split}/*.parquet")
"""The two of a set stored as Parquet, and the one of the hub's own copy."""
ELSE = "a local file works too: --tasks file.parquet --columns question=COLUMN,answer=COLUMN"

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHARD = re.compile(r"-\d{5}-of-(\d{5})")
_TIMEOUT = 10.0
"""Seconds; the client's own default is to wait for ever."""


class Wanted(Struct, frozen=True):
    """Which files of which repository."""

    repo: str
    config: str
    splits: tuple[str, ...]

    def layouts(self) -> Iterator[tuple[str, ...]]:
        """For each way to lay out a repository, a pattern per split."""
        for layout in LAYOUTS:
            yield tuple(layout.format(config=self.config, split=split) for split in self.splits)


class Snapshot(Struct, frozen=True):
    """Files of one commit in the cache: per split, in order. `revision` is what was asked for."""

    folder: Path
    revision: str
    files: dict[str, tuple[Path, ...]]

    @property
    def commit(self) -> str:
        """The cache names a snapshot's folder by its commit."""
        return self.folder.name


class _Unreachable(UsageError):
    """The hub did not answer: a copy in the cache will do."""


def fetch(wanted: Wanted, pinned: str = "") -> Snapshot:
    """The wanted splits, all of one commit, downloaded unless the cache has them.

    Of the revision `pinned`, else of `main`, else of `refs/convert/parquet`. A commit that is in the cache needs no
    network, and a revision that is there will do where the hub does not answer. Raises UsageError.
    """
    revisions = (pinned,) if pinned else ("main", CONVERTED)
    if _COMMIT.fullmatch(pinned) and (kept := _kept(wanted, pinned)):
        return kept
    try:
        found = next(filter(None, (_asked(wanted, revision) for revision in revisions)), None)
    except _Unreachable:
        found = next(filter(None, (_kept(wanted, revision) for revision in revisions)), None)
        if found is None:
            raise
    if found is None:
        files = f"complete Parquet files of config {wanted.config}, split {' and '.join(wanted.splits)}"
        raise UsageError(f"{wanted.repo} has no {files}, in {' or '.join(revisions)}", ELSE)
    return found


def _asked(wanted: Wanted, revision: str) -> Snapshot | None:
    """What the hub has at a revision; None where that is no Parquet of the splits."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RevisionNotFoundError

    with _asking(wanted.repo, revision):
        try:
            info = HfApi(endpoint=_endpoint()).dataset_info(wanted.repo, revision=revision, timeout=_TIMEOUT)
        except RevisionNotFoundError:
            if revision == CONVERTED:
                return None
            raise
        listed = [file.rfilename for file in info.siblings or ()]
        for patterns in wanted.layouts():
            if all(_complete([name for name in listed if fnmatchcase(name, pattern)]) for pattern in patterns):
                return _snapshot(wanted, revision, patterns, local=False)
    return None


def _kept(wanted: Wanted, revision: str) -> Snapshot | None:
    """What an earlier run left in the cache."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    for patterns in wanted.layouts():
        try:
            snapshot = _snapshot(wanted, revision, patterns, local=True)
        except LocalEntryNotFoundError:
            continue
        if all(_complete([file.name for file in files]) for files in snapshot.files.values()):
            return snapshot
    return None


def _complete(names: Sequence[str]) -> bool:
    """Whether these are all the files of a split, as far as their names say how many there are."""
    shard = _SHARD.search(names[0]) if names else None
    return bool(names) and (shard is None or len(names) == int(shard[1]))


def _snapshot(wanted: Wanted, revision: str, patterns: Sequence[str], *, local: bool) -> Snapshot:
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import tqdm

    class Bar(tqdm):
        """The client's progress, on a terminal only: its own would go into a pipe."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": None})  # type: ignore[no-untyped-call]

    folder = snapshot_download(
        wanted.repo,
        repo_type="dataset",
        revision=revision,
        allow_patterns=list(patterns),
        endpoint=_endpoint(),
        cache_dir=_cache(),
        etag_timeout=_TIMEOUT,
        local_files_only=local,
        tqdm_class=Bar,
    )
    found = (tuple(sorted(Path(folder).glob(pattern))) for pattern in patterns)
    return Snapshot(Path(folder), revision, dict(zip(wanted.splits, found, strict=True)))


def _endpoint() -> str | None:
    """Read when it is needed, not when the client is imported; None is the client's own default."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def _cache() -> str | None:
    home = os.environ.get("HF_HOME")
    return os.environ.get("HF_HUB_CACHE") or (os.path.join(home, "hub") if home else None)


# Errors --------------------------------------------------------------------------------------------------------


@contextmanager
def _asking(repo: str, revision: str) -> Iterator[None]:
    """Whatever stops the client becomes one line in our words: no header or address of its own is ever shown."""
    try:
        yield
    except Exception as error:  # the transport, and with it what is raised, differs between versions of the client
        raise _fault(repo, revision, list(_causes(error))) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, the first cause last."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _fault(repo: str, revision: str, causes: Sequence[BaseException]) -> UsageError:
    from huggingface_hub.errors import OfflineModeIsEnabled, RevisionNotFoundError

    if any(isinstance(cause, RevisionNotFoundError) for cause in causes):
        return UsageError(f"{repo} has no revision {revision!r} on the hub", "a branch, a tag or a commit")
    replies = [reply for cause in causes if (reply := getattr(cause, "response", None)) is not None]
    status = replies[0].status_code if replies else None
    if status in _REFUSALS:
        message, hint = _REFUSALS[status]
        return UsageError(f"{message.format(repo)} ({status})", f"{hint}{ELSE}")
    if any(isinstance(cause, OfflineModeIsEnabled) for cause in causes):
        return _Unreachable(f"{repo} is not in the cache, and HF_HUB_OFFLINE is set", f"unset it once; {ELSE}")
    first = causes[-1]
    why = f"status {status}" if status else getattr(first, "strerror", None) or type(first).__name__
    host = urlsplit(_endpoint() or "https://huggingface.co").hostname
    return _Unreachable(f"{repo} cannot be read from the hub at {host}: {why}", f"is the network up? {ELSE}")


_REFUSALS = {
    401: ("the hub does not give {} without a token that may read it", "set HF_TOKEN; "),
    403: ("the hub does not give {} to this user", "accept the terms on its page and set HF_TOKEN; "),
    404: ("the hub has no dataset {}", ""),
}
