"""Summaries for the report's tests: one as a run of two models gives it, one with nothing that could be computed."""

from __future__ import annotations

import msgspec

from auditor.figures import (
    Caveat,
    CellRow,
    Check,
    Counts,
    EndpointRow,
    EnforcementRow,
    MajorityVoteRow,
    ModelRow,
    RankingRow,
    RegressionRow,
    ReplyExample,
    RunInfo,
    SeedDisagreementRow,
    SensitivityRow,
    Summary,
    TokenSpread,
    WinsRow,
)
from auditor.records import Adaptation, Canary, Message

PARSERS = ("strict", "paper", "normalized")
WRAPPERS = ("plain", "json", "structured", "structured_delim", "deliberate")
TASKS = ("arithmetic", "comparisons", "yes_no")
MODELS = ("smollm2-135m", "gemma-3-270m")
N = 1000

# (accuracy, parseability) per mille and parser, in the order of WRAPPERS; tasks shift them a little.
RATES = {
    ("smollm2-135m", "strict"): ((301, 822), (18, 61), (244, 640), (102, 233), (190, 412)),
    ("smollm2-135m", "paper"): ((318, 871), (40, 120), (252, 661), (121, 270), (260, 590)),
    ("smollm2-135m", "normalized"): ((334, 915), (296, 842), (287, 766), (231, 602), (318, 871)),
    ("gemma-3-270m", "strict"): ((288, 790), (262, 741), (270, 755), (281, 702), (240, 655)),
    ("gemma-3-270m", "paper"): ((291, 801), (266, 750), (276, 761), (288, 722), (262, 701)),
    ("gemma-3-270m", "normalized"): ((302, 840), (310, 866), (290, 803), (301, 752), (296, 804)),
}
SHIFT = {"arithmetic": 0, "comparisons": 31, "yes_no": 74}
REASONS = {
    "plain": ("extra_text", "no_answer"),
    "json": ("code_fence", "invalid_json"),
    "structured": ("field_missing", "extra_text"),
    "structured_delim": ("block_missing", "truncated"),
    "deliberate": ("truncated", "field_missing"),
}


