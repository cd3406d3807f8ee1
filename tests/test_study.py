"""A study: what its values can be, what they say together, and what its digest follows."""

from typing import Any

import msgspec
import pytest

from auditor.errors import UsageError
from auditor.records import Arm, EndpointOptions, Price
from auditor.settings import build
from auditor.study import EMBEDDED, ModelSpec, Study, TaskOptions, parse_model

# Models --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("openai/gpt-4.1-mini", ModelSpec("gpt-4.1-mini", "openai", "gpt-4.1-mini")),
        ("mini=openai/gpt-4.1-mini", ModelSpec("mini", "openai", "gpt-4.1-mini")),
        ("openrouter/qwen/qwen-2.5:free", ModelSpec("qwen/qwen-2.5:free", "openrouter", "qwen/qwen-2.5:free")),
        (
            "compat/Qwen/Qwen2.5@http://localhost:8000/v1",
            ModelSpec("Qwen/Qwen2.5", "compat", "Qwen/Qwen2.5", ("http://localhost:8000/v1",)),
        ),
        ("a=compat/q@https://h.example/v1/", ModelSpec("a", "compat", "q", ("https://h.example/v1",))),
        (
            "compat/@cf/meta/llama@http://h/v1",
            ModelSpec("@cf/meta/llama", "compat", "@cf/meta/llama", ("http://h/v1",)),
        ),
        ("compat/q@http://h:1/deployments/a=b?x=1", ModelSpec("q", "compat", "q", ("http://h:1/deployments/a=b?x=1",))),
        (
            "m=vllm/q@http://one:8000/v1/@https://two/v1",
            ModelSpec("m", "vllm", "q", ("http://one:8000/v1", "https://two/v1")),
        ),
        (
            "compat/q@http://user@one/v1@http://two/v1",
            ModelSpec("q", "compat", "q", ("http://user@one/v1", "http://two/v1")),
        ),
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
        (
            "compat/q@http://one/v1@http://one/v1/",
            "--models: 'compat/q@http://one/v1@http://one/v1/': 'http://one/v1' is named twice",
        ),
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


# Arms ----------------------------------------------------------------------------------------------------------


def test_arms_at_one_limit_are_called_as_their_enforcement() -> None:
    """With one limit an arm is `none` or `json_schema`, whatever the limit."""
    study = Study(enforce=("none", "json_schema"))
    assert study.arms((24,)) == (Arm("none", "none", 24), Arm("json_schema", "json_schema", 24))
    assert [arm.name for arm in study.arms((256,))] == ["none", "json_schema"]


def test_arms_at_several_limits_have_the_limit_in_their_names() -> None:
    """Each pair of enforcement and limit is an arm."""
    study = Study(enforce=("none", "grammar"), max_tokens=(24, 256))
    assert study.arms(study.limits) == (
        Arm("none@24", "none", 24),
        Arm("none@256", "none", 256),
        Arm("grammar@24", "grammar", 24),
        Arm("grammar@256", "grammar", 256),
    )


def test_limits() -> None:
    """One limit, several, or none where it is to be found out."""
    assert Study(max_tokens=24).limits == (24,)
    assert Study(max_tokens=(24, 256)).limits == (24, 256)
    assert Study().limits == ()


# Prices and bodies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a=openai/x@http://h/v1", "a", "openai/x"])
def test_a_price_is_found_by_each_of_a_models_names(name: str) -> None:
    """By the text as written, by the alias, and by provider/id."""
    study = Study(models=("a=openai/x@http://h/v1",), prices={name: Price(1.0, 2.0)})
    assert study.about(study.prices, study.specs[0], study.models[0]) == Price(1.0, 2.0)


def test_a_models_own_words_win() -> None:
    """The text as written before the alias, the alias before provider/id; a free model is not an unknown one."""
    free, cheap, dear = Price(0.0, 0.0), Price(1.0, 1.0), Price(9.0, 9.0)
    study = Study(models=("a=openai/x",), prices={"openai/x": dear, "a": cheap, "a=openai/x": free})
    assert study.about(study.prices, study.specs[0], study.models[0]) == free
    study = Study(models=("a=openai/x",), prices={"openai/x": dear, "a": cheap})
    assert study.about(study.prices, study.specs[0], study.models[0]) == cheap
    assert Study(models=("openai/y",)).about({}, parse_model("openai/y"), "openai/y") is None


