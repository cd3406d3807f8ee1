"""Task files: formats, columns, answer types, and each error with its line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.errors import FileError, UsageError
from auditor.parsing import canonical
from auditor.records import AnswerSpace, AnswerType, Item, Task
from auditor.tasks import read_task
from auditor.tasks.choices import read_choices
from auditor.tasks.table import json_value, plain

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "quiz.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path: Path, answer_type: AnswerType | None = None, **columns: str) -> Task:
    return read_task(path, columns, canonical, answer_type)


def refusal(path: Path, answer_type: AnswerType | None = None, **columns: str) -> FileError:
    with pytest.raises(FileError) as caught:
        read(path, answer_type, **columns)
    return caught.value


# Rows to items -------------------------------------------------------------------------------------------------


def test_choice_item(write: Write) -> None:
    """A list of choices becomes labels A, B, ... with the texts beside them; other columns are kept as text."""
    path = write(
        '{"id": 7, "question": "Which conducts?", "choices": ["wood", "copper"], "answer": "B", "subject": "physics", '
        '"passage": "p1", "weight": 1.50, "tags": ["x", 2.0], "note": null, "easy": true}\n'
    )
    expected = Item(
        id="7",
        question="Which conducts?",
        space=AnswerSpace("choice", ("A", "B"), ("wood", "copper")),
        gold="B",
        group="physics",
        cluster="p1",
        columns={"weight": "1.50", "tags": '["x",2.0]', "easy": "true"},
    )
    assert read(path, cluster="passage") == Task("quiz", (expected,), source=str(path))


@pytest.mark.parametrize(
    ("choices", "answer"),
    [
        (["wood", "copper", "glass"], "B"),
        (["wood", "copper", "glass"], "copper"),
        ({"A": "wood", "B": "copper", "C": "glass"}, "B"),
        ({"1": "wood", "2": "copper", "3": "glass"}, "2"),
        ({"1": "wood", "2": "copper", "3": "glass"}, 2),
        ({"text": ["wood", "copper", "glass"], "label": ["1", "2", "3"]}, "2"),
        ({"text": ["wood", "copper", "glass"], "label": ["A", "B", "C"]}, " copper "),
        ({"B": "wood", "A": "copper", "C": "glass"}, "A"),
        ("wood | copper | glass", "B"),
        ('["wood", "copper", "glass"]', "copper"),
    ],
)
def test_gold_of_a_choice(write: Write, choices: Any, answer: Any) -> None:
    """An answer is the source's own label, else a letter, or an option's exact text, in every form of choices."""
    (item,) = read(write(lines({"question": "q", "choices": choices, "answer": answer}))).items
    assert (item.space.labels, item.space.texts, item.gold) == (("A", "B", "C"), ("wood", "copper", "glass"), "B")


def test_source_labels_are_kept(write: Write) -> None:
    """Labels of the source that are not A, B, ... stay readable beside the item."""
    row = {"question": "q", "choices": {"1": "wood", "2": "copper"}, "answer": "2"}
    assert read(write(lines(row))).items[0].columns == {"choice_labels": "1, 2"}


def test_letters_as_options(write: Write) -> None:
    """Whether `C` is a label or a text is settled by the whole file: labels if all answers can be labels."""
    base: dict[str, Any] = {"question": "Which base?", "choices": ["A", "C", "G", "T"], "answer": "C"}
    metal: dict[str, Any] = {"question": "Which metal?", "choices": ["wood", "iron"]}
    assert [item.gold for item in read(write(lines(base, {**metal, "answer": "B"}))).items] == ["C", "B"]
    assert [item.gold for item in read(write(lines(base, {**metal, "answer": "iron"}))).items] == ["B", "B"]


def test_choices_over_several_columns(write: Write) -> None:
    """`opt_a+opt_b+opt_c` gathers columns in that order, without empty ones at the end."""
    path = write("prompt,opt_a,opt_b,opt_c,label\nq1,x,y,z,C\nq2,x,y,,y\n", "quiz.csv")
    items = read(path, question="prompt", choices="opt_a+opt_b+opt_c", answer="label").items
    assert [(item.space.texts, item.gold, item.columns) for item in items] == [
        (("x", "y", "z"), "C", {}),
        (("x", "y"), "B", {}),
    ]


def test_a_column_whose_name_has_a_plus(write: Write) -> None:
    """A column that is called `a+b` is found by its name."""
    path = write(lines({"question": "q", "a+b": ["x", "y"], "answer": "A"}))
    assert read(path, choices="a+b").items[0].space.texts == ("x", "y")


def test_missing_ids(write: Write) -> None:
    """An item without an id is called after the file and its line; blank lines count."""
    path = write('\n{"question": "q", "answer": "1"}\n\n{"id": "", "question": "r", "answer": "2"}\n')
    assert [item.id for item in read(path).items] == ["quiz-2", "quiz-4"]


def test_parts(write: Write) -> None:
    """Parts are a list of texts, in a CSV as JSON or separated by `|`."""
    csv_file = write('question,answer,parts\nq,1,a: 1|b: 2\nq,2,"[""a: 1"", ""b|c: 2""]"\nq,3,\n', "quiz.csv")
    assert [item.parts for item in read(csv_file).items] == [("a: 1", "b: 2"), ("a: 1", "b|c: 2"), ()]


# Answer types --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "space", "golds"),
    [
        (["true", "No", "YES"], AnswerSpace("boolean"), ["true", "false", "true"]),
        ([True, False], AnswerSpace("boolean"), ["true", "false"]),
        (["18", "1,000", "-0.50"], AnswerSpace("number"), ["18", "1000", "-0.5"]),
        (["b", "a", "b"], AnswerSpace("label", ("a", "b")), ["b", "a", "b"]),
        (["a", "b", "c"], AnswerSpace("text"), ["a", "b", "c"]),
        (["true", "maybe", "true"], AnswerSpace("label", ("maybe", "true")), ["true", "maybe", "true"]),
    ],
)
def test_inferred_type(write: Write, answers: list[Any], space: AnswerSpace, golds: list[str]) -> None:
    """Without choices the answers decide together: boolean, number, label (some repeat) or text (none repeats)."""
    items = read(write(lines(*({"question": f"q{n}", "answer": a} for n, a in enumerate(answers))))).items
    assert ({item.space for item in items}, [item.gold for item in items]) == ({space}, golds)


def test_at_most_200_labels(write: Write) -> None:
    """200 distinct answers are a closed set of labels, 201 are free text."""

    def inferred(distinct: int) -> str:
        rows: list[dict[str, Any]] = [{"question": f"q{n}", "answer": f"l{n % distinct}"} for n in range(300)]
        return read(write(lines(*rows))).items[0].space.type

    assert (inferred(200), inferred(201)) == ("label", "text")


def test_given_type_wins(write: Write) -> None:
    """A type given with the call beats the row's own, which beats inference."""
    path = write(lines({"question": "q", "answer": "1"}, {"question": "r", "answer": "1", "answer_type": "text"}))
    assert [item.space.type for item in read(path).items] == ["number", "text"]
    assert [item.space.type for item in read(path, "boolean").items] == ["boolean", "boolean"]


