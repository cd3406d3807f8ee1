"""Named tasks from the hub: what each set's rows become, which files are asked for, and each way to be refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hub_server import HubServer, parquet, written
from huggingface_hub import constants

from auditor.errors import FileError, UsageError
from auditor.parsing import canonical
from auditor.records import AnswerSpace, Item, Task
from auditor.tasks import BUNDLED, HUB, load_task

ONE = "-00000-of-00001.parquet"
CONVERTED = "refs/convert/parquet"
BOOLQ = "google/boolq"
FILE = f"data/validation{ONE}"


def load(name: str, shots: int = 0, seed: int = 0) -> Task:
    return load_task(name, seed, {}, canonical, shots=shots)


def refusal(name: str, shots: int = 0) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(name, shots)
    return caught.value


def choice(*texts: str) -> AnswerSpace:
    return AnswerSpace("choice", tuple("ABCDE"[: len(texts)]), texts)


def asked(n: int) -> dict[str, Any]:
    return {"question": f"is {n} a number", "answer": n % 2 == 0, "passage": f"Passage {n}."}


def boolq(*numbers: int) -> bytes:
    return parquet(BOOLQ, [asked(n) for n in numbers])


# The ten sets --------------------------------------------------------------------------------------------------


def test_boolq(hub: HubServer) -> None:
    """The passage stands above its question, and the questions about one passage are one cluster."""
    rows = [
        {"question": "is copper a metal", "answer": True, "passage": "Copper is a metal."},
        {"question": "does copper burn?", "answer": False, "passage": "Copper is a metal."},
        {"question": "is wood a metal", "answer": False, "passage": "Wood is not."},
    ]
    commit = hub.push(BOOLQ, {FILE: parquet(BOOLQ, rows)})
    task = load("boolq")
    # printf 'Copper is a metal.' | sha256sum | cut -c -16, and of the other
    copper, wood = "941108365abd22dd", "57259a27b437f96a"
    assert task == Task(
        "boolq",
        (
            Item("boolq-0", "Copper is a metal.\n\nis copper a metal?", AnswerSpace("boolean"), "true", cluster=copper),
            Item("boolq-1", "Copper is a metal.\n\ndoes copper burn?", AnswerSpace("boolean"), "false", cluster=copper),
            Item("boolq-2", "Wood is not.\n\nis wood a metal?", AnswerSpace("boolean"), "false", cluster=wood),
        ),
        source=f"hub: google/boolq@{commit}, validation",
    )


def test_piqa(hub: HubServer) -> None:
    """The two ways are A and B; a set stored as a loading script comes from the hub's own Parquet copy."""
    rows = [
        {"goal": "To dry herbs,", "sol1": "put them in a fridge.", "sol2": "put them in the sun.", "label": 1},
        {"goal": "Open a can", "sol1": "Use an opener.", "sol2": "Use a spoon.", "label": 0},
    ]
    hub.push("ybisk/piqa", {"piqa.py": b"raise SystemExit('run')", "README.md": b"#"})
    commit = hub.push("ybisk/piqa", {"plain_text/validation/0000.parquet": parquet("ybisk/piqa", rows)}, CONVERTED)
    task = load("piqa")
    assert task.items == (
        Item("piqa-0", "To dry herbs,", choice("put them in a fridge.", "put them in the sun."), "B"),
        Item("piqa-1", "Open a can", choice("Use an opener.", "Use a spoon."), "A"),
    )
    assert task.source == f"hub: ybisk/piqa@{commit} (refs/convert/parquet), validation"
    assert not [request for request in hub.seen if "piqa.py" in request.path]


