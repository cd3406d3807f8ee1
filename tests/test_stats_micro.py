"""The worked example (2 models, 2 tasks, 3 wrappers, 4 items, 1 seed), whose every figure was checked by hand."""

from __future__ import annotations

import json
import math
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.border import import_rows
from auditor.stats.effects import cochran_q, permutation_test
from auditor.stats.pairs import discordant, mcnemar
from auditor.stats.regression import accuracy_on_parseability
from auditor.stats.sensitivity import fsi, nfsi, psi
from auditor.stats.sequential import wealth
from auditor.stats.spread import within
from auditor.stats.wins import wins

WRAPPERS = ("plain", "json", "xml")
# (model, task) -> per wrapper the items 1-4: parsed, correct
MICRO = {
    ("m0", "t0"): (("1111", "1000"), ("1000", "1000"), ("1111", "1110")),
    ("m0", "t1"): (("1111", "1001"), ("1000", "1000"), ("1111", "1011")),
    ("m1", "t0"): (("1111", "0100"), ("1100", "1000"), ("1110", "0110")),
    ("m1", "t1"): (("1111", "1000"), ("1110", "0110"), ("1100", "1100")),
}
FSI = {("m0", "t0"): 0.5, ("m0", "t1"): 0.5, ("m1", "t0"): 0.25, ("m1", "t1"): 0.25}
PSI = {("m0", "t0"): 0.75, ("m0", "t1"): 0.75, ("m1", "t0"): 0.5, ("m1", "t1"): 0.5}
NFSI = {("m0", "t0"): 1.19999712, ("m0", "t1"): 0.999998, ("m1", "t0"): 0.74999775, ("m1", "t1"): 0.59999856}
BEST = {("m0", "t0"): (2,), ("m0", "t1"): (2,), ("m1", "t0"): (2,), ("m1", "t1"): (1, 2)}
WORST = {("m0", "t0"): (0, 1), ("m0", "t1"): (1,), ("m1", "t0"): (0, 1), ("m1", "t1"): (0,)}
SPREADS = (
    ((100, 104, 105), 0.04854368932038835, True),
    ((1000, 1025, 1051), 0.04973992197659298, True),
    ((100, 110, 120), 0.18181818181818182, False),
)
SHARED = Path(__file__).resolve().parents[2] / "shared" / "micro"


def rate(bits: str) -> float:
    return bits.count("1") / len(bits)


def accuracies(pair: tuple[str, str]) -> list[float]:
    return [rate(correct) for _, correct in MICRO[pair]]


def parseabilities(pair: tuple[str, str]) -> list[float]:
    return [rate(parsed) for parsed, _ in MICRO[pair]]


def cells() -> tuple[list[float], list[float], list[list[str]]]:
    """Accuracies, parseabilities and the labels of model, task and wrapper of the 12 cells."""
    a = [value for pair in MICRO for value in accuracies(pair)]
    p = [value for pair in MICRO for value in parseabilities(pair)]
    factors = [[pair[0] for pair in MICRO for _ in WRAPPERS], [pair[1] for pair in MICRO for _ in WRAPPERS]]
    return a, p, [*factors, [wrapper for _ in MICRO for wrapper in WRAPPERS]]


@pytest.mark.parametrize("pair", list(MICRO))
def test_sensitivity_of_each_pair(pair: tuple[str, str]) -> None:
    """FSI, PSI, nFSI and the best and worst wrappers are the exact ones."""
    found = fsi(accuracies(pair))
    assert found.value == FSI[pair]
    assert psi(parseabilities(pair)).value == PSI[pair]
    assert nfsi(accuracies(pair)) == pytest.approx(NFSI[pair], abs=1e-9)
    assert (found.best, found.worst) == (BEST[pair], WORST[pair])


def test_wins_share_the_tie() -> None:
    """xml wins 3.5, json 0.5 and plain none, since json and xml tie in m1/t1."""
    a, _, _ = cells()
    found = wins(np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4), a, 3)
    assert found.wins == (0.0, 0.5, 3.5)
    assert found.pairs == 4


def test_regression() -> None:
    """WLS with weights 4 gives beta 1/2, SE 1/(6 sqrt 2), t 3 sqrt 2, df 6 and partial R2 3/4."""
    a, p, factors = cells()
    found = accuracy_on_parseability(a, p, factors, [4] * 12)
    assert found.status == "ok"
    assert found.fit is not None
    assert found.fit.df == 6
    assert found.fit.beta == pytest.approx(0.5, abs=1e-9)
    assert found.fit.se == pytest.approx(1 / (6 * math.sqrt(2)), abs=1e-9)
    assert found.fit.t == pytest.approx(3 * math.sqrt(2), abs=1e-9)
    assert found.fit.p == pytest.approx(0.0054239503, abs=1e-9)
    assert found.fit.partial_r2 == pytest.approx(0.75, abs=1e-9)
    assert found.pearson_r == pytest.approx(math.sqrt(3 / 20), abs=1e-9)
    assert found.tautology_slope == pytest.approx(5 / 9, abs=1e-9)


