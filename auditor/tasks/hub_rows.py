"""The named sets on the Hugging Face hub: where each one lives, and what a row of it says. Pure.

Datasets, columns and splits follow the task files of lm-evaluation-harness and lighteval.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from auditor.records import AnswerType
from auditor.tasks.choices import Choices, read_choices
from auditor.tasks.table import plain

Values = dict[str, Any]
"""A row, by column."""


class Gap(Exception):
    """The set itself has nothing there, as in a split whose answers are kept back: the item is left out."""


class Fields(Struct, frozen=True):
    """A row in our words. `answer` is the label of a choice, else a text that is still to be made canonical."""

    question: str
    answer: str
    choices: Choices | None = None
    group: str | None = None
    cluster: str | None = None
    columns: dict[str, str] = {}


class Dataset(Struct, frozen=True):
    """A set on the hub. `read` raises Gap, and ValueError whose message starts with the column; it is given the
    `columns`. `key` is the column of the set's own ids, `classes` one whose numbers the file may name."""

    summary: str
    repo: str
    config: str
    split: str
    examples: str
    """The split that worked examples come from."""
    columns: tuple[str, ...]
    read: Callable[[Values], Fields]
    type: AnswerType = "choice"
    key: str = ""
    classes: str = ""


# Values --------------------------------------------------------------------------------------------------------


def _text(row: Values, column: str) -> str:
    value = row[column]
    if value is None:
        raise Gap(f"no {column}")
    if not isinstance(value, str):
        raise ValueError(f"{column}: {plain(value)} is not a text")
    if not value.strip():
        raise Gap(f"no {column}")
    return value.strip()


def _choices(column: str, value: Any) -> Choices:
    """Choices from a list of texts or from {"text": [...], "label": [...]}; an empty text among them is a gap."""
    texts = value.get("text") if isinstance(value, dict) else value
    if isinstance(texts, list) and any(isinstance(text, str) and not text.strip() for text in texts):
        raise Gap("an empty option")
    try:
        return read_choices(value)
    except ValueError as error:
        raise ValueError(f"{column}: {error}") from error


def _at(row: Values, column: str, choices: Choices, first: int = 0) -> str:
    """The label of the choice that is counted from `first`; sets that keep an answer back write -1 or nothing."""
    value = row[column]
    if value is None or str(value).strip() in ("", "-1"):
        raise Gap("no answer")
    count = len(choices.labels)
    if isinstance(value, bool) or not str(value).strip().isdecimal() or not first <= int(value) < first + count:
        raise ValueError(f"{column}: {value!r} is none of {first} to {first + count - 1}")
    return choices.labels[int(value) - first]


def _kept(choices: Choices) -> dict[str, str]:
    """The source's own labels, where they are not A, B, ..."""
    return {} if choices.names in ((), choices.labels) else {"choice_labels": ", ".join(choices.names)}


# Rows ----------------------------------------------------------------------------------------------------------


def _boolq(row: Values) -> Fields:
    """Questions about one passage are one cluster."""
    passage, question, answer = _text(row, "passage"), _text(row, "question"), row["answer"]
    if answer is None:
        raise Gap("no answer")
    if not isinstance(answer, bool):
        raise ValueError(f"answer: {answer!r} is not true or false")
    cluster = hashlib.sha256(passage.encode()).hexdigest()[:16]
    return Fields(f"{passage}\n\n{question.removesuffix('?')}?", "true" if answer else "false", cluster=cluster)


def _piqa(row: Values) -> Fields:
    choices = _choices("sol1+sol2", [row["sol1"], row["sol2"]])
    return Fields(_text(row, "goal"), _at(row, "label", choices), choices)


def _keyed(question: str) -> Callable[[Values], Fields]:
    """ARC, OpenBookQA and CommonsenseQA: labelled options, and the label of one of them."""

    def read(row: Values) -> Fields:
        choices, key = _choices("choices", row["choices"]), _text(row, "answerKey")
        label = choices.named(key)
        if label is None:
            raise ValueError(f"answerKey: {key!r} is none of the choices {choices}")
        return Fields(_text(row, question), label, choices, columns=_kept(choices))

    return read


_TITLE = re.compile(r"\.?\s*\[title\]")
_MARKS = re.compile(r"\[(?:header|step|substeps)\]")