def test_label_with_choices(write: Write) -> None:
    """A label task may bring its labels as choices: texts alone, or labels with what they mean."""
    rows: list[dict[str, Any]] = [
        {"question": "q", "choices": ["refund", "card"], "answer": "card"},
        {"question": "r", "choices": {"r1": "refund", "c1": "card"}, "answer": "c1"},
    ]
    assert [(item.space, item.gold) for item in read(write(lines(*rows)), "label").items] == [
        (AnswerSpace("label", ("refund", "card")), "card"),
        (AnswerSpace("label", ("r1", "c1"), ("refund", "card")), "c1"),
    ]


@pytest.mark.parametrize("answer_type", ["json", None])
def test_json_answer(write: Write, answer_type: AnswerType | None) -> None:
    """An object is a json answer, as itself or as text, named so or not; its numbers keep their digits."""
    spelled = '{"b": 2.50, "a": 12345678901234567890}'
    quoted = spelled.replace('"', '""')
    for path in (
        write(f'{{"question": "q", "answer": {spelled}}}\n{{"question": "r", "answer": {json.dumps(spelled)}}}\n'),
        write(f'question,answer\nq,"{quoted}"\nr,"{quoted}"\n', "quiz.csv"),
    ):
        items = read(path, answer_type).items
        assert {item.space for item in items} == {AnswerSpace("json")}
        assert [item.gold for item in items] == ['{"a":12345678901234567890,"b":2.50}'] * 2