def test_regression_with_twice_the_weight_for_one_model() -> None:
    """Weights of 8 for m1 leave beta at 1/2 and give SE 0.1075828707."""
    a, p, factors = cells()
    found = accuracy_on_parseability(a, p, factors, [4] * 6 + [8] * 6).fit
    assert found is not None
    assert found.beta == pytest.approx(0.5, abs=1e-9)
    assert found.se == pytest.approx(0.1075828707, abs=1e-9)


def test_an_exact_fit_on_one_degree_of_freedom_prints_no_slope() -> None:
    """One model, two tasks, three wrappers are refused, while Pearson's r = sqrt(12/17) stands."""
    a, p = [0.75, 0.5, 0.25, 0.5, 0.5, 0.25], [1, 1, 0.5, 1, 0.75, 0.25]
    found = accuracy_on_parseability(a, p, [["m"] * 6, ["t0"] * 3 + ["t1"] * 3, list("abcabc")])
    assert found.status == "too_few_cells"
    assert found.fit is None
    assert found.reason == "6 cells leave 1 degrees of freedom; 3 are needed"
    assert found.pearson_r == pytest.approx(math.sqrt(12 / 17), abs=1e-9)


@pytest.mark.parametrize(("tokens", "spread", "matched"), SPREADS)
def test_token_spread(tokens: tuple[int, ...], spread: float, matched: bool) -> None:
    """The spread's base is the mean, and the 5 % verdict follows from it."""
    found = (max(tokens) - min(tokens)) / np.mean(tokens)
    assert found == pytest.approx(spread, abs=1e-9)
    assert within(np.array([found])).tolist() == [matched]


def items(model: str, wrapper: str) -> list[float]:
    """Correct or not, item by item over both tasks."""
    place = WRAPPERS.index(wrapper)
    return [float(digit) for task in ("t0", "t1") for digit in MICRO[model, task][place][1]]


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """The shared values, which name the figures that must come out."""
    if not SHARED.is_dir():
        pytest.skip("the shared example is not beside this checkout")
    told: dict[str, Any] = json.loads((SHARED / "expected.json").read_text())
    return told


def test_cochrans_q_and_mcnemar() -> None:
    """m0 over its eight items: Q 6.5 with 2 degrees of freedom; xml right alone on 4 items, json on none."""
    found = cochran_q([items("m0", wrapper) for wrapper in WRAPPERS])
    assert (found.q, found.df) == (pytest.approx(6.5, abs=1e-9), 2)
    assert found.p == pytest.approx(math.exp(-3.25), abs=1e-12)
    pair = mcnemar(*discordant(items("m0", "xml"), items("m0", "json")))
    assert (pair.b, pair.c, pair.p) == (4, 0, pytest.approx(0.125, abs=1e-12))


def test_the_exact_permutation() -> None:
    """All 1296 relabellings of m0, t0: a mean range of 1/3, and 1/3 of them reach 1/2."""
    correct = [[float(digit) for digit in right] for _, right in MICRO["m0", "t0"]]
    found = permutation_test(correct, 0)
    assert found.exact
    assert (found.floor, found.p) == (pytest.approx(1 / 3, abs=1e-9), pytest.approx(1 / 3, abs=1e-9))


def test_wealth() -> None:
    """D = 1, 1, 0, -1, 1 at a limit of 0.1 with bets of 1/4 and 1/2, capped: the first step by hand is 1 + b 0.9."""
    told = wealth([1, 1, 0, -1, 1], 0.1, [0.25 / 1.1, 0.5 / 1.1], "at most")
    assert told[0] == pytest.approx(1 + 0.9 * (0.25 + 0.5) / 2 / 1.1, abs=1e-12)
    assert told == pytest.approx([1.3068181818, 1.7182334711, 1.6566197878, 1.0055541534, 1.3081536932], abs=1e-9)
    told = wealth([1, 1, 0, -1, 1], 0.1, [0.25 / 0.9, 0.5 / 0.9], "at least")
    assert told == pytest.approx([0.625, 0.40625, 0.4210069444, 0.5899643133, 0.3893289448], abs=1e-9)