def _hellaswag(row: Values) -> Fields:
    """The set's WikiHow half carries marks of its layout: a title becomes a sentence of its own, the others go."""
    endings = row["endings"]
    if isinstance(endings, list):
        endings = [_unmarked(ending) if isinstance(ending, str) else ending for ending in endings]
    choices = _choices("endings", endings)
    activity = _text(row, "activity_label")
    context = " ".join(_text(row, column) for column in ("ctx_a", "ctx_b") if str(row[column] or "").strip())
    columns = {"activity_label": activity}
    return Fields(f"{activity}: {_unmarked(context)}", _at(row, "label", choices), choices, columns=columns)


def _unmarked(text: str) -> str:
    return " ".join(_MARKS.sub(" ", _TITLE.sub(". ", text)).split())


def _winogrande(row: Values) -> Fields:
    sentence = _text(row, "sentence")
    if "_" not in sentence:
        raise Gap("no blank")
    choices = _choices("option1+option2", [row["option1"], row["option2"]])
    return Fields(sentence, _at(row, "answer", choices, first=1), choices)


def _gsm8k(row: Values) -> Fields:
    """The answer is a solution whose last line is `#### 1,234`."""
    solution, mark, number = _text(row, "answer").rpartition("####")
    if not mark:
        raise ValueError(f"answer: {number[-60:]!r} has no ####")
    columns = {"solution": solution.strip()}
    return Fields(_text(row, "question"), number.strip().replace(",", ""), columns=columns)


def _mmlu(row: Values) -> Fields:
    choices = _choices("choices", row["choices"])
    return Fields(_text(row, "question"), _at(row, "answer", choices), choices, group=_text(row, "subject"))


def _banking77(row: Values) -> Fields:
    label = row["label"]
    if label == -1:
        raise Gap("no answer")
    if isinstance(label, int):
        raise ValueError(f"label: {label} is no class that the file names")
    return Fields(_text(row, "text"), _text(row, "label"))


_KEYED = ("choices", "answerKey")

DATASETS: dict[str, Dataset] = {
    "boolq": Dataset(
        "boolean: a question about a passage",
        "google/boolq", "default", "validation", "train", ("question", "passage", "answer"), _boolq, "boolean",
    ),
    "piqa": Dataset(
        "choice: which of two ways reaches an everyday goal",
        "ybisk/piqa", "plain_text", "validation", "train", ("goal", "sol1", "sol2", "label"), _piqa,
    ),
    "arc_challenge": Dataset(
        "choice: school science questions, three to five options",
        "allenai/ai2_arc", "ARC-Challenge", "test", "train", ("question", *_KEYED), _keyed("question"), key="id",
    ),
    "hellaswag": Dataset(
        "choice: how a description goes on",
        "Rowan/hellaswag", "default", "validation", "train",
        ("activity_label", "ctx_a", "ctx_b", "endings", "label"), _hellaswag, key="ind",
    ),
    "winogrande": Dataset(
        "choice: which of two names fills the blank",
        "allenai/winogrande", "winogrande_xl", "validation", "train",
        ("sentence", "option1", "option2", "answer"), _winogrande,
    ),
    "commonsense_qa": Dataset(
        "choice: everyday questions, five options",
        "tau/commonsense_qa", "default", "validation", "train", ("question", *_KEYED), _keyed("question"), key="id",
    ),
    "gsm8k": Dataset(
        "number: word problems of a few steps",
        "openai/gsm8k", "main", "test", "train", ("question", "answer"), _gsm8k, "number",
    ),
    "mmlu": Dataset(
        "choice: exam questions of 57 subjects (the group)",
        "cais/mmlu", "all", "test", "dev", ("question", "subject", "choices", "answer"), _mmlu,
    ),
    "openbookqa": Dataset(
        "choice: elementary science, four options",
        "allenai/openbookqa", "main", "test", "train", ("question_stem", *_KEYED), _keyed("question_stem"), key="id",
    ),
    "banking77": Dataset(
        "label: which of 77 intents a bank customer has",
        "PolyAI/banking77", "default", "test", "train", ("text", "label"), _banking77, "label", classes="label",
    ),
}  # fmt: skip

HUB: dict[str, str] = {name: f"{dataset.summary} (hub: {dataset.repo})" for name, dataset in DATASETS.items()}
"""Name -> one line about it."""
