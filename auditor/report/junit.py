"""JUnit XML, for CI systems that show test cases."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

CaseStatus = Literal["passed", "failed", "skipped", "error"]

# XML 1.0, section 2.2: everything else may not stand in a document, not even as a character reference.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CHILD = {"failed": "failure", "skipped": "skipped", "error": "error"}


class JUnitCase(Struct, frozen=True):
    """One verdict: `message` is one line, `details` the evidence."""

    name: str
    status: CaseStatus
    message: str = ""
    details: str = ""


def junit_xml(suite: str, cases: Sequence[JUnitCase]) -> str:
    """One suite as JUnit XML; characters that XML 1.0 forbids are left out."""
    root = ET.Element("testsuites", _totals(suite, cases))
    node = ET.SubElement(root, "testsuite", _totals(suite, cases))
    for case in cases:
        _add(node, suite, case)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _totals(suite: str, cases: Sequence[JUnitCase]) -> dict[str, str]:
    def number(status: CaseStatus) -> str:
        return str(sum(case.status == status for case in cases))

    return {
        "name": _legal(suite),
        "tests": str(len(cases)),
        "failures": number("failed"),
        "errors": number("error"),
        "skipped": number("skipped"),
    }


def _add(suite_node: ET.Element, suite: str, case: JUnitCase) -> None:
    node = ET.SubElement(suite_node, "testcase", {"name": _legal(case.name), "classname": _legal(suite)})
    if case.status == "passed":
        if case.details or case.message:
            ET.SubElement(node, "system-out").text = _legal("\n".join(filter(None, (case.message, case.details))))
        return
    child = ET.SubElement(node, _CHILD[case.status], {"message": _legal(case.message)})
    if case.details:
        child.text = _legal(case.details)


def _legal(text: str) -> str:
    return _ILLEGAL.sub("", text)
