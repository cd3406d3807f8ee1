"""What a run is told: options over files and presets, and what is said of a value that cannot be."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from auditor.errors import FileError, UsageError
from auditor.records import EndpointOptions, Price
from auditor.settings import build, read_prices
from auditor.study import EMBEDDED, PRESETS, Study, TaskOptions


def written(folder: Path, text: str) -> str:
    path = folder / "audit.toml"
    path.write_text(text, "utf-8")
    return str(path)


def studied(folder: Path, text: str, **options: Any) -> Study:
    """The study of a file with this text and options over it."""
    return build(options, written(folder, text))[0]


def refused(folder: Path, text: str) -> tuple[str, str]:
    """What is said of a file with this text, after its path, and the hint."""
    path = written(folder, text)
    with pytest.raises(FileError) as caught:
        build({}, path)
    assert caught.value.message.startswith(f"{path}: ")
    return caught.value.message.removeprefix(f"{path}: "), caught.value.hint


# Building ------------------------------------------------------------------------------------------------------


def test_defaults() -> None:
    """A hosted model on the bundled tasks is asked 200 items over 5 seeds, and nothing needs to be said."""
    study, notes = build({"models": ("openai/x",)})
    assert notes == ()
    assert study.tasks == ("categories", "comparisons", "arithmetic", "groups", "lookup")
    assert study.wrappers == ("all",)
    assert study.parsers == ("strict", "paper", "normalized")
    assert (study.items, study.seeds, study.max_tokens, study.temperature) == (200, 5, "auto", 0.7)
    assert (study.pad, study.shots, study.concurrency, study.top_p, study.seed) == ("chars", 0, "auto", 1.0, 0)


def test_options_over_files_over_defaults(tmp_path: Path) -> None:
    """An option wins over the file, the file over the defaults; an option that is None says nothing."""
    file = 'models = ["openai/x"]\nitems = 30\nseeds = 3\n'
    study = studied(tmp_path, file, seeds=4, items=None)
    assert (study.items, study.seeds, study.temperature) == (30, 4, 0.7)
    assert studied(tmp_path, file, models=("openai/y",)).models == ("openai/y",)


def test_options_over_a_preset() -> None:
    """A preset is a starting point: options change it, and what it leaves open is the default."""
    study, _ = build({"models": ("openai/x",), "items": 3}, "fsi")
    assert (study.items, study.seeds, study.max_tokens) == (3, 5, 24)
    assert study.parsers == ("strict", "paper", "normalized")


def test_preset_fsi_is_the_papers_design() -> None:
    """`--study fsi`: seven tasks, the five wrappers, 200 items, 5 seeds, 24 tokens, padded to one character budget."""
    assert list(PRESETS) == ["fsi"]
    study, notes = build({"models": ("openai/x",)}, "fsi")
    assert study == Study(
        models=("openai/x",),
        tasks=("boolq", "piqa", "arc_challenge", "hellaswag", "winogrande", "commonsense_qa", "gsm8k"),
        wrappers=("all",),
        items=200,
        seeds=5,
        max_tokens=24,
        temperature=0.7,
        pad="chars",
        name="fsi",
    )
    assert notes == ()


def test_a_local_model_is_asked_less() -> None:
    """The embedded model's defaults are smaller and said so; what is named counts."""
    study, notes = build({})
    assert (study.models, study.items, study.seeds, study.concurrency) == ((EMBEDDED,), 10, 2, 8)
    assert notes == (
        "a model on this machine is asked less by default (--items 10 --seeds 2), to end in minutes; "
        "a full audit: --items 200 --seeds 5",
    )
    study, notes = build({"items": 50})
    assert (study.items, study.seeds) == (50, 2)
    assert notes[0].startswith("a model on this machine is asked less by default (--seeds 2)")
    assert build({"items": 50, "seeds": 3})[1] == ()


def test_smaller_defaults_are_for_local_models_alone() -> None:
    """One hosted model among them, and the usual defaults count; an alias or a path changes nothing."""
    assert build({"models": (EMBEDDED, "openai/x")})[0].items == 200
    assert build({"models": ("a=local/a=b/m.gguf", "b=local/m.gguf")})[0].items == 10
    assert build({"models": ("compat/local/x@http://h/v1?m=local/",)})[0].items == 200


