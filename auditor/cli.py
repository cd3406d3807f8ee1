"""Commands: options -> Study; errors -> one line, a hint, an exit code. No logic, no heavy import before its use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.errors import AuditorError, IncompleteError, Interrupted, UsageError
from auditor.options import split, study_fields

if TYPE_CHECKING:
    from rich.console import Console

    from auditor.estimate import Estimate
    from auditor.report.value import Report
    from auditor.study import Study

# matrices are small here: threads cost more than they bring, and would make last digits depend on the machine
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
app = typer.Typer(
    name="auditor",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Measures how much an LLM's score depends on the wrapper around the question.",
)

# Options that several commands share ---------------------------------------------------------------------------

Models = Annotated[
    str | None,
    typer.Option(help="[alias=]provider/id[@base_url...], separated by commas; several URLs share work."),
]
Tasks = Annotated[
    str | None, typer.Option(help="Bundled or hub tasks, or files (.jsonl, .csv, .parquet), separated by commas.")
]
Wrappers = Annotated[str | None, typer.Option(help="Wrapper names or .toml files, or all; separated by commas.")]
Parsers = Annotated[
    str | None,
    typer.Option(help="Parser names, .toml files, .yaml files of lm-eval, python:package.module:function."),
]
Seeds = Annotated[int | None, typer.Option(help="How many seeds: 0..K-1 are sent.  [default: 5; a local model: 2]")]
Items = Annotated[int | None, typer.Option(help="Items per task, drawn by seed.  [default: 200; a local model: 10]")]
MaxTokens = Annotated[
    str | None,
    typer.Option(help="Completion limit; several (24,256) are a factor; auto: a valid reply fits.  [default: auto]"),
]
Enforce = Annotated[
    str | None,
    typer.Option(help="Decode-time enforcement: none, json_object, json_schema, grammar.  [default: none]"),
]
Temperature = Annotated[float | None, typer.Option(help="Sampling temperature.  [default: 0.7]")]
Pad = Annotated[str | None, typer.Option(help="Equal prompt lengths: chars, item, tokens or none.  [default: chars]")]
Shots = Annotated[int | None, typer.Option(help="Worked examples before each question.  [default: 0]")]
Concurrency = Annotated[
    str | None,
    typer.Option(help="Requests in flight per model; auto: as many as pay.  [default: auto; a local model: 8]"),
]
Rpm = Annotated[int | None, typer.Option(help="Requests a minute per model, at most.")]
Tpm = Annotated[int | None, typer.Option(help="Tokens a minute per model, at most.")]
Timeout = Annotated[float | None, typer.Option(help="Seconds until a request counts as lost.  [default: 300]")]
MaxCost = Annotated[float | None, typer.Option(help="USD the whole run may cost; it stops before, exit 4.")]
MaxMinutes = Annotated[float | None, typer.Option(help="Minutes until no new request is sent, exit 4.")]
Prices = Annotated[
    Path | None, typer.Option(help='A .toml of prices: ["provider/id"], prompt and completion in USD per 1M tokens.')
]
Preflight = Annotated[
    bool | None, typer.Option("--preflight/--no-preflight", help="Ask a handful of calls first: key, model, seed, ...")
]
Strict = Annotated[bool | None, typer.Option("--strict-preflight", help="A preflight warning is an error.")]
Reuse = Annotated[Path | None, typer.Option(help="An earlier run whose replies to equal requests are taken.")]
Transport = Annotated[str | None, typer.Option(help="HTTP client: aiohttp, httpx or openai.  [default: aiohttp]")]
Columns = Annotated[str | None, typer.Option(help="Columns of task files: question=prompt,answer=label.")]
Source = Annotated[
    str | None, typer.Option("--study", help="A study: fsi, or a .toml file.  [default: ./auditor.toml if there]")
]
Out = Annotated[Path | None, typer.Option(help="Run folder; the same one resumes.  [default: reports/<date>-<name>]")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages; errors still show.")]


def _examples(*lines: str) -> str:
    """An epilog that keeps its lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@app.callback(invoke_without_command=True)
