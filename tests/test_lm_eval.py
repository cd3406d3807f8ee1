"""lm-evaluation-harness's filter lists as parsers."""

from __future__ import annotations

from pathlib import Path

import pytest
from parsing_samples import CONTRACTS, LETTERS, METALS, NUMBER

from auditor.catalogue import parsers
from auditor.errors import FileError
from auditor.parsing import compile_parser
from auditor.records import Reply

TASK = r"""
task: sums
doc_to_text: !function utils.doc_to_text
include: _default_yaml
filter_list:
  - name: strict-match
    filter:
      - function: regex
        regex_pattern: "#### (\\-?[0-9\\.\\,]+)"
      - function: take_first
  - name: flexible-extract
    filter:
      - function: "regex"
        group_select: -1
        regex_pattern: "(-?[$0-9.,]{2,})|(-?[0-9]+)"
      - function: take_first
metric_list:
  - metric: exact_match
    regexes_to_ignore: [",", "\\$", "(?s).*#### ", "\\.$"]
    ignore_case: true
"""

LETTERS_FIRST = r"""
filter_list:
- name: letters
  filter:
  - {function: multi_choice_regex, regex_pattern: '(\([A-Z]\))', group_select: -1}
  - {function: map, mapping_dict: {'(A)': D}, default_value: B}
  - {function: majority_vote}
"""


def test_each_filter_of_a_task_file_is_a_parser(tmp_path: Path) -> None:
    """Names, order and what the task's exact_match ignores are kept; Python in the file is passed over."""
    path = tmp_path / "task.yaml"
    path.write_text(TASK)
    strict, flexible = parsers([str(path)])
    assert (strict.name, flexible.name) == ("strict-match", "flexible-extract")
    assert strict.digest != flexible.digest

    def read(parser: object, text: str) -> str | None:
        return compile_parser(parser).read(Reply(text), CONTRACTS["text"], NUMBER).value  # type: ignore[arg-type]

    assert read(strict, "3 + 4 = 7\n#### 1,234.") == "1234"
    assert read(strict, "The answer is 1,234.") is None
    assert read(flexible, "12 boxes make $1,234.") == "1234"
    assert read(flexible, "so 7") == "7"


def test_a_file_that_is_only_the_list(tmp_path: Path) -> None:
    """A filter_list of its own, with multi_choice_regex and a map, is read in the order it stands."""
    path = tmp_path / "mine.yml"
    path.write_text(LETTERS_FIRST)
    (parser,) = parsers([str(path)])
    reader = compile_parser(parser)
    assert reader.read(Reply("(A)"), CONTRACTS["text"], METALS).value == "D"
    assert reader.read(Reply("(C)"), CONTRACTS["text"], LETTERS).value == "B"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TASK.replace("function: regex", "function: regx"),
            "task.yaml:8: filter_list[0].filter[0].function: unknown filter 'regx'",
        ),
        (
            TASK.replace("function: regex", "function: !function utils.F"),
            "!function utils.F is Python code, which is not run",
        ),
        (TASK.replace("filter_list", "filters"), "task.yaml: no filter_list"),
        (TASK.replace("name: strict-match", "title: strict-match"), "filter_list[0]: no name"),
        (TASK.replace("name: strict-match", "name: a b"), "name 'a b': use letters"),
        (
            TASK.replace("  - name: strict-match\n    filter:", "  - name: strict-match\n    filters:"),
            "filter_list[0]: no list `filter`",
        ),
        ("a: [", "task.yaml:1: not YAML"),
        ("- 1", "filter_list[0]: no list `filter`"),
    ],
)
def test_a_list_that_cannot_be_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    """The file, the place in it, the value, and the nearest filter there is."""
    path = tmp_path / "task.yaml"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        parsers([str(path)])
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_two_filters_of_one_name_are_refused(tmp_path: Path) -> None:
    """Two files may each have a strict-match; together they cannot be told apart."""
    names = []
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(TASK.replace("####", name))
        names.append(str(tmp_path / name))
    with pytest.raises(Exception, match="two parsers are called 'strict-match'"):
        parsers(names)


def test_a_yaml_file_cannot_run_anything(tmp_path: Path) -> None:
    """Tags that make objects in unsafe YAML are text here."""
    path = tmp_path / "task.yaml"
    path.write_text(TASK + "x: !!python/object/apply:os.system ['touch pwned']\n")
    with pytest.raises(FileError, match="not YAML"):
        parsers([str(path)])
    assert not Path("pwned").exists()