def test_an_object_among_other_answers(write: Write) -> None:
    """Of texts not all of which are objects none is json, and neither a choice nor a number can be an object."""
    texts = [{"question": "q", "answer": '{"a": 1}'}, {"question": "r", "answer": '{"a": 1'}]
    assert {item.space.type for item in read(write(lines(*texts))).items} == {"text"}
    choice = write(lines({"question": "q", "choices": ["x", "y"], "answer": {"a": 1}}))
    assert str(refusal(choice)).startswith(f"{choice}:1: answer: one value is wanted")
    number = write(lines({"question": "q", "answer": {"a": 1}}))
    assert str(refusal(number, "number")).startswith(f"{number}:1: answer: one value is wanted")


# Literals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("literal", ["18.00", "123456789012345678901234567890", "1e400", "-0.0", "0.1", "1" * 5000])
def test_numbers_keep_their_digits(write: Write, literal: str) -> None:
    """A JSON number reaches us as it is written, however long or exact."""
    item = read(write(f'{{"question": "q", "answer": "x", "n": {literal}, "m": [{literal}]}}\n')).items[0]
    assert item.columns == {"n": literal, "m": f"[{literal}]"}


def test_nothing_is_evaluated(write: Write) -> None:
    """Text that looks like code or a template stays text."""
    hostile = "__import__('os').abort() {{content}} ${HOME} =1+1"
    item = read(write(lines({"question": hostile, "answer": hostile}))).items[0]
    assert (item.question, item.gold) == (hostile, hostile)


@given(st.text())
def test_json_value_never_breaks(text: str) -> None:
    """Any text is JSON or a ValueError, and a value that was read can be written."""
    try:
        value = json_value(text)
    except ValueError:
        return
    assert isinstance(plain(value), str)


# Formats -------------------------------------------------------------------------------------------------------

ROWS = [
    {"id": "a", "question": "Is é a vowel,\nyes?", "answer": "true", "group": "x"},
    {"id": "b", "question": 'Is "z" one?', "answer": "false", "group": "y"},
]
CSV = 'id,question,answer,group\na,"Is é a vowel,\nyes?",true,x\nb,"Is ""z"" one?",false,y\n'


def test_formats_agree(write: Write, tmp_path: Path) -> None:
    """The same rows as JSON Lines, CSV and Parquet, with a byte order mark or without, give the same items."""
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "quiz.parquet")
    paths = [
        write(lines(*ROWS)),
        write(b"\xef\xbb\xbf" + lines(*ROWS).encode(), "bom.jsonl"),
        write(CSV, "quiz.csv"),
        write(b"\xef\xbb\xbf" + CSV.replace("\nb", "\r\nb").encode(), "bom.CSV"),
        tmp_path / "quiz.parquet",
    ]
    tasks = [read(path) for path in paths]
    assert [task.name for task in tasks] == ["quiz", "bom", "quiz", "bom", "quiz"]
    assert [task.items for task in tasks] == [tasks[0].items] * 5
    assert [item.gold for item in tasks[0].items] == ["true", "false"]