def _alone(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        import auditor

        typer.echo(f"auditor {auditor.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(
    epilog=_examples(
        "auditor run",
        "auditor run --models openai/gpt-4.1-mini --tasks cases.jsonl --wrappers all",
        "auditor run --models a=vllm/qwen@http://localhost:8000/v1,b=local/model.gguf --items 50 --seeds 3",
        "auditor run --models vllm/qwen --enforce none,grammar --max-tokens 24,256",
        "auditor run --models openrouter/qwen/qwen-2.5-7b-instruct --study fsi --max-cost 5",
    )
)
def run(
    models: Models = None,
    tasks: Tasks = None,
    wrappers: Wrappers = None,
    parsers: Parsers = None,
    seeds: Seeds = None,
    items: Items = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    pad: Pad = None,
    shots: Shots = None,
    enforce: Enforce = None,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    timeout: Timeout = None,
    max_cost: MaxCost = None,
    max_minutes: MaxMinutes = None,
    prices: Prices = None,
    preflight: Preflight = None,
    strict_preflight: Strict = None,
    transport: Transport = None,
    columns: Columns = None,
    study: Source = None,
    reuse: Reuse = None,
    out: Out = None,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Send items through wrappers, read the replies, report FSI and PSI. Run again with the same --out, it resumes."""
    from auditor import audit, results

    console = _stderr()
    told, notes = _study(study, **study_fields(locals()))
    report = audit.run(
        told,
        out,
        reuse=reuse,
        say=_say(console, quiet, notes),
        progress=_progress(console, quiet),
        confirm=_confirm(console, yes or told.max_cost is not None),
    )
    _print_report(report)
    why = results.incomplete(report.summary)
    if why:
        raise IncompleteError(why, "run the same command again: only what is missing is asked")


@app.command(
    epilog=_examples(
        "auditor plan --models openrouter/qwen/qwen-2.5-7b-instruct --study fsi",
        "auditor plan --models openai/gpt-4.1-mini --tasks cases.jsonl --prices prices.toml",
    )
)
def plan(
    models: Models = None,
    tasks: Tasks = None,
    wrappers: Wrappers = None,
    parsers: Parsers = None,
    seeds: Seeds = None,
    items: Items = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    pad: Pad = None,
    shots: Shots = None,
    enforce: Enforce = None,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    max_cost: MaxCost = None,
    prices: Prices = None,
    columns: Columns = None,
    study: Source = None,
    out: Out = None,
) -> None:
    """What a run would send: generations, tokens, cost, time. Asks no model."""
    from auditor import audit, estimate

    console = _stderr()
    told, notes = _study(study, **study_fields(locals()))
    typer.echo(estimate.table(audit.plan(told, out, say=_say(console, False, notes))))


@app.command(
    epilog=_examples(
        "auditor gate support.toml --tasks cases.jsonl --models openai/gpt-4.1-mini --min-parseability 0.98",
        "auditor gate old.toml new.toml --tasks cases.jsonl --max-fsi 0.05 --junit gate.xml",
        "auditor gate support.toml --tasks cases.jsonl --min-accuracy 0.8 --claim population --json -",
    )
)
def gate(
    templates: Annotated[list[str], typer.Argument(help="Wrapper files or names: the prompt templates to judge.")],
    min_parseability: Annotated[float | None, typer.Option(help="Least share of readable replies.")] = None,
    min_accuracy: Annotated[float | None, typer.Option(help="Least share of correct replies.")] = None,
    max_fsi: Annotated[float | None, typer.Option(help="Largest range of accuracy over the templates.")] = None,
    claim: Annotated[
        str, typer.Option(help="suite: these cases; population: cases like these, by 95 % bounds.")
    ] = "suite",
    parser: Annotated[str, typer.Option(help="The parser that reads replies as your program would.")] = "strict",
    json: Annotated[Path | None, typer.Option(help="Write the verdict as JSON; - for standard output.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the verdict as JUnit XML.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Append the verdict as markdown, for a CI step summary.")
    ] = None,
    models: Models = None,
    tasks: Tasks = None,
    seeds: Seeds = None,
    items: Items = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    pad: Annotated[str, typer.Option(help="Equal prompt lengths: chars, item, tokens or none.")] = "none",
    shots: Shots = None,
    enforce: Enforce = None,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    timeout: Timeout = None,
    max_cost: MaxCost = None,
    max_minutes: MaxMinutes = None,
    prices: Prices = None,
    preflight: Preflight = None,
    strict_preflight: Strict = None,
    transport: Transport = None,
    columns: Columns = None,
    study: Source = None,
    out: Out = None,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Judge a prompt template on your cases: PASS (exit 0), FAIL (1) or INCONCLUSIVE (3), for CI."""
    from auditor import gating
    from auditor.errors import unknown
    from auditor.report import judgement
    from auditor.verdict import Rules

    _writable(json if str(json) != "-" else None, junit, markdown)
    if claim not in ("suite", "population"):
        raise unknown("claim", claim, ("suite", "population"))
    console = _stderr()
    options = study_fields(locals()) | {"wrappers": tuple(templates), "parsers": (parser,)}
    told, notes = _study(study, **options)
    rules = Rules(min_parseability, min_accuracy, max_fsi, claim)  # type: ignore[arg-type]
    verdict, report = gating.gate(
        told,
        rules,
        out,
        say=_say(console, quiet, notes),
        progress=_progress(console, quiet),
        confirm=_confirm(console, yes or told.max_cost is not None),
    )
    if json is not None and str(json) != "-":
        json.write_bytes(judgement.as_json(verdict))
    if junit is not None:
        junit.write_text(judgement.as_junit(verdict), "utf-8")
    if markdown is not None:
        with markdown.open("a", encoding="utf-8") as file:
            file.write(judgement.as_markdown(verdict))
    typer.echo(judgement.as_json(verdict).decode() if str(json) == "-" else judgement.as_text(verdict), nl=False)
    _say(console, quiet)(f"report: {report.path / 'report.html'}")
    raise typer.Exit(verdict.exit_code)


@app.command(
    epilog=_examples(
        "auditor parse reports/2026-01-31-gpt --parsers strict,normalized > outcomes.jsonl",
        "auditor parse replies.jsonl --parsers mine.toml,normalized --labels labels.jsonl --summary audit.json",
    )
)
def parse(
    source: Annotated[Path, typer.Argument(help="A run folder, or generations as JSON Lines.")],
    parsers: Parsers = None,
    wrappers: Annotated[str | None, typer.Option(help="Wrapper files that give contracts of your own.")] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Hand labels as JSON Lines: a row's model, task, item, wrapper, seed; and label."),
    ] = None,
    disagreements: Annotated[
        Path | None, typer.Option(help="Write the rows on which parsers, or a label, differ here, as JSON Lines.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Write how the parsers compare here instead of standard error; .json for JSON.")
    ] = None,
) -> None:
    """Read replies with any parsers: JSON Lines to standard output, one line per row and parser. Asks no model."""
    from auditor import border
    from auditor.report import extractors

    summary = None if str(summary) == "-" else summary
    _writable(summary, disagreements)
    _not_twice(source, labels, summary, disagreements)
    say = _say(_stderr(), False)
    names, own, write = _parser_names(parsers), split(wrappers) or (), sys.stdout.buffer.write
    audit = border.compare_parsers(source, names, own, labels, disagreements, write, say)
    sys.stdout.flush()
    if summary is None:
        say(extractors.as_text(audit).rstrip())
    else:
        summary.write_bytes(extractors.as_bytes(audit, summary.suffix))


@app.command(epilog=_examples("auditor report reports/2026-01-31-gpt --parsers strict,normalized"))
def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    parsers: Parsers = None,
) -> None:
    """Rebuild the report and the tables of a run, with other parsers if you like. Asks no model."""

    from auditor import results

    _print_report(results.rebuild(run, split(parsers)))


