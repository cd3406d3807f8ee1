"""What a run is told: options over files and presets, and what is said of a value that cannot be."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from auditor.errors import FileError, UsageError
from auditor.study import EMBEDDED, PRESETS, ModelSpec, Study, TaskOptions, build, parse_model


def written(folder: Path, text: str) -> str:
    path = folder / "audit.toml"
    path.write_text(text, "utf-8")
    return str(path)


def studied(folder: Path, text: str, **options: Any) -> Study:
    """The study of a file with this text and options over it."""
    return build(options, written(folder, text))[0]


# Models --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("openai/gpt-4.1-mini", ModelSpec("gpt-4.1-mini", "openai", "gpt-4.1-mini")),
        ("mini=openai/gpt-4.1-mini", ModelSpec("mini", "openai", "gpt-4.1-mini")),
        ("openrouter/qwen/qwen-2.5:free", ModelSpec("qwen/qwen-2.5:free", "openrouter", "qwen/qwen-2.5:free")),
        (
            "compat/Qwen/Qwen2.5@http://localhost:8000/v1",
            ModelSpec("Qwen/Qwen2.5", "compat", "Qwen/Qwen2.5", "http://localhost:8000/v1"),
        ),
        ("a=compat/q@https://h.example/v1/", ModelSpec("a", "compat", "q", "https://h.example/v1")),
        ("compat/@cf/meta/llama@http://h/v1", ModelSpec("@cf/meta/llama", "compat", "@cf/meta/llama", "http://h/v1")),
        ("compat/q@http://h:1/deployments/a=b?x=1", ModelSpec("q", "compat", "q", "http://h:1/deployments/a=b?x=1")),
        (EMBEDDED, ModelSpec("smollm2-135m-instruct", "local", "smollm2-135m-instruct")),
        ("local/path/to/model.Q4.gguf", ModelSpec("model.Q4", "local", "path/to/model.Q4.gguf")),
        ("local//abs/model.gguf", ModelSpec("model", "local", "/abs/model.gguf")),
        ("big=local/./a=b/model.gguf", ModelSpec("big", "local", "./a=b/model.gguf")),
    ],
)
def test_parse_model(text: str, spec: ModelSpec) -> None:
    """`[alias=]provider/id[@base_url]`; without an alias a model is called by its id, a local file by its stem."""
    assert parse_model(text) == spec


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt-4.1-mini", "model 'gpt-4.1-mini' is not provider/id"),
        ("openai/", "model 'openai/' is not provider/id"),
        ("my model=openai/x", "model 'my model=openai/x' is not provider/id"),
        ("", "model '' is not provider/id"),
        (
            "compat/q@localhost:8000/v1",
            "model 'compat/q@localhost:8000/v1': a base URL begins with http:// or https://",
        ),
        ("compat/q@10.0.0.2:80", "model 'compat/q@10.0.0.2:80': a base URL begins with http:// or https://"),
        ("compat/q@ftp://h/v1", "model 'compat/q@ftp://h/v1': a base URL begins with http:// or https://"),
        ("compat/q@http://", "model 'compat/q@http://': a base URL begins with http:// or https://"),
        (
            "local/m.gguf@http://h:1/v1",
            "model 'local/m.gguf@http://h:1/v1': a local model is started here and has no base URL",
        ),
    ],
)
def test_a_model_that_cannot_be(text: str, said: str) -> None:
    """A model's text that cannot be read is refused in one line, by the study too."""
    with pytest.raises(UsageError) as caught:
        parse_model(text)
    assert caught.value.message == said
    with pytest.raises(UsageError) as caught:
        build({"models": (text,)})
    assert caught.value.message == said


def test_title() -> None:
    """A run is called by the study's name, else by its first model and how many more, fit for a folder."""
    assert Study(models=("compat/org/m:free",)).title == "org-m-free"
    assert Study(models=("openai/a", "openai/b", "openai/c")).title == "a+2"
    assert Study(models=("openai/a",), name="night").title == "night"


# Building ------------------------------------------------------------------------------------------------------