def test_parquet_values(tmp_path: Path) -> None:
    """Lists, structs, numbers and missing values of a Parquet file arrive as from JSON Lines."""
    path = tmp_path / "quiz.parquet"
    rows = [
        {"question": "q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answer": 2, "n": 1.5, "s": None},
        {
            "question": "r",
            "choices": {"text": ["x", "z"], "label": ["1", "2"]},
            "answer": 1,
            "n": float("nan"),
            "s": "t",
        },
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    items = read(path).items
    assert [(item.id, item.space.texts, item.gold) for item in items] == [
        ("quiz-1", ("x", "y"), "B"),
        ("quiz-2", ("x", "z"), "A"),
    ]
    assert [item.columns for item in items] == [
        {"n": "1.5", "choice_labels": "1, 2"},
        {"s": "t", "choice_labels": "1, 2"},
    ]


def test_line_separators_inside_a_text(write: Write) -> None:
    """U+2028 and U+0085 are characters of a text, not ends of a line."""
    path = write('{"question": "a\u2028b\x85c", "answer": "1"}\n{"question": "d", "answer": "2"}')
    assert [item.question for item in read(path).items] == ["a\u2028b\x85c", "d"]


# Errors --------------------------------------------------------------------------------------------------------

GOOD = '{"id": "a", "question": "q", "choices": ["x", "y"], "answer": "A"}\n'
MANY = [f"c{n}" for n in range(27)]


@pytest.mark.parametrize(
    ("row", "line", "message"),
    [
        ("{oops}", 3, "not JSON: Expecting property name enclosed in double quotes, column 2"),
        ("[1]", 3, "not a JSON object"),
        ('{"question": NaN}', 3, "not JSON: NaN is not JSON"),
        ('{"question": "q", "question": "r"}', 3, "not JSON: the key 'question' stands there twice"),
        ('{"question": "\\ud800", "answer": "A"}', 3, "not JSON: half of a surrogate pair is no character"),
        ("[" * 100_000, 3, "not JSON: nested too deeply"),
        ('{"question": 5, "answer": "A"}', 3, "question: a text is wanted, not 5"),
        ('{"question": ["q"], "answer": "A"}', 3, 'question: a text is wanted, not ["q"]'),
        ('{"answer": "A"}', 3, "question: a text is wanted, not nothing"),
        ('{"question": " ", "answer": "A"}', 3, "question: the text is empty"),
        ('{"question": "q", "choices": ["x", "y"], "answer": null}', 3, "answer: there is none"),
        ('{"question": "q", "choices": ["x", "y"], "answer": ["A"]}', 3, 'answer: one value is wanted, not ["A"]'),
        ('{"question": "q", "answer": "A"}', 3, "choices: there are none, but the answer is a choice"),
        (
            '{"question": "q", "choices": ["x", "y"], "answer": "C"}',
            3,
            "answer: 'C' is none of the choices A: 'x', B: 'y'",
        ),
        (
            '{"question": "q", "choices": {"2": "x", "3": "y"}, "answer": 1}',
            3,
            "answer: '1' is none of the choices 2: 'x', 3: 'y'",
        ),
        (
            '{"question": "q", "choices": ["x", "x"], "answer": "x"}',
            3,
            "answer: 'x' is none of the choices A: 'x', B: 'x'",
        ),
        (
            '{"question": "q", "choices": {"B": "x", "C": "y"}, "answer": "A"}',
            3,
            "answer: 'A' is none of the choices B: 'x', C: 'y'",
        ),
        (lines({"question": "q", "choices": MANY, "answer": "A"}), 3, "choices: 27 of them, and there are 26 letters"),
        ('{"question": "q", "choices": ["x"], "answer": "A"}', 3, "choices: 1 of them, but a choice needs two"),
        ('{"question": "q", "choices": ["x", ""], "answer": "A"}', 3, "choices: each must be a text that is not empty"),
        ('{"question": "q", "choices": ["x", null], "answer": "A"}', 3, "choices: each must be a text"),
        ('{"question": "q", "choices": 4, "answer": "A"}', 3, "choices: not a list"),
        ('{"question": "q", "choices": "[\'x\']", "answer": "A"}', 3, "choices: neither JSON nor texts with |"),
        (
            '{"question": "q", "choices": {"text": ["x"], "label": ["1", "2"]}, "answer": "1"}',
            3,
            "choices: 1 texts, but 2 labels",
        ),
        (
            '{"question": "q", "choices": {"text": ["x", "y"], "label": ["1", "1"]}, "answer": "1"}',
            3,
            "choices: two of them have the same label",
        ),
        ('{"question": "q", "parts": 4, "choices": ["x", "y"], "answer": "A"}', 3, "parts: not a list"),
        ('{"question": "q", "answer": "A", "answer_type": "letter"}', 3, "answer_type: 'letter' is none of choice,"),
        (GOOD, 3, "id: 'a' stands in line 1 too"),
    ],
)
def test_errors_of_a_row(write: Write, row: str, line: int, message: str) -> None:
    """What is wrong with a row is said with file, line, column and value."""
    path = write(GOOD + "\n" + row)
    assert str(refusal(path)).startswith(f"{path}:{line}: {message}")


@pytest.mark.parametrize(
    ("answer_type", "answer", "message"),
    [
        ("number", "many", "answer: 'many' is not a number"),
        ("boolean", "maybe", "answer: 'maybe' is not a boolean"),
        ("json", "{", "answer: '{' is not a json"),
    ],
)
def test_answer_that_is_not_of_the_type(write: Write, answer_type: AnswerType, answer: str, message: str) -> None:
    """An answer that its type does not have is an error of its line."""
    path = write(lines({"question": "q", "answer": "1"}, {"question": "q", "answer": answer}))
    assert str(refusal(path, answer_type)) == f"{path}:2: {message}"


def test_label_that_is_no_choice(write: Write) -> None:
    """An answer outside the labels that the row brings is an error that names them."""
    path = write(lines({"question": "q", "choices": ["refund", "card"], "answer": "cash"}))
    assert str(refusal(path, "label")) == f"{path}:1: answer: 'cash' is not one of refund, card"


def test_index_as_answer(write: Write) -> None:
    """An index is refused with a hint, since nothing says whether it counts from 0 or 1."""
    error = refusal(write(lines({"question": "q", "choices": ["x", "y"], "answer": 1})))
    assert "an index is not read" in error.hint


def test_missing_column(write: Write) -> None:
    """A missing column is named with those there are and the option that maps it."""
    path = write("prompt,label\nq,1\n", "quiz.csv")
    error = refusal(path)
    assert str(error) == f"{path}: no column 'question'; the columns are prompt, label"
    assert error.hint == "--columns question=COLUMN says which of them it is"
    assert str(refusal(path, question="promt")).startswith(f"{path}: no column 'promt' (for question); the columns are")
    assert "no column 'b' (for choices)" in str(refusal(path, question="prompt", answer="label", choices="label+b"))


def test_unknown_field(write: Write) -> None:
    """A mapping for a field that items do not have is a usage error with the nearest name."""
    with pytest.raises(UsageError, match="unknown field 'quesion'") as caught:
        read(write(GOOD), quesion="prompt")
    assert "did you mean question" in caught.value.hint


@pytest.mark.parametrize("name", ["quiz.jsonl", "quiz.csv"])
@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_no_items(write: Write, name: str, content: str) -> None:
    """A file without rows is no task."""
    path = write(content.replace(" ", ""), name)
    assert str(refusal(path)) == f"{path}: no rows"


def test_csv_with_a_header_only(write: Write) -> None:
    """A header alone is no task."""
    path = write("question,answer\n", "quiz.csv")
    assert str(refusal(path)) == f"{path}: no rows"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ('question,answer\n"q\n1",1\nq2,1,2\n', 4, "3 values, but the header names 2 columns"),
        ("question,answer\nq,1\n\nq2\n", 4, "1 values, but the header names 2 columns"),
        ('question,answer\nq,1\n"q" 2,1\n', 3, "not CSV: "),
        ('question,answer\nq,1\n"q2,1\n', 3, "not CSV: "),
        ("question,answer,answer\nq,1,2\n", 1, "two columns are called 'answer'"),
    ],
)
def test_broken_csv(write: Write, content: str, line: int, message: str) -> None:
    """A ragged or broken record is an error of the line it starts in."""
    path = write(content, "quiz.csv")
    assert str(refusal(path)).startswith(f"{path}:{line}: {message}")


