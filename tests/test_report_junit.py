import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from auditor.report.junit import JUnitCase, junit_xml

CASES = (
    JUnitCase("fsi", "passed", "FSI 0.02 is at most 0.10"),
    JUnitCase("psi", "failed", "PSI 0.31 is above 0.10", "json: 0.61\nplain: 0.92"),
    JUnitCase("parseability", "skipped", "no gold"),
    JUnitCase("missing", "error", "12 replies are missing"),
)


def legal(text: str) -> str:
    """What XML 1.0 allows of `text`."""
    return "".join(
        char
        for char in text
        if char in "\t\n\r" or "\x20" <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char >= "\U00010000"
    )


def test_cases_and_totals() -> None:
    """Every case is there with its status, and the totals count them."""
    root = ET.fromstring(junit_xml("gate", CASES))
    suite = root[0]
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["4", "1", "1", "1"]
    assert [[child.tag for child in case] for case in suite] == [["system-out"], ["failure"], ["skipped"], ["error"]]
    assert suite[1][0].get("message") == "PSI 0.31 is above 0.10"
    assert suite[1][0].text == "json: 0.61\nplain: 0.92"


@given(st.text(), st.text(), st.text(), st.sampled_from(["passed", "failed", "skipped", "error"]))
def test_any_text_makes_valid_xml(name: str, message: str, details: str, status) -> None:
    """Whatever a reply holds, the file parses, and what XML allows of a name comes back."""
    xml = junit_xml(name, [JUnitCase(name, status, message, details)])
    case = ET.fromstring(xml.encode("utf-8", "strict"))[0][0]
    assert case.get("name") == legal(name)


def test_illegal_characters_and_cdata_ends() -> None:
    """Characters that XML forbids are left out, `]]>` and markup are text."""
    xml = junit_xml("s", [JUnitCase("<script>", "failed", "\x00\x1b[31m\ud800\ufffe", "]]>&\x0b")])
    failure = ET.fromstring(xml)[0][0][0]
    assert failure.get("message") == "[31m"
    assert failure.text == "]]>&"


def test_no_cases() -> None:
    """An empty suite is still a suite."""
    assert ET.fromstring(junit_xml("empty", []))[0].get("tests") == "0"
