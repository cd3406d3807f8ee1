"""Tasks by name or path, and the draw of items."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import FileError, UsageError
from auditor.parsing import canonical
from auditor.records import AnswerSpace, Item, Task
from auditor.tasks import BUNDLED, bundled_task, load_task, sample


def task_of(ids: list[str], name: str = "quiz") -> Task:
    return Task(name, tuple(Item(identity, "q", AnswerSpace("text")) for identity in ids))


def drawn(task: Task, items: int, seed: int = 0) -> list[str]:
    return [item.id for item in sample(task, items, seed).items]


IDS = [f"i{n}" for n in range(50)]


def test_bundled_by_name() -> None:
    """A bundled name gives the bundled task of the study's seed."""
    assert load_task("groups", 3, {}, canonical) == bundled_task("groups", 3, canonical)


def test_file_by_path(tmp_path: Path) -> None:
    """A path gives the file's task, read with the columns and the type given."""
    path = tmp_path / "quiz.csv"
    path.write_text("prompt,answer\nq,1\n")
    task = load_task(str(path), 0, {"question": "prompt"}, canonical, "text")
    assert (task.name, [item.space.type for item in task.items]) == ("quiz", ["text"])


def test_unknown_name() -> None:
    """A name that is neither task nor path comes with the nearest names and says that a path works."""
    with pytest.raises(UsageError) as caught:
        load_task("arithmetics", 0, {}, canonical)
    assert str(caught.value) == "unknown task 'arithmetics'"
    assert caught.value.hint == "did you mean arithmetic; a path to a .jsonl, .csv, .parquet file works too"


def test_missing_file() -> None:
    """A path to no file says so."""
    with pytest.raises(FileError, match=r"none\.jsonl: no such file"):
        load_task("data/none.jsonl", 0, {}, canonical)


def test_sample_is_a_prefix() -> None:
    """More items extend a run: each draw is the start of a larger one, without repetition."""
    everything = drawn(task_of(IDS), 50)
    assert sorted(everything) == sorted(IDS)
    assert [drawn(task_of(IDS), k) for k in range(1, 51)] == [everything[:k] for k in range(1, 51)]


def test_sample_of_more_than_there_are() -> None:
    """A task with fewer items gives all of them."""
    assert drawn(task_of(IDS), 1000) == drawn(task_of(IDS), 50)


def test_sample_ignores_row_order() -> None:
    """Rows may stand in the file in any order."""
    assert drawn(task_of(IDS[::-1]), 10) == drawn(task_of(IDS), 10)


def test_sample_depends_on_seed_and_task() -> None:
    """Another seed or another task draws others."""
    draws = {tuple(drawn(task_of(IDS, name), 10, seed)) for name in ("a", "b") for seed in (0, 1)}
    assert len(draws) == 4


def test_sample_is_pinned() -> None:
    """The draw never changes between versions: sha256 of `seed:task:id`, in ascending order."""
    # printf '0:quiz:i0' | sha256sum, and so on for i1 to i4
    assert drawn(task_of(IDS[:5]), 5) == ["i0", "i3", "i1", "i4", "i2"]


@pytest.mark.parametrize("name", BUNDLED)
def test_sample_of_a_bundled_task(name: str) -> None:
    """A bundled task is sampled like a file, and keeps its examples."""
    task = bundled_task(name, 0, canonical)
    twelve = sample(task, 12, 0)
    assert (twelve.items, twelve.examples) == (sample(task, 200, 0).items[:12], task.examples)