def test_a_file_without_sizes_keeps_the_smaller_defaults(tmp_path: Path) -> None:
    """A file that names no sizes gets a local model's, and a file that does is followed."""
    path = written(tmp_path, 'tasks = ["cases.jsonl"]\n')
    study, notes = build({}, path)
    assert (study.items, study.seeds) == (10, 2)
    assert len(notes) == 1
    assert studied(tmp_path, "items = 40\nseeds = 1\n").items == 40
    assert build({}, "fsi")[0].items == 200


def test_bodies_of_models(tmp_path: Path) -> None:
    """`[models."x".body]` names a model and what is sent with its requests."""
    study = studied(
        tmp_path,
        '[models."openai/o"]\n[models."a=openrouter/q".body]\nreasoning = {effort = "low"}\n'
        '[models."a=openrouter/q".body.provider]\norder = ["x"]\n',
    )
    assert study.models == ("openai/o", "a=openrouter/q")
    assert study.bodies == {"a=openrouter/q": {"reasoning": {"effort": "low"}, "provider": {"order": ["x"]}}}


def test_columns_of_tasks(tmp_path: Path) -> None:
    """`[tasks."y".columns]` names a task and how its file is read."""
    study = studied(
        tmp_path,
        'models = ["openai/x"]\n[tasks.arithmetic]\n[tasks."cases.jsonl"]\nanswer_type = "label"\n'
        '[tasks."cases.jsonl".columns]\nquestion = "mail"\nanswer = "queue"\n',
    )
    assert study.tasks == ("arithmetic", "cases.jsonl")
    assert study.task_options == {"cases.jsonl": TaskOptions({"question": "mail", "answer": "queue"}, "label")}


def test_a_study_survives_the_store() -> None:
    """A study written as JSON is the same study when read back."""
    study, _ = build({"models": ("a=openai/x",), "task_options": {"*": {"columns": {"question": "q"}}}})
    assert msgspec.json.decode(msgspec.json.encode(study), type=Study) == study


# What cannot be ------------------------------------------------------------------------------------------------