def test_every_shared_value_comes_out(expected: dict[str, Any]) -> None:
    """From scored.jsonl through the tool's own journal: every figure of expected.json, to 1e-9 or to its last digit."""
    close = partial(pytest.approx, abs=1e-9)
    rows = [json.loads(line) for line in (SHARED / "scored.jsonl").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        report = import_rows(SHARED / "scored.jsonl", Path(folder) / "run", ("strict",), ("all",))
    summary = report.summary
    keyed = {f"{row.model}/{row.task}": row for row in summary.sensitivity}
    seen = {"about"}
    for name in ("fsi", "psi", "nfsi"):
        assert {key: getattr(row, name) for key, row in keyed.items()} == close(expected[name])
    assert {row.model: row.fsi for row in summary.models} == close(expected["macro_fsi"])
    assert {row.wrapper: row.wins for row in summary.wins} == close(expected["wins"])
    fit, told = summary.regression[0], expected["wls"]
    for name in ("beta", "se", "df", "partial_r2", "p", "pearson_r", "tautology_slope"):
        assert getattr(fit, name) == close(told[name])
    assert (fit.beta or 0) / (fit.se or 1) == close(told["t"])
    split = {key: {"content": row.content_part, "format": row.format_part} for key, row in keyed.items()}
    for key, parts in expected["paired_split_best_minus_worst"].items():
        assert split[key] == close(parts)
    q = cochran_q([items("m0", wrapper) for wrapper in WRAPPERS])
    assert {"q": q.q, "df": q.df, "p": q.p} == close(expected["cochran_q"]["m0"])
    pair = mcnemar(*discordant(items("m0", "xml"), items("m0", "json")))
    assert {"b": pair.b, "c": pair.c, "p_exact": pair.p} == close(expected["mcnemar_xml_vs_json"]["m0"])
    exact = expected["exact_permutation"]["m0/t0"]
    assert keyed["m0/t0"].p_wrapper_effect == close(exact["p"])
    correct = [[float(digit) for digit in right] for _, right in MICRO["m0", "t0"]]
    assert permutation_test(correct, 0).floor == close(exact["mean_range"])
    flat = [[value for task in expected["degenerate_regression"][name] for value in task] for name in "AP"]
    refused = accuracy_on_parseability(*flat, [["m"] * 6, ["t0"] * 3 + ["t1"] * 3, list("abcabc")])
    assert refused.status != "ok"
    assert refused.fit is None
    for row in expected["token_spread"]:
        width = (max(row["tokens"]) - min(row["tokens"])) / np.mean(row["tokens"])
        assert width == close(row["spread"])
        assert within(np.array([width])).tolist() == [row["within_5pct"]]
    process = expected["e_process"]
    for kind, hypothesis in (("fail", "at most"), ("pass", "at least")):
        bets = process[f"bets_{kind}"]
        assert wealth(process["D"], process["tau"], bets, hypothesis) == close(process[f"wealth_{kind}"])  # type: ignore[arg-type]
    seen |= {"fsi", "psi", "nfsi", "macro_fsi", "wins", "wls", "paired_split_best_minus_worst", "cochran_q"}
    seen |= {"mcnemar_xml_vs_json", "exact_permutation", "degenerate_regression", "token_spread", "e_process"}
    assert set(expected) == seen
    assert len(rows) == 48


def test_literals_are_the_shared_ones() -> None:
    """The figures above are those of the shared example."""
    if not SHARED.is_dir():
        pytest.skip("the shared example is not beside this checkout")
    expected: dict[str, Any] = json.loads((SHARED / "expected.json").read_text())
    for name, values in (("fsi", FSI), ("psi", PSI), ("nfsi", NFSI)):
        assert expected[name] == {"/".join(pair): value for pair, value in values.items()}
    assert expected["wins"] == {"xml": 3.5, "json": 0.5, "plain": 0.0}
    assert [(tuple(row["tokens"]), row["spread"], row["within_5pct"]) for row in expected["token_spread"]] == [*SPREADS]
    assert expected["wls"]["beta"] == 0.5
    rows = [json.loads(line) for line in (SHARED / "scored.jsonl").read_text().splitlines()]
    scored: dict[tuple[str, str, str], list[tuple[bool, bool]]] = {}
    for row in rows:
        scored.setdefault((row["model"], row["task"], row["wrapper"]), []).append((row["parsed"], row["correct"]))
    assert scored == {
        (*pair, wrapper): [(x == "1", y == "1") for x, y in zip(*MICRO[pair][i], strict=True)]
        for pair in MICRO
        for i, wrapper in enumerate(WRAPPERS)
    }