@app.command(
    "import",
    epilog=_examples(
        "auditor import replies.jsonl --out reports/mine",
        "auditor import cells.csv   # model,task,wrapper,accuracy[,n][,parseability]",
    ),
)
def import_(
    source: Annotated[Path, typer.Argument(help="Generations (.jsonl) or a table of cells (.csv).")],
    out: Out = None,
    parsers: Parsers = None,
    wrappers: Annotated[str | None, typer.Option(help="Wrapper files that give contracts of your own.")] = None,
) -> None:
    """Measure generations or cells from elsewhere as if they were a run."""

    from auditor import border

    names, own = _parser_names(parsers), split(wrappers) or ()
    _print_report(border.import_rows(source, out, names, own, _say(_stderr(), False)))


@app.command(
    epilog=_examples(
        "auditor export reports/2026-01-31-gpt > generations.jsonl",
        "auditor export reports/2026-01-31-gpt --outcomes --to outcomes.parquet",
    )
)
def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    to: Annotated[
        Path | None, typer.Option(help="A .jsonl, .csv or .parquet file.  [default: JSON Lines to stdout]")
    ] = None,
    outcomes: Annotated[
        bool, typer.Option("--outcomes", help="What each parser read, instead of the generations.")
    ] = False,
) -> None:
    """Write a run's generations (or outcomes) for other tools; `auditor import` reads them back."""
    from auditor import border
    from auditor.report import exports

    exports.write(border.exported(run, outcomes), to)