def test_extra_bodies_stand_under_the_alias() -> None:
    """Every model has one, empty where the study says nothing."""
    study = Study(models=("a=openai/x", "openai/y"), bodies={"a=openai/x": {"k": 1}})
    assert study.extra_bodies == {"a": {"k": 1}, "y": {}}


# What cannot be ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pad": "spaces"}, "--pad 'spaces': must be chars, item, tokens or none"),
        ({"transport": "curl"}, "--transport 'curl': must be aiohttp, httpx or openai"),
        ({"tasks": "cases.jsonl"}, "--tasks 'cases.jsonl': must be a list of names"),
        ({"seeds": 0}, "--seeds 0: must be at least 1"),
        ({"rpm": 0}, "--rpm 0: must be at least 1"),
        ({"max_cost": 0.0}, "--max-cost 0: must be above 0"),
        ({"enforce": ("json",)}, "--enforce 'json': must be a list of none, json_object, json_schema or grammar"),
        ({"max_tokens": (24, 24)}, "--max-tokens: 24 is named twice"),
        ({"max_tokens": ()}, "--max-tokens: none named"),
        ({"models": ("x",)}, "model 'x' is not provider/id"),
        ({"bodies": {"m": {"temperature": 0}}}, "the body of 'm' sets temperature, which is the study's to set"),
    ],
)
def test_a_study_made_in_python_is_checked_too(fields: dict[str, Any], said: str) -> None:
    """`Study(...)` refuses what the command line refuses."""
    with pytest.raises(UsageError) as caught:
        Study(**fields)
    assert caught.value.message == said


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_tokens": "lots"}, "--max-tokens 'lots': must be a whole number, several of them, or auto"),
        ({"concurrency": "fast"}, "--concurrency 'fast': must be a whole number or auto"),
        (
            {"enforce": "json_schema"},
            "--enforce 'json_schema': must be a list of none, json_object, json_schema or grammar",
        ),
    ],
)
def test_a_word_where_a_number_or_a_list_must_be(fields: dict[str, Any], said: str) -> None:
    """In Python too a wrong word is one clear line with the whole value."""
    with pytest.raises(UsageError) as caught:
        Study(**fields)
    assert caught.value.message == said


@pytest.mark.parametrize("field", ["response_format", "structured_outputs", "grammar", "json_schema", "seed", "n"])
def test_a_body_may_not_enforce_or_sample_by_itself(field: str) -> None:
    """What the study sets cannot be set behind its back."""
    with pytest.raises(UsageError, match=f"the body of 'm' sets {field}, which is the study's to set"):
        Study(bodies={"m": {field: 1}})


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
    "enforce": {"enforce": ("none", "json_schema")},
    "seed": {"seed": 1},
    "bodies": {"bodies": {"a=compat/q@http://one:8000/v1": {"x": 2}}},
    "task_options": {"task_options": {"*": TaskOptions({"question": "q"})}},
}
ALIKE: dict[str, dict[str, Any]] = {
    "concurrency": {"concurrency": 3},
    "rpm": {"rpm": 60},
    "tpm": {"tpm": 1000},
    "timeout": {"timeout": 5.0},
    "max_cost": {"max_cost": 1.0},
    "max_minutes": {"max_minutes": 5.0},
    "preflight": {"preflight": False},
    "strict_preflight": {"strict_preflight": True},
    "prices": {"prices": {"a": Price(1.0, 2.0)}},
    "endpoint": {"endpoint": EndpointOptions(headers={"X-A": "A"})},
    "endpoints": {"endpoints": {"a=compat/q@http://one:8000/v1": EndpointOptions(headers={"X-A": "A"})}},
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


def test_digest_follows_each_limit() -> None:
    """Several limits are another study than either of them."""
    assert len({Study(max_tokens=limits).digest for limits in (24, 256, (24, 256), "auto")}) == 4


def test_digest_of_several_servers_is_that_of_one() -> None:
    """How many servers a model has changes no number."""
    assert Study(models=("q=vllm/q@http://one/v1@http://two/v1",)).digest == Study(models=("q=vllm/q",)).digest