def test_arc_challenge(hub: HubServer) -> None:
    """Items of three and five options are kept, numbered options are shown as letters, and the set's ids are the
    items'."""
    rows = [
        {"id": "Mercury_1", "question": "Which conducts?", "answerKey": "C",
         "choices": {"text": ["wood", "glass", "copper"], "label": ["A", "B", "C"]}},
        {"id": "NYSEDREGENTS_2", "question": "Which is a planet?", "answerKey": "4",
         "choices": {"text": ["Sun", "Moon", "Sirius", "Mars"], "label": ["1", "2", "3", "4"]}},
        {"id": "MEA_3", "question": "Which is largest?", "answerKey": "E",
         "choices": {"text": ["ant", "bee", "cat", "dog", "elk"], "label": list("ABCDE")}},
    ]  # fmt: skip
    other = parquet("allenai/ai2_arc", [])
    files = {f"ARC-Challenge/test{ONE}": parquet("allenai/ai2_arc", rows), f"ARC-Easy/test{ONE}": other}
    commit = hub.push("allenai/ai2_arc", files)
    planets = choice("Sun", "Moon", "Sirius", "Mars")
    assert load("arc_challenge").items == (
        Item("Mercury_1", "Which conducts?", choice("wood", "glass", "copper"), "C"),
        Item("NYSEDREGENTS_2", "Which is a planet?", planets, "D", columns={"choice_labels": "1, 2, 3, 4"}),
        Item("MEA_3", "Which is largest?", choice("ant", "bee", "cat", "dog", "elk"), "E"),
    )
    assert hub.downloads == [f"/datasets/allenai/ai2_arc/resolve/{commit}/ARC-Challenge/test{ONE}"]


def test_hellaswag(hub: HubServer) -> None:
    """Activity and context are the question; the marks of a how-to page go, and its title ends with one full stop."""
    common = {"ctx": "", "source_id": "s", "split": "val", "split_type": "zeroshot"}
    rows = [
        {**common, "ind": 24, "activity_label": "Roof work", "ctx_a": "A man sits on a roof.", "ctx_b": "he",
         "endings": ["sings.", "pulls up roofing.", "sleeps.", "is [sic] gone."], "label": "1"},
        {**common, "ind": 92, "activity_label": "Home", "ctx_a": "[header] How to dry herbs [title] Wash them. [step] "
         "Rinse.", "ctx_b": "", "endings": ["Dry. [title] Store [substeps] Use.", "b", "c", "d"], "label": "0"},
    ]  # fmt: skip
    hub.push("Rowan/hellaswag", {FILE: parquet("Rowan/hellaswag", rows)})
    roof = choice("sings.", "pulls up roofing.", "sleeps.", "is [sic] gone.")
    herbs = choice("Dry. Store Use.", "b", "c", "d")
    question = "Home: How to dry herbs. Wash them. Rinse."
    assert load("hellaswag").items == (
        Item("24", "Roof work: A man sits on a roof. he", roof, "B", columns={"activity_label": "Roof work"}),
        Item("92", question, herbs, "A", columns={"activity_label": "Home"}),
    )


def test_winogrande(hub: HubServer) -> None:
    """The sentence keeps its blank, and one without is left out; options are counted from 1."""
    options = {"option1": "Ann", "option2": "Bea"}
    rows = [
        {"sentence": "Ann met Bea and _ waved.", **options, "answer": "2"},
        {"sentence": "Ann met Bea and waved.", **options, "answer": "2"},
    ]
    files = {"winogrande_xl/validation/0000.parquet": parquet("allenai/winogrande", rows)}
    hub.push("allenai/winogrande", {"winogrande.py": b""})
    hub.push("allenai/winogrande", files, CONVERTED)
    task = load("winogrande")
    assert task.items == (Item("winogrande-0", "Ann met Bea and _ waved.", choice("Ann", "Bea"), "B"),)
    assert task.source.endswith("; left out: 1 with no blank")


def test_commonsense_qa(hub: HubServer) -> None:
    """Five labelled options, in a struct whose members stand the other way round."""
    rows = [{"id": "1afa", "question": "Where is milk?", "question_concept": "milk", "answerKey": "D",
             "choices": {"label": list("ABCDE"), "text": ["car", "sea", "tree", "fridge", "sky"]}}]  # fmt: skip
    hub.push("tau/commonsense_qa", {FILE: parquet("tau/commonsense_qa", rows)})
    space = choice("car", "sea", "tree", "fridge", "sky")
    assert load("commonsense_qa").items == (Item("1afa", "Where is milk?", space, "D"),)