@app.command(
    epilog=_examples(
        "auditor serve local/smollm2-135m-instruct --port 8080",
        "auditor serve local/path/to/model.gguf",
        "auditor serve vllm/Qwen/Qwen2.5-7B-Instruct -- --gpu-memory-utilization 0.8",
    )
)
def serve(
    model: Annotated[
        str, typer.Argument(help="local/<name>, local/<path>.gguf, or vllm/<path or id> where vLLM is installed.")
    ] = "local/smollm2-135m-instruct",
    arguments: Annotated[list[str] | None, typer.Argument(help="After --: vLLM's own arguments.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Loopback port; 0 takes a free one.")] = 0,
    slots: Annotated[int, typer.Option(min=1, max=64, help="Requests served at once.")] = 8,
) -> None:
    """Start a model on this machine, on loopback only, and print the --models value to use. Ctrl-C ends it."""
    from auditor import serving

    console = _stderr()
    serving.serve(model, port, slots, say=_say(console, False), tell=typer.echo, arguments=arguments or ())


@app.command(
    epilog=_examples(
        "auditor check my_wrapper.toml cases.jsonl", "auditor check reports/2026-01-31-gpt", "auditor check"
    )
)
def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Wrapper, parser, study or task files, run folders.")
    ] = None,
    tasks: Annotated[str | None, typer.Option(help="Cases whose columns a wrapper names.")] = None,
) -> None:
    """Validate files and run the examples in them; without paths, our own catalogue."""
    from auditor import checking

    failed = 0
    for finding in checking.check(paths or (), split(tasks) or ()):
        typer.echo(f"{'ok  ' if finding.ok else 'FAIL'} {finding.path}: {finding.message}")
        failed += not finding.ok
    if failed:
        raise typer.Exit(2)


@app.command(
    "list",
    epilog=_examples(
        "auditor list wrappers",
        "auditor list parsers --show normalized",
        'auditor list parsers --show normalized --reply \'Sure: {"answer": "b"}\' --wrapper json --choices A,B,C,D',
    ),
)
def list_(
    what: Annotated[str, typer.Argument(help="wrappers, parsers, tasks or models")] = "wrappers",
    show: Annotated[str | None, typer.Option(help="Explain one of them.")] = None,
    reply: Annotated[str | None, typer.Option(help="With a parser: explain it on this reply; - reads it.")] = None,
    wrapper: Annotated[str, typer.Option(help="The wrapper that the reply answers.")] = "plain",
    choices: Annotated[str | None, typer.Option(help="Its labels: A,B,C,D or A=iron,B=copper.")] = None,
    answer_type: Annotated[str | None, typer.Option(help="choice, boolean, number, label, text or json.")] = None,
) -> None:
    """What there is: wrappers, parsers, tasks, models."""
    from auditor import listing

    if reply is None and (choices or answer_type or wrapper != "plain"):
        raise UsageError("--wrapper, --choices and --answer-type are about a --reply", "--reply TEXT")
    if reply is not None and (show is None or what != "parsers"):
        raise UsageError("--reply explains a parser", "auditor list parsers --show normalized --reply TEXT")
    if show is None:
        typer.echo(listing.table(what))
        return
    text = sys.stdin.read() if reply == "-" else reply
    on = None if text is None else listing.one_reply(text, wrapper, split(choices) or (), answer_type)
    typer.echo(listing.show(what, show, on))