@pytest.mark.parametrize(
    ("content", "line", "byte"),
    [(b'{"question": "q"}\n{"question": "\xe9"}\n', 2, "0xe9"), (b"\xef\xbb\xbf\n\n\xff\n", 3, "0xff")],
)
@pytest.mark.parametrize("name", ["quiz.jsonl", "quiz.csv"])
def test_undecodable_bytes(write: Write, content: bytes, line: int, byte: str, name: str) -> None:
    """A byte that is not UTF-8 is named with its line."""
    path = write(content, name)
    assert str(refusal(path)) == f"{path}:{line}: byte {byte} is not UTF-8"


def test_broken_parquet(write: Write) -> None:
    """A file that only claims to be Parquet is a plain error."""
    path = write("no parquet", "quiz.parquet")
    assert str(refusal(path)).startswith(f"{path}: not Parquet: ")


def test_unknown_extension(write: Write) -> None:
    """Other formats are refused with those that work."""
    error = refusal(write("[]", "quiz.json"))
    assert str(error).endswith("quiz.json: unknown extension '.json'")
    assert error.hint == "a task file is one of .jsonl, .csv, .parquet"


def test_unreadable_path(tmp_path: Path) -> None:
    """A path that cannot be read is an error with the system's reason."""
    (tmp_path / "folder.csv").mkdir()
    assert str(refusal(tmp_path / "none.parquet")).endswith("none.parquet: cannot be read: No such file or directory")
    if os.name == "posix":
        assert str(refusal(tmp_path / "folder.csv")).endswith("folder.csv: cannot be read: Is a directory")