def test_defaults() -> None:
    """A hosted model on the bundled tasks is asked 200 items over 5 seeds, and nothing needs to be said."""
    study, notes = build({"models": ("openai/x",)})
    assert notes == ()
    assert study.tasks == ("categories", "comparisons", "arithmetic", "groups", "lookup")
    assert study.wrappers == ("all",)
    assert study.parsers == ("strict", "paper", "normalized")
    assert (study.items, study.seeds, study.max_tokens, study.temperature) == (200, 5, "auto", 0.7)
    assert (study.pad, study.shots, study.concurrency, study.top_p, study.seed) == ("chars", 0, 16, 1.0, 0)


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
WRONG = [
    ({"seeds": 0}, "seeds 0: must be at least 1"),
    ({"items": 0}, "items 0: must be at least 1"),
    ({"items": -3}, "items -3: must be at least 1"),
    ({"shots": -1}, "shots -1: must be at least 0"),
    ({"concurrency": 0}, "concurrency 0: must be at least 1"),
    ({"max_tokens": 0}, "max_tokens 0: must be at least 1"),
    ({"max_tokens": "lots"}, "max_tokens 'lots': must be a whole number or auto"),
    ({"max_tokens": 2.5}, "max_tokens 2.5: must be a whole number or auto"),
    ({"temperature": 3.0}, "temperature 3: must be between 0 and 2"),
    ({"temperature": -0.1}, "temperature -0.1: must be between 0 and 2"),
    ({"temperature": float("nan")}, "temperature nan: must be between 0 and 2"),
    ({"temperature": "hot"}, "temperature 'hot': must be a number"),
    ({"top_p": 1.5}, "top_p 1.5: must be between 0 and 1"),
    ({"pad": "spaces"}, "pad 'spaces': must be chars, item, tokens or none"),
    ({"transport": "curl"}, "transport 'curl': must be aiohttp or httpx"),
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
        ("[models]\nx = 3\n", 'models."x": only a table body can stand here'),
        ('[models."openai/x"]\nbody = 3\n', 'models."openai/x": only a table body can stand here'),
        ('[models."openai/x"]\nbdy = {}\n', 'models."openai/x": only a table body can stand here'),
        ("[bodies.x]\na = 1\n", "unknown option 'bodies'"),
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


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pad": "spaces"}, "--pad 'spaces': must be chars, item, tokens or none"),
        ({"transport": "curl"}, "--transport 'curl': must be aiohttp or httpx"),
        ({"tasks": "cases.jsonl"}, f"--tasks 'cases.jsonl': {NAMES}"),
        ({"seeds": 0}, "--seeds 0: must be at least 1"),
        ({"models": ("x",)}, "model 'x' is not provider/id"),
        ({"bodies": {"m": {"temperature": 0}}}, "the body of 'm' sets temperature, which is the study's to set"),
    ],
)
def test_a_study_made_in_python_is_checked_too(fields: dict[str, Any], said: str) -> None:
    """`Study(...)` refuses what the command line refuses."""
    with pytest.raises(UsageError) as caught:
        Study(**fields)
    assert caught.value.message == said


# Digest --------------------------------------------------------------------------------------------------------

BASE = Study(models=("a=compat/q@http://one:8000/v1",), bodies={"a=compat/q@http://one:8000/v1": {"x": 1}})
MOVED = {
    "models": ("a=compat/q@http://two:9000/v1",),
    "bodies": {"a=compat/q@http://two:9000/v1": {"x": 1}},
}
OTHER: dict[str, dict[str, Any]] = {
    "models": {"models": ("b=compat/q@http://one:8000/v1",), "bodies": {"b=compat/q@http://one:8000/v1": {"x": 1}}},
    "tasks": {"tasks": ("groups",)},
    "wrappers": {"wrappers": ("plain", "json")},
    "parsers": {"parsers": ("strict",)},
    "seeds": {"seeds": 4},
    "items": {"items": 100},
    "max_tokens": {"max_tokens": 24},
    "temperature": {"temperature": 0.0},
    "top_p": {"top_p": 0.9},
    "pad": {"pad": "item"},
    "shots": {"shots": 2},
    "stop": {"stop": ("\n",)},
    "seed": {"seed": 1},
    "bodies": {"bodies": {"a=compat/q@http://one:8000/v1": {"x": 2}}},
    "task_options": {"task_options": {"*": TaskOptions({"question": "q"})}},
}
ALIKE: dict[str, dict[str, Any]] = {
    "concurrency": {"concurrency": 3},
    "transport": {"transport": "httpx"},
    "name": {"name": "night"},
}


@pytest.mark.parametrize("field", Study.__struct_fields__)
def test_digest(field: str) -> None:
    """The digest follows every field that can change a number and no other."""
    assert (field in OTHER) != (field in ALIKE)
    changed = msgspec.structs.replace(BASE, **{**OTHER, **ALIKE}[field])
    assert changed != BASE
    assert (changed.digest == BASE.digest) == (field in ALIKE)


def test_digest_follows_provider_and_id() -> None:
    """The same alias on another provider or with another id is another study."""
    digests = {Study(models=(text,)).digest for text in ("a=openai/x", "a=openai/y", "a=openrouter/x")}
    assert len(digests) == 3


def test_digest_leaves_out_the_address() -> None:
    """A server that moved is the same study, its body too; a whole number is the same temperature as a float."""
    assert msgspec.structs.replace(BASE, **MOVED).digest == BASE.digest
    assert Study(temperature=1).digest == Study(temperature=1.0).digest