NAMES = "must be a list of names"
LIMITS = "must be a whole number, several of them, or auto"
ENFORCE = "must be a list of none, json_object, json_schema or grammar"
WRONG = [
    ({"seeds": 0}, "seeds 0: must be at least 1"),
    ({"items": 0}, "items 0: must be at least 1"),
    ({"items": -3}, "items -3: must be at least 1"),
    ({"shots": -1}, "shots -1: must be at least 0"),
    ({"concurrency": 0}, "concurrency 0: must be at least 1"),
    ({"max_tokens": 0}, "max_tokens 0: must be at least 1"),
    ({"max_tokens": "lots"}, f"max_tokens 'lots': {LIMITS}"),
    ({"max_tokens": 2.5}, f"max_tokens 2.5: {LIMITS}"),
    ({"max_tokens": [24, 0]}, "max_tokens 0: must be at least 1"),
    ({"max_tokens": [24, "auto"]}, f"max_tokens [24, 'auto']: {LIMITS}"),
    ({"max_tokens": [24, 24]}, "max_tokens: 24 is named twice"),
    ({"max_tokens": []}, "max_tokens: none named"),
    ({"concurrency": "fast"}, "concurrency 'fast': must be a whole number or auto"),
    ({"rpm": 0}, "rpm 0: must be at least 1"),
    ({"rpm": 0.5}, "rpm 0.5: must be a whole number"),
    ({"tpm": 0}, "tpm 0: must be at least 1"),
    ({"tpm": "many"}, "tpm 'many': must be a whole number"),
    ({"timeout": 0}, "timeout 0: must be above 0"),
    ({"timeout": "long"}, "timeout 'long': must be seconds"),
    ({"max_cost": 0}, "max_cost 0: must be above 0"),
    ({"max_cost": -2.5}, "max_cost -2.5: must be above 0"),
    ({"max_cost": float("nan")}, "max_cost nan: must be above 0"),
    ({"max_cost": "$5"}, "max_cost '$5': must be an amount in USD"),
    ({"max_minutes": 0}, "max_minutes 0: must be above 0"),
    ({"max_minutes": "1h"}, "max_minutes '1h': must be a number of minutes"),
    ({"enforce": ["json"]}, f"enforce ['json']: {ENFORCE}"),
    ({"enforce": "none"}, f"enforce 'none': {ENFORCE}"),
    ({"enforce": []}, "enforce: none named"),
    ({"enforce": ["none", "none"]}, "enforce: 'none' is named twice"),
    ({"preflight": "no"}, "preflight 'no': must be true or false"),
    ({"strict_preflight": 1}, "strict_preflight 1: must be true or false"),
    ({"temperature": 3.0}, "temperature 3: must be between 0 and 2"),
    ({"temperature": -0.1}, "temperature -0.1: must be between 0 and 2"),
    ({"temperature": float("nan")}, "temperature nan: must be between 0 and 2"),
    ({"temperature": "hot"}, "temperature 'hot': must be a number"),
    ({"top_p": 1.5}, "top_p 1.5: must be between 0 and 1"),
    ({"pad": "spaces"}, "pad 'spaces': must be chars, item, tokens or none"),
    ({"transport": "curl"}, "transport 'curl': must be aiohttp, httpx or openai"),
    ({"seeds": "3"}, "seeds '3': must be a whole number"),
    ({"seeds": 2.5}, "seeds 2.5: must be a whole number"),
    ({"seeds": True}, "seeds True: must be a whole number"),
    ({"models": "openai/x"}, f"models 'openai/x': {NAMES}"),
    ({"models": 3}, f"models 3: {NAMES}"),
    ({"tasks": "boolq"}, f"tasks 'boolq': {NAMES}"),
    ({"tasks": [3]}, f"tasks [3]: {NAMES}"),
    ({"tasks": []}, "tasks: none named"),
    ({"wrappers": []}, "wrappers: none named"),
    ({"stop": "x"}, "stop 'x': must be a list of texts"),
    ({"models": ["openai/x", "openai/x"]}, "models: 'openai/x' is named twice"),
    ({"tasks": ["a", "b", "a"]}, "tasks: 'a' is named twice"),
    ({"models": ["openai/x", "compat/x@http://h/v1"]}, "two models are called 'x'"),
    ({"models": ["a=openai/x", "a=openai/y"]}, "two models are called 'a'"),
    ({"models": ["x"]}, "model 'x' is not provider/id"),
    ({"name": "a/b"}, "name 'a/b': use letters, digits, _ . + -"),
    ({"name": 3}, "name 3: must be text"),
    ({"seedz": 3}, "unknown option 'seedz'"),
]


def option(said: str) -> str:
    """The same in the words of the command line: `--max-tokens`, not `max_tokens`."""
    key = re.match(r"\w+", said)
    if key is None or key[0] not in Study.__struct_fields__:
        return said
    return f"--{key[0].replace('_', '-')}{said[key.end() :]}"


def toml(value: Any) -> str:
    """A value as TOML: JSON, but for nan."""
    return "nan" if value != value else json.dumps(value)