def test_26_choices_are_fine() -> None:
    """The last label is Z."""
    assert read_choices(MANY[:26]).labels[-1] == "Z"


# Real items ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not DATA.is_dir(), reason=f"wants the benchmark items in {DATA.parent.name}/{DATA.name}")
@pytest.mark.parametrize(
    ("name", "items", "type_", "labels"),
    [
        ("arc_challenge", 200, "choice", 4),
        ("banking77", 600, "label", 77),
        ("boolq_closed_book", 200, "boolean", 0),
        ("commonsense_qa", 200, "choice", 5),
        ("gsm8k", 200, "number", 0),
        ("hellaswag", 200, "choice", 4),
        ("mmlu", 400, "choice", 4),
        ("openbookqa", 200, "choice", 4),
        ("piqa", 200, "choice", 2),
        ("winogrande", 200, "choice", 2),
    ],
)
def test_real_items(name: str, items: int, type_: AnswerType, labels: int) -> None:
    """Real benchmark files load whole, with the answer type that they have and the gold that they say."""
    path = DATA / f"{name}.jsonl"
    task = read(path)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert (task.name, len(task.items)) == (name, items)
    assert {(item.space.type, len(item.space.labels)) for item in task.items} == {(type_, labels)}
    assert [item.gold for item in task.items] == [row["answer"] for row in rows]
    assert [item.group for item in task.items] == [row.get("subject") for row in rows]