# What stands between options and stages ------------------------------------------------------------------------


def _study(source: str | None, **options: Any) -> tuple[Study, list[str]]:
    """The study, and what the user should know of it once it turns out to be a good one."""
    from auditor import settings

    notes = []
    if source is None and Path("auditor.toml").is_file():
        source = "auditor.toml"
        notes.append("using ./auditor.toml")
    built, about = settings.build(options, source)
    return built, [*notes, *about]


def _parser_names(text: str | None) -> tuple[str, ...]:
    return split(text) or ("strict", "paper", "normalized")


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _say(console: Console, quiet: bool, first: Sequence[str] = ()) -> Any:
    """Messages to standard error; the `first` ones wait for another, since an error needs no preface."""
    waiting = list(first)

    def say(message: str) -> None:
        lines = [*waiting, message]
        waiting.clear()
        for line in lines if not quiet else ():
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    return say


def _progress(console: Console, quiet: bool) -> Any:
    from auditor import audit, progress

    return audit.no_progress if quiet else lambda meter: progress.shown(meter, console)


_ASK_ABOVE_USD = 1.0
_ASK_ABOVE_GENERATIONS = 1000
"""Where a price is not known."""


def _confirm(console: Console, agreed: bool) -> Any:
    """Ask before money is spent, on a terminal; elsewhere nobody can answer, and that is an error."""

    def confirm(total: Estimate, paid: bool) -> bool:
        cost = total.cost_usd
        small = cost[1] <= _ASK_ABOVE_USD if cost else not paid or total.generations <= _ASK_ABOVE_GENERATIONS
        if agreed or small:
            return True
        price = f"up to ${cost[1]:,.2f}" if cost else "an amount that nobody told us"
        if not (sys.stdin.isatty() and console.is_terminal):
            raise UsageError(f"this run may cost {price}", "--yes agrees to that, --max-cost USD sets a limit")
        return typer.confirm(f"this run may cost {price}; go on?", err=True)

    return confirm


def _writable(*paths: Path | None) -> None:
    """Before anything is sent: a file that cannot be written would lose the verdict."""
    from auditor.errors import FileError

    for path in paths:
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise FileError(path, "cannot be written: it is a folder, or its folder is not there")


def _not_twice(*paths: Path | None) -> None:
    """What is written must not take the place of what is read, nor of what else is written."""
    seen: set[Path] = set()
    for path in filter(None, paths):
        if path.resolve() in seen:
            raise UsageError(f"{path} is named twice", "what is read and what is written are different files")
        seen.add(path.resolve())


def _print_report(report: Report) -> None:
    from rich.console import Console

    from auditor.report import terminal

    terminal.print_summary(report.summary, Console())
    typer.echo(f"report: {report.path / 'report.html'}")


def main(arguments: Iterable[str] | None = None) -> None:
    """The `auditor` command."""
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="auditor", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except AuditorError as error:
        _fail(error.message, error.hint, error.exit_code)
    except typer.TyperException as error:
        told = getattr(error, "format_message", error.__str__)()
        context = getattr(error, "ctx", None)
        _fail(told, f"see: {context.command_path} --help" if context else "", 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("stopped", "", Interrupted.exit_code)


def _fail(message: str, hint: str, code: int) -> None:
    typer.echo(f"auditor: {' '.join(message.split())}", err=True)
    if hint:
        typer.echo(f"  hint: {hint}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