@pytest.mark.parametrize(("options", "said"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_option_is_one_clear_line(options: dict[str, Any], said: str) -> None:
    """A wrong option is named as it is typed, with its value and what it must be."""
    with pytest.raises(UsageError) as caught:
        build(options)
    assert not isinstance(caught.value, FileError)
    assert caught.value.message == option(said)


@pytest.mark.parametrize(("options", "said"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_value_in_a_file_names_the_file(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    """The same in a file begins with its path and names the key as the file writes it."""
    ((key, value),) = options.items()
    path = written(tmp_path, f"{key} = {toml(value)}\n")
    with pytest.raises(FileError) as caught:
        build({}, path)
    assert caught.value.message == f"{path}: {said}"


def test_who_said_it_is_who_is_named(tmp_path: Path) -> None:
    """A wrong option beside a sound file is the option's, not the file's."""
    path = written(tmp_path, "items = 3\n")
    with pytest.raises(UsageError) as caught:
        build({"seeds": 0}, path)
    assert caught.value.message == "--seeds 0: must be at least 1"


def test_hints() -> None:
    """A hint says what to write instead."""
    for options, hint in (
        ({"seedz": 3}, "did you mean seed or seeds"),
        ({"tasks": "boolq"}, 'write tasks = ["..."]'),
        ({"models": ["openai/x", "compat/x@http://h/v1"]}, "give one another name: --models a=...,b=..."),
        ({"models": ["x"]}, f"for example openai/gpt-4.1-mini, or {EMBEDDED}"),
    ):
        with pytest.raises(UsageError) as caught:
            build(options)
        assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [1", "not TOML: Unclosed array (at end of document)"),
        ("x = " + "[" * 100_000, "not TOML: nested too deeply"),
        ("[models]\nx = 3\n", 'models."x": only the tables body, price and endpoint can stand here'),
        (
            '[models."openai/x"]\nbody = 3\n',
            'models."openai/x": only the tables body, price and endpoint can stand here',
        ),
        (
            '[models."openai/x"]\nbdy = {}\n',
            'models."openai/x": only the tables body, price and endpoint can stand here',
        ),
        ("[bodies.x]\na = 1\n", "unknown option 'bodies'"),
        ("[prices.x]\nprompt = 1\n", "unknown option 'prices'"),
        ("[endpoints.x]\n", "unknown option 'endpoints'"),
        ("[task_options.x]\n", "unknown option 'task_options'"),
        ("[tasks]\ny = 3\n", 'tasks."y" 3: must be a table'),
        ("[tasks.y]\ncols = 3\n", "tasks.\"y\": unknown option 'cols'"),
        (
            '[tasks.y]\nanswer_type = "bool"\n',
            "tasks.\"y\": answer_type 'bool': must be choice, boolean, number, label, text or json",
        ),
        ("[tasks.y.columns]\nquestion = 3\n", "tasks.\"y\": columns {'question': 3}: must be a table of names"),
        ('[models."openai/x".body]\nseed = 1\n', "the body of 'openai/x' sets seed, which is the study's to set"),
    ],
)
def test_a_file_that_cannot_be(tmp_path: Path, text: str, said: str) -> None:
    """What is wrong with a study file is one line with its path and the table it is in."""
    path = written(tmp_path, text)
    with pytest.raises(FileError) as caught:
        build({}, path)
    assert caught.value.message == f"{path}: {said}"


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    """A missing file is named; a name that is no preset has the nearest ones."""
    with pytest.raises(FileError, match=r"gone\.toml: No such file or directory"):
        build({}, str(tmp_path / "gone.toml"))
    with pytest.raises(UsageError, match="unknown study 'fsii'") as caught:
        build({}, "fsii")
    assert caught.value.hint == "did you mean fsi; a path to a .toml file works too"


# Presets in files ----------------------------------------------------------------------------------------------


def test_a_file_may_start_from_a_preset(tmp_path: Path) -> None:
    """`preset = "fsi"`: the file's own words over the preset's, options over both."""
    study = studied(tmp_path, 'preset = "fsi"\nmodels = ["openai/x"]\nitems = 3\nseeds = 2\n', seeds=4)
    assert (study.items, study.seeds, study.max_tokens, study.name) == (3, 4, 24, "fsi")
    assert study.tasks == PRESETS["fsi"]["tasks"]


def test_a_preset_is_never_changed(tmp_path: Path) -> None:
    """What one file adds to a preset is not there for the next."""
    studied(tmp_path, 'preset = "fsi"\nmodels = ["openai/x"]\nitems = 3\n')
    assert build({}, "fsi")[0].items == 200


def test_an_unknown_preset(tmp_path: Path) -> None:
    """It is named beside the known ones."""
    assert refused(tmp_path, 'preset = "fsii"\n') == ("unknown preset 'fsii'", "known: fsi")
    assert refused(tmp_path, "preset = 3\n") == ("unknown preset '3'", "known: fsi")


def test_a_preset_that_is_no_name(tmp_path: Path) -> None:
    """A list of presets is refused as a file's error."""
    assert refused(tmp_path, 'preset = ["fsi"]\n')[0].startswith("unknown preset")


# Prices --------------------------------------------------------------------------------------------------------

WRONG_PRICES = [
    ("prompt = -1\ncompletion = 2\n", "prompt -1: must be USD per million tokens, 0 or more", ""),
    ("prompt = 1\ncompletion = nan\n", "completion nan: must be USD per million tokens, 0 or more", ""),
    ("prompt = inf\ncompletion = 1\n", "prompt inf: must be USD per million tokens, 0 or more", ""),
    ("prompt = 1\ncompletion = 1\nrequest = -0.1\n", "request -0.1: must be USD per request, 0 or more", ""),
    ('prompt = "0.4"\ncompletion = 1\n', "prompt '0.4': must be USD per million tokens, 0 or more", ""),
    ("promt = 1\ncompletion = 1\n", "unknown option 'promt'", "did you mean prompt"),
    ("prompt = 1\n", "completion: there is none", "it must be USD per million tokens, 0 or more"),
    ("", "prompt: there is none", "it must be USD per million tokens, 0 or more"),
]


@pytest.mark.parametrize(("text", "said", "hint"), WRONG_PRICES)
def test_a_price_that_cannot_be_in_a_study(tmp_path: Path, text: str, said: str, hint: str) -> None:
    """File, table, field and value are named."""
    told = refused(tmp_path, f'[models."openai/x".price]\n{text}')
    assert told == (f'models."openai/x".price: {said}', hint)


@pytest.mark.parametrize(("text", "said", "hint"), WRONG_PRICES)
def test_a_price_that_cannot_be_in_a_file_of_prices(tmp_path: Path, text: str, said: str, hint: str) -> None:
    """The same in the words of that file."""
    path = tmp_path / "prices.toml"
    path.write_text(f'["openai/x"]\n{text}')
    with pytest.raises(FileError) as caught:
        read_prices(path)
    assert (caught.value.message, caught.value.hint) == (f'{path}: "openai/x": {said}', hint)


def test_prices_of_a_study(tmp_path: Path) -> None:
    """`[models."x".price]` is that model's; a price of 0 is a price; whole numbers are amounts too."""
    study = studied(
        tmp_path,
        '[models."openai/x".price]\nprompt = 0\ncompletion = 0\n'
        '[models."a=openai/y".price]\nprompt = 0.4\ncompletion = 1.6\nrequest = 0.01\n[models."openai/z"]\n',
    )
    assert study.prices == {"openai/x": Price(0.0, 0.0), "a=openai/y": Price(0.4, 1.6, 0.01)}
    assert study.models == ("openai/x", "a=openai/y", "openai/z")


def test_prices_from_the_command_line_stand_over_the_files(tmp_path: Path) -> None:
    """A price given with --prices replaces that of the same model and leaves the others."""
    text = (
        '[models."openai/x".price]\nprompt = 1\ncompletion = 1\n[models."openai/y".price]\nprompt = 2\ncompletion = 2\n'
    )
    study = studied(tmp_path, text, prices={"openai/x": Price(9.0, 9.0)})
    assert study.prices == {"openai/x": Price(9.0, 9.0), "openai/y": Price(2.0, 2.0)}


def test_a_file_of_prices(tmp_path: Path) -> None:
    """A table per model as `--models` names it; a byte-order mark is no part of it."""
    path = tmp_path / "prices.toml"
    path.write_text('\ufeff["openai/x"]\nprompt = 0.4\ncompletion = 1.6\n[mini]\nprompt = 1\ncompletion = 2\n', "utf-8")
    assert read_prices(path) == {"openai/x": Price(0.4, 1.6), "mini": Price(1.0, 2.0)}


def test_a_file_of_prices_that_cannot_be(tmp_path: Path) -> None:
    """Missing, not TOML, no table, not text and empty are each one line."""
    path = tmp_path / "prices.toml"
    for content, said in (
        (None, "No such file or directory"),
        (b"x = [1", "not TOML: Unclosed array (at end of document)"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x = 3\n", '"x" 3: must be a table'),
        (b"", "no prices"),
        (b"# nothing yet\n", "no prices"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(FileError) as caught:
            read_prices(path)
        assert caught.value.message.startswith(f"{path}: {said}")
    assert caught.value.hint == '["openai/gpt-4.1-mini"] and below it prompt = 0.4, completion = 1.6'


# Endpoints -----------------------------------------------------------------------------------------------------


def test_an_endpoint_is_told_by_the_names_of_variables(tmp_path: Path) -> None:
    """`[endpoint]` is for all models, `[models."x".endpoint]` for one."""
    study = studied(
        tmp_path,
        '[endpoint.headers]\nX-Team = "TEAM"\n[endpoint.query]\napi-version = "API_VERSION"\n'
        '[models."openai/x".endpoint.auth_header]\napi-key = "AZURE_KEY"\n[models."openai/y"]\n',
    )
    assert study.endpoint == EndpointOptions(headers={"X-Team": "TEAM"}, query={"api-version": "API_VERSION"})
    assert study.endpoints == {"openai/x": EndpointOptions(auth_header={"api-key": "AZURE_KEY"})}
    assert study.models == ("openai/x", "openai/y")


PASTED = "sk-proj-S3cr3t"


@pytest.mark.parametrize("where", ["endpoint", 'models."openai/x".endpoint'])
@pytest.mark.parametrize("field", ["headers", "query", "auth_header"])
@pytest.mark.parametrize("value", [PASTED, f"Bearer {PASTED}", f"${PASTED}", "", "2024-10-21"])
def test_a_pasted_key_is_refused_and_not_shown(tmp_path: Path, where: str, field: str, value: str) -> None:
    """A value that names no environment variable is refused without being repeated."""
    message, hint = refused(tmp_path, f'[{where}.{field}]\nx-key = "{value}"\n')
    assert message == f"{where}: {field}.x-key does not name an environment variable"
    assert hint == "the value is never in the file: name the environment variable that holds it, in capitals"


@pytest.mark.parametrize(
    "text",
    [
        f'[endpoint]\nauth_header = "{PASTED}"\n',
        f'[endpoint]\nheaders = ["Authorization: Bearer {PASTED}"]\n',
        f'endpoint = "{PASTED}"\n',
        f'[models."openai/x"]\nendpoint = "{PASTED}"\n',
        f'[endpoint.headers]\nx-key = ["{PASTED}"]\n',
    ],
)
def test_a_key_pasted_in_the_wrong_place_is_not_shown_either(tmp_path: Path, text: str) -> None:
    """Whatever is wrong with an endpoint's table, its values are not repeated."""
    assert PASTED not in refused(tmp_path, text)[0]


def test_an_endpoint_that_cannot_be(tmp_path: Path) -> None:
    """Two headers for one key, a name that no header has, an unknown field."""
    two = '[endpoint.auth_header]\na = "A"\nb = "B"\n'
    assert refused(tmp_path, two)[0] == "endpoint: auth_header names 2 headers, one carries the key"
    for name in ("", "a b", "a:", "a\\r\\nb"):
        message, _ = refused(tmp_path, f'[endpoint.headers]\n"{name}" = "A"\n')
        assert message.startswith("endpoint: headers has a name that none can have: ")
    assert refused(tmp_path, f'[endpoint]\napi_key = "{PASTED}"\n')[0] == "endpoint: unknown option 'api_key'"


# What is new in a study ----------------------------------------------------------------------------------------


def test_everything_of_a_run_may_stand_in_a_file(tmp_path: Path) -> None:
    """Pace, limits, enforcement and preflight as a file writes them; several servers of one model."""
    study = studied(
        tmp_path,
        'models = ["q=vllm/q@http://one:8000/v1@http://two:8000/v1"]\nmax_tokens = [24, 256]\n'
        'enforce = ["none", "grammar"]\nconcurrency = 4\nrpm = 600\ntpm = 90000\ntimeout = 30\nmax_cost = 2\n'
        "max_minutes = 15\npreflight = false\nstrict_preflight = true\n",
    )
    assert study.specs[0].base_urls == ("http://one:8000/v1", "http://two:8000/v1")
    assert (study.limits, study.enforce) == ((24, 256), ("none", "grammar"))
    assert (study.concurrency, study.rpm, study.tpm) == (4, 600, 90_000)
    assert (study.timeout, study.max_cost, study.max_minutes) == (30.0, 2.0, 15.0)
    assert (study.preflight, study.strict_preflight) == (False, True)