def test_gsm8k(hub: HubServer) -> None:
    """The gold number stands after the last ####, without its commas; the solution is kept as a column."""
    rows = [
        {"question": "How many?", "answer": "2*3=<<2*3=6>>6\n#### 6"},
        {"question": "How much?", "answer": "It is #### big.\n#### -1,234,000"},
        {"question": "How long?", "answer": "#### 12,00,000"},
    ]
    hub.push("openai/gsm8k", {f"main/test{ONE}": parquet("openai/gsm8k", rows), f"socratic/test{ONE}": b""})
    assert load("gsm8k").items == (
        Item("gsm8k-0", "How many?", AnswerSpace("number"), "6", columns={"solution": "2*3=<<2*3=6>>6"}),
        Item("gsm8k-1", "How much?", AnswerSpace("number"), "-1234000", columns={"solution": "It is #### big."}),
        Item("gsm8k-2", "How long?", AnswerSpace("number"), "1200000", columns={"solution": ""}),
    )


def test_mmlu(hub: HubServer) -> None:
    """The subject is the group; the answer counts the choices from 0."""
    rows = [
        {"question": "2+2?", "subject": "abstract_algebra", "choices": ["1", "2", "3", "4"], "answer": 3},
        {"question": "Where is the ulna?", "subject": "anatomy", "choices": ["arm", "leg", "ear", "toe"], "answer": 0},
    ]
    names = {"answer": ["A", "B", "C", "D"]}
    hub.push("cais/mmlu", {f"all/test{ONE}": parquet("cais/mmlu", rows, names), f"anatomy/test{ONE}": b""})
    assert load("mmlu").items == (
        Item("mmlu-0", "2+2?", choice("1", "2", "3", "4"), "D", group="abstract_algebra"),
        Item("mmlu-1", "Where is the ulna?", choice("arm", "leg", "ear", "toe"), "A", group="anatomy"),
    )


def test_openbookqa(hub: HubServer) -> None:
    """The stem is the question; the key may carry a space."""
    options = {"text": ["air", "mud", "snow", "wind"], "label": list("ABCD")}
    rows = [{"id": "7-980", "question_stem": "In landslides there is", "choices": options, "answerKey": "B "}]
    files = {f"main/test{ONE}": parquet("allenai/openbookqa", rows), f"additional/test{ONE}": b""}
    hub.push("allenai/openbookqa", files)
    assert load("openbookqa").items == (
        Item("7-980", "In landslides there is", choice("air", "mud", "snow", "wind"), "B"),
    )  # fmt: skip


def test_banking77(hub: HubServer) -> None:
    """A label's number becomes the class name of the file's metadata; the labels are all classes in the set's order,
    whether they occur or not."""
    rows = [{"text": "Where is my card?", "label": 2}, {"text": "Hm", "label": -1}, {"text": "Top up", "label": 0}]
    classes = ["top_up", "lost_card", "card_arrival"]
    data = parquet("PolyAI/banking77", rows, {"label": classes})
    hub.push("PolyAI/banking77", {"banking77.py": b""})
    hub.push("PolyAI/banking77", {"default/test/0000.parquet": data}, CONVERTED)
    space = AnswerSpace("label", tuple(classes))
    assert load("banking77").items == (
        Item("banking77-0", "Where is my card?", space, "card_arrival"),
        Item("banking77-2", "Top up", space, "top_up"),
    )


def test_banking77_with_names_in_its_rows(hub: HubServer) -> None:
    """Where the column holds the names themselves, the labels are all that occur."""
    table = pa.table({"text": ["a", "b"], "label": ["lost_card", "card_arrival"]})
    hub.push("PolyAI/banking77", {f"data/test{ONE}": written(table)})
    first = load("banking77").items[0]
    assert (first.gold, first.space.labels) == ("lost_card", ("card_arrival", "lost_card"))


@pytest.mark.parametrize("names", [None, [], ["a"], ["a", "b", "b"], ["a", "b", ""], [4, 5, 6], "abc", {"2": "c"}])
def test_banking77_without_names(hub: HubServer, names: Any) -> None:
    """A number that no name belongs to is an error of its row, never a label, whatever the metadata holds."""
    data = parquet("PolyAI/banking77", [{"text": "a", "label": 2}], {"label": names})
    hub.push("PolyAI/banking77", {f"data/test{ONE}": data})
    where = f"PolyAI/banking77/data/test{ONE}:1"
    assert str(refusal("banking77")) == f"{where}: label: 2 is no class that the file names"


def test_each_has_a_summary() -> None:
    """Ten sets, each with one line about it, none with the name of a bundled task."""
    assert len(HUB) == 10
    assert not set(HUB) & set(BUNDLED)
    assert all(summary and "\n" not in summary for summary in HUB.values())


# Rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [("x", "x"), ("x", " "), ("x", None)])
def test_ids_that_name_no_item(hub: HubServer, ids: tuple[str | None, str | None]) -> None:
    """An id that two rows have, or a row without one, makes the row numbers the ids."""
    options = {"text": ["a", "b"], "label": ["A", "B"]}
    rows = [{"id": key, "question": "q", "choices": options, "answerKey": "A"} for key in ids]
    hub.push("allenai/ai2_arc", {f"ARC-Challenge/test{ONE}": parquet("allenai/ai2_arc", rows)})
    assert [item.id for item in load("arc_challenge").items] == ["arc_challenge-0", "arc_challenge-1"]


def test_rows_without_an_answer(hub: HubServer) -> None:
    """What the set keeps back or leaves empty is left out and counted, and the others keep their numbers."""
    rows: list[dict[str, Any]] = [
        {"goal": "g", "sol1": "a", "sol2": "b", "label": -1},
        {"goal": "g", "sol1": "a", "sol2": " ", "label": 0},
        {"goal": "g", "sol1": "a", "sol2": "b", "label": 0},
        {"goal": "g", "sol1": "a", "sol2": "b", "label": None},
    ]
    commit = hub.push("ybisk/piqa", {FILE: parquet("ybisk/piqa", rows)})
    task = load("piqa")
    assert [item.id for item in task.items] == ["piqa-2"]
    left = "left out: 1 with an empty option, 2 with no answer"
    assert task.source == f"hub: ybisk/piqa@{commit}, validation; {left}"


def test_no_row_has_an_answer(hub: HubServer) -> None:
    """A split whose answers are all kept back is no task."""
    row = {"sentence": "_ waved.", "option1": "Ann", "option2": "Bea", "answer": ""}
    hub.push("allenai/winogrande", {f"winogrande_xl/validation{ONE}": parquet("allenai/winogrande", [row] * 3)})
    assert str(refusal("winogrande")) == "allenai/winogrande, validation: of 3 rows none has an answer"