def cell(model: str, task: str, wrapper: str, parser: str) -> CellRow:
    accuracy, parseability = RATES[model, parser][WRAPPERS.index(wrapper)]
    missing = 30 if (model, task, wrapper) == ("gemma-3-270m", "yes_no", "json") else 0
    n = N - missing
    shift = SHIFT[task] * (3 - WRAPPERS.index(wrapper)) // 3
    correct = (accuracy + shift) * n // 1000
    parsed = (parseability + shift) * n // 1000
    first, second = REASONS[wrapper]
    unread = n - parsed
    return CellRow(
        model=model,
        task=task,
        wrapper=wrapper,
        arm="none",
        parser=parser,
        n=n,
        items=200,
        parsed=parsed,
        correct=correct,
        accuracy=correct / n,
        accuracy_ci=(max(0.0, correct / n - 0.032), correct / n + 0.034),
        accuracy_parsed=correct / parsed,
        parseability=parsed / n,
        parseability_ci=(parsed / n - 0.028, parsed / n + 0.027),
        missing=missing,
        prompt_tokens_mean=98.4 + 7 * WRAPPERS.index(wrapper),
        completion_tokens_mean=9.5 + 3.1 * WRAPPERS.index(wrapper),
        truncated=(N - RATES[model, "strict"][WRAPPERS.index(wrapper)][1]) // 3
        if "truncated" in (first, second)
        else 4,
        majority_vote_accuracy=correct / n - 0.004,
        reasons={first: unread - unread // 3, second: unread // 3},
    )


def sensitivity(cells: list[CellRow]) -> SensitivityRow:
    accuracy = {c.wrapper: c.accuracy or 0.0 for c in cells}
    readable = [c.parseability or 0.0 for c in cells]
    low, high, mean = min(accuracy.values()), max(accuracy.values()), sum(accuracy.values()) / len(accuracy)
    fsi = high - low
    return SensitivityRow(
        model=cells[0].model,
        task=cells[0].task,
        arm=cells[0].arm,
        parser=cells[0].parser,
        wrappers=tuple(c.wrapper for c in cells),
        fsi=fsi,
        psi=max(readable) - min(readable),
        nfsi=fsi / (mean + 1e-6),
        accuracy_min=low,
        accuracy_max=high,
        accuracy_mean=mean,
        best_wrappers=tuple(w for w, a in accuracy.items() if a == high),
        worst_wrappers=tuple(w for w, a in accuracy.items() if a == low),
        fsi_matched=fsi - 0.002,
        psi_matched=max(readable) - min(readable) - 0.003,
        fsi_floor=0.034,
        fsi_star=max(0.0, fsi - 0.006),
        fsi_ci=(max(0.0, fsi - 0.046), fsi + 0.035),
        fsi_bounds_simultaneous=(max(0.0, fsi - 0.061), fsi + 0.058),
        p_wrapper_effect=0.0001 if fsi > 0.1 else 0.0312,
        format_part=fsi * 0.9,
        content_part=fsi * 0.1,
        format_truncated=fsi * 0.3,
        format_noncompliant=fsi * 0.6,
    )


def model_row(rows: list[SensitivityRow]) -> ModelRow:
    def mean(name: str) -> float:
        return sum(getattr(row, name) for row in rows) / len(rows)

    fsi, psi, nfsi = mean("fsi"), mean("psi"), mean("nfsi")
    return ModelRow(
        model=rows[0].model,
        arm=rows[0].arm,
        parser=rows[0].parser,
        tasks=len(rows),
        fsi=fsi,
        fsi_ci_paper=(max(0.0, fsi - 0.021), fsi + 0.024),
        psi=psi,
        psi_ci_paper=(psi - 0.03, psi + 0.02),
        nfsi=nfsi,
        nfsi_ci_paper=(nfsi - 0.1, nfsi + 0.1),
        fsi_matched=fsi - 0.002,
        fsi_star=mean("fsi_star"),
        fsi_star_ci=(max(0.0, fsi - 0.05), fsi + 0.04),
    )


def rankings(cells: list[CellRow]) -> list[RankingRow]:
    rows = []
    for parser in PARSERS:
        for wrapper in WRAPPERS:
            mean = {
                model: sum(
                    c.accuracy or 0.0 for c in cells if (c.model, c.wrapper, c.parser) == (model, wrapper, parser)
                )
                / len(TASKS)
                for model in MODELS
            }
            order = sorted(mean, key=lambda model: -mean[model])
            rows.append(RankingRow(parser, "none", wrapper, tuple(order), tuple(mean[model] for model in order)))
    return rows


def realistic() -> Summary:
    """Two models, three tasks, five wrappers, three parsers; one cell lacks 3 % of its replies."""
    cells = [cell(m, t, w, p) for m in MODELS for t in TASKS for w in WRAPPERS for p in PARSERS]
    by_task = [
        sensitivity([c for c in cells if (c.model, c.task, c.parser) == (m, t, p)])
        for p in PARSERS
        for m in MODELS
        for t in TASKS
    ]
    models = [model_row([row for row in by_task if (row.model, row.parser) == (m, p)]) for m in MODELS for p in PARSERS]
    return Summary(
        schema=1,
        run=RunInfo("two-small-models", "2026-02-03T04:05:06Z", "0.1.0", "sha256:4f6c0b1d2e3a49587766", 7),
        counts=Counts(30000, 29970, 30, 30112, 112, 3410220, 470310, 1.284),
        preflight=(
            Check("gold replies", "ok", "every parser reads every wrapper's own gold reply"),
            Check(
                "token limit", "warning", "structured_delim: the shortest valid reply of yes_no needs 26 of 24 tokens"
            ),
            Check("enforcement canary", "skipped", "no arm asks for enforcement"),
        ),
        parsers=PARSERS,
        cells=tuple(cells),
        sensitivity=tuple(by_task),
        models=tuple(models),
        regression=(
            RegressionRow("strict", "none", "ok", 30, 0.512, 0.031, 21, 1e-9, 0.82, 0.825, 0.377),
            RegressionRow("paper", "none", "ok", 30, 0.498, 0.04, 21, 2e-8, 0.79, 0.811, 0.372),
            RegressionRow("normalized", "none", "parseability does not vary enough to fit a slope", 30, pearson_r=0.41),
        ),
        wins=tuple(
            WinsRow(p, "none", w, n, 6)
            for p in PARSERS
            for w, n in zip(WRAPPERS, (4.5, 0.0, 0.5, 1.0, 0.0), strict=True)
        ),
        seed_disagreement=tuple(SeedDisagreementRow(p, "none", 0.423, 5994) for p in PARSERS),
        majority_vote=tuple(MajorityVoteRow(p, "none", -0.008, 0.121, 30) for p in PARSERS),
        token_spread=TokenSpread(0.041, 0.612, 5994, 0.268),
        rankings=tuple(rankings(cells)),
        warnings=(
            Caveat("missing", "gemma-3-270m, yes_no, json: 30 of 1000 generations are missing (3.0 %)"),
            Caveat("token_limit", "structured_delim cannot be answered within 24 tokens in yes_no"),
            Caveat("regression", "normalized: no regression", ("regression.beta", "regression.df")),
        ),
    )


CANARIES = {
    "verified": "enforced: told to write a word, it wrote the only reply that the grammar has",
    "ignored": "ignored: told to write a word, it wrote the word",
    "claimed": "no canary was asked",
    "refused": "refused: HTTP 400: grammar is not supported",
}


def held(free: CellRow, arm: str, more: float) -> CellRow:
    """A cell as enforcement leaves it: all but 1 % readable, and `more` of the replies right."""
    correct, parsed = round(free.n * ((free.accuracy or 0.0) + more)), free.n - free.n // 100
    return msgspec.structs.replace(
        free,
        arm=arm,
        parsed=parsed,
        correct=correct,
        accuracy=correct / free.n,
        accuracy_ci=(correct / free.n - 0.032, correct / free.n + 0.034),
        accuracy_parsed=correct / parsed,
        parseability=parsed / free.n,
        parseability_ci=(parsed / free.n - 0.006, parsed / free.n + 0.005),
        reasons={"truncated": free.n - parsed},
    )


def enforcement(model: str, arm: str, parser: str = "strict", **changes: object) -> EnforcementRow:
    """Grammar as it works: nearly everything readable, more of it right."""
    fields: dict[str, object] = {
        "label": "verified",
        "canary": CANARIES["verified"],
        "wrappers": WRAPPERS,
        "tasks": 3,
        "n": 15000,
        "n_without": 15000,
        "parseability": 0.99,
        "parseability_without": 0.12,
        "parseability_change_ci": (0.83, 0.91),
        "accuracy": 0.41,
        "accuracy_without": 0.08,
        "accuracy_change_ci": (0.29, 0.37),
        "psi": 0.01,
        "psi_without": 0.40,
        "fsi": 0.06,
        "fsi_without": 0.28,
    }
    return EnforcementRow(model=model, arm=arm, parser=parser, **(fields | changes))  # type: ignore[arg-type]


def contrast(free: list[CellRow], cells: list[CellRow], **changes: object) -> EnforcementRow:
    """The row that these cells give."""
    wrappers = tuple(dict.fromkeys(c.wrapper for c in cells))
    free = [c for c in free if c.wrapper in wrappers]

    def mean(cells: list[CellRow], name: str) -> float:
        return sum(getattr(c, name) for c in cells) / len(cells)

    def spread(cells: list[CellRow], name: str) -> float | None:
        per_task = [[getattr(c, name) for c in cells if c.task == task] for task in TASKS]
        return sum(max(rates) - min(rates) for rates in per_task) / len(TASKS) if len(wrappers) > 1 else None

    readable = mean(cells, "parseability") - mean(free, "parseability")
    right = mean(cells, "accuracy") - mean(free, "accuracy")
    fields: dict[str, object] = {
        "wrappers": wrappers,
        "n": sum(c.n for c in cells),
        "n_without": sum(c.n for c in free),
        "parseability": mean(cells, "parseability"),
        "parseability_without": mean(free, "parseability"),
        "parseability_change_ci": (readable - 0.02, readable + 0.02),
        "accuracy": mean(cells, "accuracy"),
        "accuracy_without": mean(free, "accuracy"),
        "accuracy_change_ci": (right - 0.03, right + 0.03),
        "psi": spread(cells, "parseability"),
        "psi_without": spread(free, "parseability"),
        "fsi": spread(cells, "accuracy"),
        "fsi_without": spread(free, "accuracy"),
    }
    return enforcement(cells[0].model, cells[0].arm, cells[0].parser, **(fields | changes))


def no_range(row: SensitivityRow) -> SensitivityRow:
    """One wrapper is no range: nothing but the accuracy of the one stays."""
    keys = (row.model, row.task, row.arm, row.parser, row.wrappers)
    return SensitivityRow(*keys, None, None, None, row.accuracy_min, row.accuracy_max, row.accuracy_mean, (), ())


def endpoints() -> tuple[EndpointRow, ...]:
    """One server that took everything, one that did not and that changed during the run."""
    return (
        EndpointRow(
            model="smollm2-135m",
            server="http://127.0.0.1:8080/v1",
            provider="llamacpp",
            build="b6002-1a2b3c4",
            seed="honoured: one seed gave one reply, another seed another",
            adaptations=(),
            canaries=(
                Canary("grammar", "enforced", "it wrote the only reply that the grammar has"),
                Canary("json_schema", "ignored", "told to write a word, it wrote the word"),
            ),
            routing={},
            upstreams={},
            models_returned={"smollm2-135m-instruct-q4_k_m": 33000},
            fingerprints=1,
        ),
        EndpointRow(
            model="gemma-3-270m",
            server="https://openrouter.example/api/v1",
            provider="openrouter",
            build=None,
            seed="ignored: asked twice with one seed, it gave two replies",
            adaptations=(
                Adaptation("max_tokens", "24", "as max_completion_tokens", "Unsupported parameter: 'max_tokens'"),
                Adaptation("temperature", "0.7", "left out", "only the default (1) is supported"),
            ),
            canaries=(),
            routing={"only": ["deepinfra"], "allow_fallbacks": False},
            upstreams={"DeepInfra": 29000, "Together": 1},
            models_returned={"google/gemma-3-270m-it": 29001},
            fingerprints=3,
        ),
    )


def enforced() -> Summary:
    """The realistic run with arms: a grammar that works for one model and is only claimed for the other, and a JSON
    schema, for the one wrapper that it fits, that the endpoint ignored."""
    base = realistic()
    arms = {
        ("smollm2-135m", "grammar"): ("verified", WRAPPERS, 0.24),
        ("smollm2-135m", "json_schema"): ("ignored", ("json",), None),
        ("gemma-3-270m", "grammar"): ("claimed", WRAPPERS, 0.0),
    }
    cells, sensitivities, models, rows = list(base.cells), list(base.sensitivity), list(base.models), []
    for (model, arm), (label, wrappers, more) in arms.items():
        for parser in PARSERS:
            free = [c for c in base.cells if (c.model, c.parser) == (model, parser) and c.wrapper in wrappers]
            ours = [msgspec.structs.replace(c, arm=arm) if more is None else held(c, arm, more) for c in free]
            by_task = [sensitivity([c for c in ours if c.task == task]) for task in TASKS]
            if len(wrappers) > 1:
                models.append(model_row(by_task))
            else:
                by_task = [no_range(row) for row in by_task]
                models.append(ModelRow(model, arm, parser, 3, None, None, None, None, None, None))
            cells += ours
            sensitivities += by_task
            rows.append(contrast(free, ours, label=label, canary=CANARIES[label]))
    return msgspec.structs.replace(
        base,
        counts=Counts(63000, 62940, 60, 63412, 412, 7410220, 970310, 2.784, preflight_calls=14, reused=1200),
        cells=tuple(cells),
        sensitivity=tuple(sensitivities),
        models=tuple(models),
        warnings=(
            *base.warnings,
            Caveat("one_enforced_wrapper", "one wrapper is no range", ("enforcement.psi", "enforcement.fsi")),
            Caveat(
                "one_wrapper",
                "a range over wrappers needs two",
                ("sensitivity.fsi", "sensitivity.psi", "models.fsi", "models.psi"),
            ),
        ),
        endpoints=endpoints(),
        enforcement=tuple(rows),
    )


def unread() -> Summary:
    """The realistic run, had strict read nothing of the first model."""
    base = realistic()

    def mine(row: CellRow | SensitivityRow | ModelRow) -> bool:
        return (row.model, row.parser) == ("smollm2-135m", "strict")

    cells = [
        msgspec.structs.replace(c, parsed=0, correct=0, accuracy=0.0, accuracy_parsed=None, parseability=0.0)
        if mine(c)
        else c
        for c in base.cells
    ]
    zero = {"fsi": 0.0, "psi": 0.0, "nfsi": 0.0, "fsi_star": 0.0}
    return msgspec.structs.replace(
        base,
        cells=tuple(cells),
        models=tuple(msgspec.structs.replace(row, **zero) if mine(row) else row for row in base.models),
    )


def degenerate() -> Summary:
    """One model, one task, one wrapper, one parser, everything null that can be."""
    return Summary(
        schema=1,
        run=RunInfo("nothing", "2026-02-03T04:05:06Z", "0.1.0", "sha256:00", 0),
        counts=Counts(4, 0, 4, 8, 4, 0, 0),
        preflight=(),
        parsers=("given",),
        cells=(
            CellRow(
                "m",
                "t",
                "w",
                "none",
                "given",
                0,
                None,
                None,
                None,
                None,
                None,
                None,
                None,
                None,
                4,
                None,
                None,
                None,
                None,
                {},
            ),
        ),
        sensitivity=(SensitivityRow("m", "t", "none", "given", ("w",), None, None, None, None, None, None, (), ()),),
        models=(ModelRow("m", "none", "given", 0, None, None, None, None, None, None),),
        regression=(RegressionRow("given", "none", "there are fewer than three cells", 0),),
        wins=(),
        seed_disagreement=(SeedDisagreementRow("given", "none", None, 0),),
        majority_vote=(MajorityVoteRow("given", "none", None, None, 0),),
        token_spread=TokenSpread(None, None, 0, None),
        rankings=(),
        warnings=(
            Caveat("one_wrapper", "a range over wrappers needs at least two", ("sensitivity.fsi", "models.fsi")),
            Caveat("no_replies", "no reply arrived", ("cells.accuracy", "cells.parseability")),
        ),
    )


def example(text: str | None, reason: str = "code_fence", parser: str = "strict", **changes: object) -> ReplyExample:
    """An example of the realistic run."""
    fields: dict[str, object] = {
        "model": "smollm2-135m",
        "task": "arithmetic",
        "item": "arithmetic-17",
        "wrapper": "json",
        "seed": 2,
        "prompt": (
            Message("system", "You answer questions."),
            Message("user", "What is 3 + 4?\nA. 7\nB. 8\n\nReturn one JSON object with exactly one key."),
        ),
        "gold": "A",
        "finish_reason": "stop",
        "count": 12,
    }
    return ReplyExample(parser=parser, reason=reason, text=text, **(fields | changes))  # type: ignore[arg-type]


def examples() -> tuple[ReplyExample, ...]:
    """A few replies as small models give them."""
    return (
        example('```json\n{"answer": "A"}\n```'),
        example('```json\n{\n  "answer": "A. 7",\n  "explanation": "Adding 3 and 4'),
        example("The answer is A, since 3 + 4 = 7.", "extra_text", wrapper="plain"),
        example("<BEGIN ANSWER>\nanswer: A\n<END ANS", "truncated", wrapper="structured_delim", finish_reason="length"),
        example("A" + "\N{RIGHT-TO-LEFT OVERRIDE}" + "B\x07", "no_answer", parser="normalized", wrapper="plain"),
        example("", "empty", parser="paper", gold=None, finish_reason=None, prompt=()),
    )