WRONG: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "a key of no option": (
        "arc_challenge", "ARC-Challenge/test",
        {"id": "x", "question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "E"},
        "answerKey: 'E' is none of the choices A: 'a', B: 'b'",
    ),
    "unequal lists": (
        "arc_challenge", "ARC-Challenge/test",
        {"id": "x", "question": "q", "choices": {"text": ["a", "b"], "label": ["A"]}, "answerKey": "A"},
        "choices: 2 texts, but 1 labels",
    ),
    "an index beyond the choices": (
        "mmlu", "all/test", {"question": "q", "subject": "s", "choices": ["a", "b"], "answer": 2},
        "answer: 2 is none of 0 to 1",
    ),
    "a label of another kind": (
        "winogrande", "winogrande_xl/validation",
        {"sentence": "_ waved.", "option1": "a", "option2": "b", "answer": "0"},
        "answer: '0' is none of 1 to 2",
    ),
    "no mark before the answer": (
        "gsm8k", "main/test", {"question": "q", "answer": "It is 6."}, "answer: 'It is 6.' has no ####",
    ),
    "no number after the mark": (
        "gsm8k", "main/test", {"question": "q", "answer": "#### six"}, "answer: 'six' is not a number",
    ),
    "one choice": (
        "mmlu", "all/test", {"question": "q", "subject": "s", "choices": ["a"], "answer": 0},
        "choices: 1 of them, but a choice needs two",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values(hub: HubServer, case: str) -> None:
    """A value that cannot be is one line with set, file, row, column and value."""
    name, path, row, message = WRONG[case]
    repo = {"arc_challenge": "allenai/ai2_arc", "mmlu": "cais/mmlu", "gsm8k": "openai/gsm8k"}.get(
        name, "allenai/winogrande"
    )
    hub.push(repo, {f"{path}{ONE}": parquet(repo, [row])})
    error = refusal(name)
    assert isinstance(error, FileError)
    assert str(error) == f"{repo}/{path}{ONE}:1: {message}"
    assert "--tasks file.parquet --columns" in error.hint


def test_missing_column(hub: HubServer) -> None:
    """A column that is not there is named, with those that are."""
    hub.push(BOOLQ, {FILE: written(pa.table({"question": ["q"], "label": [1]}))})
    assert str(refusal("boolq")) == f"{BOOLQ}/{FILE}: no column 'passage'; the columns are question, label"


def test_column_of_another_type(hub: HubServer) -> None:
    """A column that holds something else is an error of its first row."""
    hub.push(BOOLQ, {FILE: written(pa.table({"question": ["q"], "passage": ["p"], "answer": ["yes"]}))})
    assert str(refusal("boolq")) == f"{BOOLQ}/{FILE}:1: answer: 'yes' is not true or false"


@pytest.mark.parametrize("data", [b"", b"PAR1", b"<html>", boolq(1)[:-9], b"PAR1" + bytes(99) + b"PAR1"])
def test_malformed_parquet(hub: HubServer, data: bytes) -> None:
    """A file that is no Parquet is one line with its name, and a hint where the copy lies."""
    hub.push(BOOLQ, {FILE: data})
    error = refusal("boolq")
    assert str(error).startswith(f"{BOOLQ}/{FILE}: not Parquet: ")
    assert "\n" not in str(error)
    assert os.environ["HF_HOME"] in error.hint


# Examples ------------------------------------------------------------------------------------------------------


def test_examples_only_where_wanted(hub: HubServer) -> None:
    """The split of the worked examples is fetched where shots ask for it, of the same commit, and not before."""
    train = f"data/train{ONE}"
    commit = hub.push(BOOLQ, {FILE: boolq(1), train: boolq(2, 3)})
    plain = load("boolq")
    assert (plain.examples, hub.downloads) == ((), [f"/datasets/{BOOLQ}/resolve/{commit}/{FILE}"])
    shown = load("boolq", shots=1)
    assert {item.id: item.question for item in shown.examples} == {
        "train-boolq-0": "Passage 2.\n\nis 2 a number?",
        "train-boolq-1": "Passage 3.\n\nis 3 a number?",
    }
    assert (shown.items, shown.source) == (plain.items, plain.source)
    assert hub.downloads[1:] == [f"/datasets/{BOOLQ}/resolve/{commit}/{train}"]


def test_examples_are_drawn(hub: HubServer) -> None:
    """Of a large split 100 examples are drawn, by the seed: the split may be sorted by its labels."""
    hub.push(BOOLQ, {FILE: boolq(0), f"data/train{ONE}": boolq(*range(500))})
    numbers = {seed: [int(e.id.rpartition("-")[2]) for e in load("boolq", 1, seed).examples] for seed in (0, 1)}
    assert [len(set(drawn)) for drawn in numbers.values()] == [100, 100]
    assert numbers[0] != numbers[1]
    assert all(any(n // 100 == hundred for n in numbers[0][:30]) for hundred in range(5))


# Which files ---------------------------------------------------------------------------------------------------


def test_shards(hub: HubServer) -> None:
    """All shards of a split are read, in order, and rows are numbered through."""
    names = [f"data/validation-0000{n}-of-00003.parquet" for n in range(3)]
    hub.push(BOOLQ, {names[2]: boolq(5), names[0]: boolq(1, 2), names[1]: boolq(3, 4)})
    task = load("boolq")
    assert [item.question[8] for item in task.items] == list("12345")
    assert [item.id for item in task.items] == [f"boolq-{n}" for n in range(5)]


def test_shards_of_the_converted_copy(hub: HubServer) -> None:
    """The hub's own copy may be in several files too."""
    hub.push(BOOLQ, {"README.md": b""})
    hub.push(BOOLQ, {f"default/validation/000{n}.parquet": boolq(n) for n in (1, 0)}, CONVERTED)
    assert [item.question[8] for item in load("boolq").items] == ["0", "1"]


def test_a_shard_is_missing(hub: HubServer) -> None:
    """Two files of three are no split."""
    hub.push(BOOLQ, {f"data/validation-0000{n}-of-00003.parquet": boolq(n) for n in range(2)})
    wanted = "no complete Parquet files of config default, split validation, in main or refs/convert/parquet"
    assert str(refusal("boolq")) == f"{BOOLQ} has {wanted}"


def test_pinned_revision(hub: HubServer) -> None:
    """A branch, a tag or a commit after @ is what is read, whatever main is by now; the task keeps its name."""
    first = hub.push(BOOLQ, {FILE: boolq(1)})
    second = hub.push(BOOLQ, {FILE: boolq(2)})
    named = hub.push(BOOLQ, {"default/validation/0000.parquet": boolq(3)}, CONVERTED)
    tasks = [load(f"boolq@{revision}") for revision in (first, second, "main", CONVERTED)]
    assert [task.items[0].question[8] for task in tasks] == ["1", "2", "2", "3"]
    assert {task.name for task in tasks} == {"boolq"}
    assert [task.source for task in tasks] == [
        f"hub: {BOOLQ}@{first}, validation",
        f"hub: {BOOLQ}@{second}, validation",
        f"hub: {BOOLQ}@{second}, validation",
        f"hub: {BOOLQ}@{named} (refs/convert/parquet), validation",
    ]


def test_pinned_revision_is_the_only_one_tried(hub: HubServer) -> None:
    """A named revision without Parquet is an error; the converted copy is another revision."""
    commit = hub.push(BOOLQ, {"boolq.py": b""})
    hub.push(BOOLQ, {"default/validation/0000.parquet": boolq(3)}, CONVERTED)
    assert str(refusal(f"boolq@{commit}")).endswith(f"split validation, in {commit}")


def test_nothing_after_the_at(hub: HubServer) -> None:
    """A name that ends in @ is a slip."""
    assert str(refusal("boolq@")) == "task 'boolq@': no revision after the @"
    assert not hub.seen


# The cache -----------------------------------------------------------------------------------------------------


def test_second_load_downloads_nothing(hub: HubServer) -> None:
    """What the cache has is not fetched again, and a commit that it has is not even asked for."""
    commit = hub.push(BOOLQ, {FILE: boolq(1)})
    first = load("boolq")
    assert len(hub.downloads) == 1
    assert load("boolq") == first
    assert len(hub.downloads) == 1
    hub.seen.clear()
    assert load(f"boolq@{commit}") == first
    assert not hub.seen


def test_new_commit_is_seen(hub: HubServer) -> None:
    """Without a revision it is main as it is now."""
    hub.push(BOOLQ, {FILE: boolq(1)})
    old = load("boolq")
    commit = hub.push(BOOLQ, {FILE: boolq(2)})
    assert load("boolq").source == f"hub: {BOOLQ}@{commit}, validation" != old.source


def test_cache_folder(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HF_HOME and HF_HUB_CACHE say where the cache is."""
    commit = hub.push(BOOLQ, {FILE: boolq(1)})
    load("boolq")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "elsewhere"))
    load("boolq")
    for folder in ("hf/hub", "elsewhere"):
        assert (tmp_path / folder / "datasets--google--boolq" / "snapshots" / commit / FILE).is_file()


def test_offline_with_a_cache(hub: HubServer) -> None:
    """With HF_HUB_OFFLINE a process of its own reads what the cache has, and asks nobody."""
    hub.push(BOOLQ, {FILE: boolq(1)})
    source = load("boolq").source
    hub.seen.clear()
    code = (
        "from auditor.parsing import canonical; from auditor.tasks import load_task\n"
        "print(load_task('boolq', 0, {}, canonical).source)"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (ran.stdout, ran.stderr) == (f"{source}\n", "")
    assert not hub.seen


def test_offline_without_a_cache(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HF_HUB_OFFLINE and an empty cache there is one line, and nobody is asked."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    error = refusal("boolq")
    assert str(error) == "google/boolq is not in the cache, and HF_HUB_OFFLINE is set"
    assert "--tasks file.parquet --columns" in error.hint
    assert not hub.seen


def test_offline_with_one_split(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache without the split of the examples does not do for shots."""
    hub.push(BOOLQ, {FILE: boolq(1), f"data/train{ONE}": boolq(2)})
    load("boolq")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load("boolq").items
    assert "is not in the cache" in str(refusal("boolq", shots=1))


def test_offline_with_the_converted_copy(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came from the hub's own copy is found again without the hub."""
    hub.push(BOOLQ, {"README.md": b""})
    hub.push(BOOLQ, {"default/validation/0000.parquet": boolq(1)}, CONVERTED)
    online = load("boolq")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load("boolq") == online


# Refusals ------------------------------------------------------------------------------------------------------


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_nothing_listens(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that cannot be reached is one line at once, without retries."""
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    started = time.monotonic()
    error = refusal("boolq")
    assert time.monotonic() - started < 5
    assert str(error) == "google/boolq cannot be read from the hub at 127.0.0.1: Connection refused"
    assert "--tasks file.parquet --columns" in error.hint


def test_nothing_listens_but_the_cache_has_it(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on without the hub as long as the cache has what it asks for."""
    hub.push(BOOLQ, {FILE: boolq(1)})
    online = load("boolq")
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    assert load("boolq") == online


@pytest.mark.parametrize(
    ("refuse", "message", "hint"),
    [
        (
            (401, "RepoNotFound"),
            "the hub does not give google/boolq without a token that may read it (401)",
            "HF_TOKEN",
        ),
        ((401, "GatedRepo"), "the hub does not give google/boolq without a token that may read it (401)", "HF_TOKEN"),
        ((403, "GatedRepo"), "the hub does not give google/boolq to this user (403)", "HF_TOKEN"),
        ((403, ""), "the hub does not give google/boolq to this user (403)", "accept the terms"),
        ((404, "RepoNotFound"), "the hub has no dataset google/boolq (404)", "local file"),
        ((503, ""), "google/boolq cannot be read from the hub at 127.0.0.1: status 503", "local file"),
    ],
)
def test_refused(hub: HubServer, refuse: tuple[int, str], message: str, hint: str) -> None:
    """What the hub refuses is one line with the status, and what to do about it."""
    hub.refuse = refuse
    error = refusal("boolq")
    assert str(error) == message
    assert hint in error.hint
    assert "--tasks file.parquet --columns" in error.hint


@pytest.mark.parametrize(("status", "code"), [(401, "GatedRepo"), (403, "GatedRepo"), (403, "")])
def test_gated_files(hub: HubServer, status: int, code: str) -> None:
    """A gated set is listed for everybody, and its files are refused: the line is the same."""
    hub.push(BOOLQ, {FILE: boolq(1)})
    hub.refuse_files = (status, code)
    assert str(refusal("boolq")).endswith(f"({status})")
    assert not hub.downloads


def test_unknown_revision(hub: HubServer) -> None:
    """A revision that is not there is named."""
    hub.push(BOOLQ, {FILE: boolq(1)})
    assert str(refusal("boolq@v9")) == "google/boolq has no revision 'v9' on the hub"


def test_no_parquet_anywhere(hub: HubServer) -> None:
    """A set without Parquet in main and without the hub's own copy says what was looked for."""
    hub.push(BOOLQ, {"boolq.py": b"", f"other/validation{ONE}": b""})
    assert "config default, split validation, in main or refs/convert/parquet" in str(refusal("boolq"))


def test_no_hub_at_all(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers with something else is not taken for the hub."""
    monkeypatch.setattr(hub, "answer", lambda *_: (200, {"Content-Type": "text/html"}, b"<html>sign in</html>"))
    assert str(refusal("boolq")).startswith("google/boolq cannot be read from the hub at 127.0.0.1: ")


# The token -----------------------------------------------------------------------------------------------------


def test_token(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """HF_TOKEN goes to the hub and not to the store that the hub sends files from."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.push(BOOLQ, {FILE: boolq(1)})
    load("boolq")
    assert {(request.server, request.token) for request in hub.seen} == {("hub", "Bearer hf_secret"), ("store", None)}


def test_no_token(hub: HubServer) -> None:
    """Without a token none is sent."""
    hub.push(BOOLQ, {FILE: boolq(1)})
    load("boolq")
    assert {request.token for request in hub.seen} == {None}


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_token_is_never_shown(hub: HubServer, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """No message and no hint carries the token, nor a password in the endpoint's address."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_ENDPOINT", hub.url.replace("//", "//user:pass_word@"))
    hub.refuse = (status, "")
    error = refusal("boolq")
    assert not any(secret in f"{error} {error.hint}" for secret in ("hf_secret", "pass_word"))


def test_nothing_is_printed(hub: HubServer, capfd: pytest.CaptureFixture[str]) -> None:
    """Into a pipe goes no progress bar."""
    hub.push(BOOLQ, {FILE: boolq(1)})
    load("boolq")
    assert capfd.readouterr() == ("", "")


def test_misspelt_name(hub: HubServer) -> None:
    """A name that is nearly a set's is a question, and nobody is asked."""
    assert "did you mean hellaswag" in refusal("hellaswagg").hint
    assert not hub.seen
