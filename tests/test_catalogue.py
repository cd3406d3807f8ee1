"""Wrapper and parser files: ours, and what is said of one that is wrong."""

import json
import re
from pathlib import Path

import msgspec
import pytest

import auditor
from auditor import catalogue
from auditor.catalogue import placeholders, read_parser, read_wrapper
from auditor.errors import FileError, UsageError
from auditor.records import AnswerSpace, Contract, FieldRule, Message, ParserExample, ParserStep, Wrapper

FSI = ("plain", "json", "structured", "structured_delim", "deliberate")
TEXT = '[contract]\nkind = "text"\n'
HEAD = """name = "mine"
user = '''
{{content}}
{{pad}}
Answer.
'''
"""


def read(folder: Path, text: str, columns: tuple[str, ...] = ()) -> Wrapper:
    """The one wrapper of a file with this text."""
    return variants(folder, text, columns)[0]


def variants(folder: Path, text: str, columns: tuple[str, ...] = ()) -> list[Wrapper]:
    path = folder / "mine.toml"
    path.write_text(text, "utf-8")
    return read_wrapper(path, columns)


def refused(folder: Path, text: str, columns: tuple[str, ...] = ()) -> FileError:
    """What is said of a file with this text, without the folder."""
    with pytest.raises(FileError) as caught:
        variants(folder, text, columns)
    assert "\n" not in caught.value.message
    caught.value.message = caught.value.message.replace(f"{folder}/", "")
    return caught.value


# Ours ----------------------------------------------------------------------------------------------------------


def test_all_is_the_five_of_the_paper() -> None:
    """`all` means the five wrappers of set fsi in the paper's order, and no other wrapper is in that set."""
    assert tuple(wrapper.name for wrapper in catalogue.wrappers(["all"])) == FSI
    every = catalogue.wrappers(catalogue.names("wrappers"))
    assert {wrapper.name for wrapper in every if wrapper.set == "fsi"} == set(FSI)


def test_contracts_of_the_protocol() -> None:
    """The five contracts are the protocol's, byte for byte."""
    assert [wrapper.contract for wrapper in catalogue.wrappers(["all"])] == [
        Contract("text"),
        Contract("json", field="answer"),
        Contract("fields", field="answer"),
        Contract("block", field="answer", begin="<BEGIN ANSWER>", end="<END ANSWER>"),
        Contract("final_line", field="answer"),
    ]


def test_what_the_prompts_name() -> None:
    """A prompt names the key and the block's lines exactly as its contract wants them back."""
    told = {wrapper.name: wrapper.messages[0].content for wrapper in catalogue.wrappers(["all"])}
    assert '"answer"' in told["json"]
    assert all('"answer: "' in told[name] for name in ("structured", "structured_delim", "deliberate"))
    assert "<BEGIN ANSWER>" in told["structured_delim"]
    assert "<END ANSWER>" in told["structured_delim"]


@pytest.mark.parametrize("wrapper", catalogue.wrappers(["all"]), ids=lambda wrapper: wrapper.name)
def test_the_five_differ_in_the_instruction_alone(wrapper: Wrapper) -> None:
    """All five show the content first, then the padding slot, then one instruction of their own."""
    assert len(wrapper.messages) == 1
    text = wrapper.messages[0].content
    assert text.startswith("{{content}}\n{{pad}}\n")
    assert text.count("\n") == 2
    assert set(placeholders(text)) == {"content", "pad", "answer_hint"}


@pytest.mark.parametrize("wrapper", catalogue.wrappers(["all"]), ids=lambda wrapper: wrapper.name)
def test_no_decorated_placeholder(wrapper: Wrapper) -> None:
    """No prompt shows `$LETTER`, `<letter>`, `[YOUR ANSWER]` or dots, which models copy."""
    text = wrapper.messages[0].content
    decorated = r"\$\w+|<(?!BEGIN ANSWER>|END ANSWER>)[^>]*>|\[[^\]]*\]|(?<!\{)\{[^{}]*\}(?!\})|\.\.|…|_{2,}"
    assert re.findall(decorated, text) == []


@pytest.mark.parametrize("name", catalogue.names("wrappers"))
def test_a_name_is_its_files(name: str) -> None:
    """Each of our files holds wrappers of the file's name."""
    for wrapper in read_wrapper(catalogue.find("wrappers", name)):
        assert re.sub(r"\[.*\]", "", wrapper.name) == name
        assert wrapper.summary
        assert wrapper.source
        assert wrapper.examples


@pytest.mark.parametrize("name", catalogue.names("parsers"))
def test_a_parser_is_called_as_its_file(name: str) -> None:
    """Each of our parser files holds the parser of the file's name, with examples."""
    (parser,) = catalogue.parsers([name])
    assert parser.name == name
    assert parser.summary
    assert parser.examples


# Finding -------------------------------------------------------------------------------------------------------


def test_a_checkout_has_its_catalogue_beside_the_package() -> None:
    """In a checkout the catalogue is the repository's own folders."""
    assert catalogue.folder("wrappers") == Path(__file__).resolve().parents[1] / "wrappers"
    assert catalogue.folder("parsers") == Path(__file__).resolve().parents[1] / "parsers"


def test_an_installed_wheel_has_its_catalogue_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed, the catalogue is in `_data`, whatever folder of that name lies in site-packages."""
    package = tmp_path / "site-packages" / "auditor"
    for folder, name in ((package / "_data" / "wrappers", "inside"), (package.parent / "wrappers", "stale")):
        folder.mkdir(parents=True)
        (folder / f"{name}.toml").write_text(HEAD.replace("mine", name) + TEXT)
    monkeypatch.setattr(auditor, "__file__", str(package / "__init__.py"))
    assert catalogue.names("wrappers") == ["inside"]
    assert [wrapper.name for wrapper in catalogue.wrappers(["inside"])] == ["inside"]
    with pytest.raises(UsageError, match="unknown wrapper 'stale'"):
        catalogue.wrappers(["stale"])


def test_never_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `wrappers/` folder where the command runs is not looked at for names."""
    (tmp_path / "wrappers").mkdir()
    for name in ("plain", "local_only"):
        (tmp_path / "wrappers" / f"{name}.toml").write_text(HEAD.replace("mine", name) + TEXT)
    before = catalogue.wrappers(["plain"])
    monkeypatch.chdir(tmp_path)
    assert catalogue.wrappers(["plain"]) == before
    with pytest.raises(UsageError, match="unknown wrapper 'local_only'"):
        catalogue.wrappers(["local_only"])


def test_a_wrapper_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path to a .toml file, relative or not, stands beside our names and keeps its place in the order."""
    (tmp_path / "mine.toml").write_text(HEAD + TEXT)
    monkeypatch.chdir(tmp_path)
    for path in ("mine.toml", "./mine.toml", str(tmp_path / "mine.toml")):
        assert [wrapper.name for wrapper in catalogue.wrappers(["json", path, "plain"])] == ["json", "mine", "plain"]


def test_an_unknown_name_has_near_ones() -> None:
    """An unknown wrapper or parser is answered with the nearest names and that a path works too."""
    with pytest.raises(UsageError) as caught:
        catalogue.wrappers(["jsn"])
    assert caught.value.message == "unknown wrapper 'jsn'"
    assert "did you mean json" in caught.value.hint
    assert "a path to a .toml file works too" in caught.value.hint
    with pytest.raises(UsageError, match="unknown parser 'jsn'"):
        catalogue.parsers(["jsn"])


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    """A missing file is named, and so is what we have."""
    with pytest.raises(FileError) as caught:
        catalogue.wrappers([str(tmp_path / "gone.toml")])
    assert caught.value.message == f"{tmp_path / 'gone.toml'}: no such file"
    assert "plain" in caught.value.hint


def test_one_wrapper_named_twice_counts_once(tmp_path: Path) -> None:
    """`all,plain` is five wrappers; two different ones of one name are refused with both paths."""
    assert len(catalogue.wrappers(["all", "plain"])) == 5
    path = tmp_path / "other.toml"
    path.write_text(HEAD.replace("mine", "plain") + TEXT)
    with pytest.raises(UsageError, match=r"two wrappers are called 'plain': .*plain\.toml and .*other\.toml"):
        catalogue.wrappers(["all", str(path)])


# Reading -------------------------------------------------------------------------------------------------------


def test_system_and_user(tmp_path: Path) -> None:
    """`system` and `user` become two turns; the newline that ends a TOML text is not part of it."""
    wrapper = read(tmp_path, "system = '''\nBe brief.\n'''\n" + HEAD + TEXT)
    assert wrapper.messages == (
        Message("system", "Be brief."),
        Message("user", "{{content}}\n{{pad}}\nAnswer."),
    )


def test_a_whole_conversation(tmp_path: Path) -> None:
    """`[[messages]]` gives several turns in their order."""
    turns = [("system", "Be brief."), ("user", "Is it?"), ("assistant", "Ask."), ("user", "{{content}}\n{{pad}}\nGo.")]
    blocks = "".join(f"[[messages]]\nrole = {json.dumps(r)}\ncontent = {json.dumps(c)}\n" for r, c in turns)
    assert read(tmp_path, 'name = "mine"\n' + blocks + TEXT).messages == tuple(Message(r, c) for r, c in turns)  # type: ignore[arg-type]


def test_the_cases_own_columns(tmp_path: Path) -> None:
    """A wrapper may name the cases' columns, and then needs no {{content}}."""
    text = HEAD.replace("{{content}}", "Ticket: {{ticket}}") + TEXT
    assert read(tmp_path, text, ("ticket",)).messages[0].content == "Ticket: {{ticket}}\n{{pad}}\nAnswer."
    assert refused(tmp_path, text).message == "mine.toml:3: unknown placeholder {{ticket}}"


def test_what_is_not_a_placeholder_is_text(tmp_path: Path) -> None:
    """JSON braces, other cases and an escaped {{ are text; an escaped slot is no slot."""
    assert placeholders(r'{"a": {"b": 1}} {{Name}} {{ x }} \{{pad}} {{{content}}} {{question}}') == [
        "content",
        "question",
    ]
    assert read(tmp_path, HEAD.replace("Answer.", r"Write \{{pad}} at \{{nothing}}.") + TEXT).name == "mine"


def test_variants_expand_one_file(tmp_path: Path) -> None:
    """`[variants]` makes `name[variant]` of each table, changing only what it says; one can be asked for by name."""
    text = HEAD + TEXT + '[variants.comma]\nseparator = ","\n[variants.newline]\nseparator = "\\n"\n'
    found = variants(tmp_path, text)
    assert [(wrapper.name, wrapper.separator) for wrapper in found] == [("mine[comma]", ","), ("mine[newline]", "\n")]
    assert found[0].messages == found[1].messages
    assert found[0].digest != found[1].digest
    path = str(tmp_path / "mine.toml")
    assert catalogue.wrappers([path]) == tuple(found)
    assert catalogue.wrappers([f"{path}[newline]"]) == (found[1],)
    with pytest.raises(UsageError) as caught:
        catalogue.wrappers([f"{path}[newlin]"])
    assert caught.value.hint == "did you mean newline"
    with pytest.raises(UsageError, match="unknown variant") as caught:
        catalogue.wrappers(["plain[comma]"])
    assert caught.value.hint == "it has no [variants]"


@pytest.mark.parametrize(
    "change",
    [
        ("Answer.", "Answer now."),
        ('kind = "text"', 'kind = "final_line"'),
        ('kind = "text"', 'kind = "json"\nfield = "label"'),
        ('name = "mine"', 'name = "other"'),
        ('name = "mine"', 'name = "mine"\nsystem = "Be brief."'),
        ('name = "mine"', 'name = "mine"\nseparator = ","'),
        ('name = "mine"', 'name = "mine"\nexample = "Q: {{question}} A: {{reply}}"'),
    ],
)
def test_digest_follows_what_a_model_or_a_parser_sees(tmp_path: Path, change: tuple[str, str]) -> None:
    """The digest changes with every text that reaches a model and with the contract."""
    before, after = HEAD + TEXT, (HEAD + TEXT).replace(*change)
    assert before != after
    assert read(tmp_path, before).digest != read(tmp_path, after).digest


@pytest.mark.parametrize("line", ['summary = "x"', 'source = "x"', "version = 2", 'set = "letter"', "# a comment"])
def test_digest_leaves_out_what_no_model_sees(tmp_path: Path, line: str) -> None:
    """Summary, source, version and set are for readers: the digest stays."""
    digests = {read(tmp_path, text).digest for text in (HEAD + TEXT, f"{line}\n{HEAD}{TEXT}")}
    example = '[[examples]]\nreply = "B"\n'
    assert digests == {read(tmp_path, HEAD + TEXT + example).digest}


def test_a_byte_order_mark_is_not_an_error(tmp_path: Path) -> None:
    """Files that an editor saved with a byte order mark are read."""
    assert read(tmp_path, "\ufeff" + HEAD + TEXT).name == "mine"


# Schemas -------------------------------------------------------------------------------------------------------

WITH_SCHEMA = HEAD + '[contract]\nkind = "json"\nschema = "s.json"\nanswer_path = "/label"\n'
SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}


def test_a_schema_stands_beside_its_wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`schema` names a JSON file beside the wrapper, wherever the command runs; the digest follows its content."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    first = read(tmp_path, WITH_SCHEMA)
    assert (first.contract.schema, first.contract.answer_path) == (SCHEMA, "/label")
    (tmp_path / "s.json").write_text(json.dumps({**SCHEMA, "additionalProperties": False}))
    assert read(tmp_path, WITH_SCHEMA).digest != first.digest


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (None, "mine.toml: contract.schema 's.json': No such file or directory"),
        ("{", "s.json: not JSON: Expecting property name"),
        ("[" * 100_000, "s.json: not JSON: maximum recursion depth"),
        ("3", "s.json: not a JSON Schema: it must be an object"),
        ("null", "s.json: not a JSON Schema: it must be an object"),
        ("[]", "s.json: not a JSON Schema: it must be an object"),
        ('{"type": "strin"}', "s.json: not a JSON Schema: $.type: 'strin' is not valid"),
        ('{"properties": {"a": {"type": 3}}}', "s.json: not a JSON Schema: $.properties.a.type: 3 is not valid"),
        ('{"$ref": "#/nowhere"}', "s.json: not a usable JSON Schema: Pointer '/nowhere' does not exist"),
        ('{"$schema": "http://x.invalid/s"}', "s.json: not a usable JSON Schema: Unknown meta-schema"),
        (
            '{"$ref": "http://x.invalid/s"}',
            "s.json: not a usable JSON Schema: Resource 'http://x.invalid/s' is not present in a registry and "
            "retrieving it failed: ValueError: http://x.invalid/s is not part of the schema",
        ),
    ],
)
def test_a_schema_that_cannot_be(tmp_path: Path, schema: str | None, said: str) -> None:
    """A schema that is missing, no JSON, no schema or not whole is refused in one line, and nothing is fetched."""
    if schema is not None:
        (tmp_path / "s.json").write_text(schema)
    assert refused(tmp_path, WITH_SCHEMA).message.startswith(said)


def test_a_schema_in_the_file_is_checked_too(tmp_path: Path) -> None:
    """A schema written as a table is checked as one from a file is."""
    text = HEAD + '[contract]\nkind = "json"\n[contract.schema]\ntype = {}\n'
    assert read(tmp_path, text.replace("{}", '"object"')).contract.schema == {"type": "object"}
    assert "not a JSON Schema: $.type" in refused(tmp_path, text.replace("{}", '"strin"')).message


# Comparing fields ----------------------------------------------------------------------------------------------

OBJECT = HEAD + '[contract]\nkind = "json"\n'
HOW = 'write "exact", "text", or {number = 0.01} for numbers that may be so far apart (0 or more)'


def test_fields_are_compared_as_the_file_says(tmp_path: Path) -> None:
    """`[compare]` gives the contract one rule per pointer, in the order of the file, with or without a schema."""
    rules = '[compare]\n"/label" = "exact"\n"/who/name~1first" = "text"\n"/rows/0" = {number = 0.01}\n'
    wrapper = read(tmp_path, OBJECT + rules + '"/n" = {number = 2}\n')
    assert wrapper.contract.compare == (
        FieldRule("/label", "exact"),
        FieldRule("/who/name~1first", "text"),
        FieldRule("/rows/0", "number", 0.01),
        FieldRule("/n", "number", 2.0),
    )


def test_rules_are_in_the_digest(tmp_path: Path) -> None:
    """Another rule, tolerance or field is another wrapper, and so is one that compares nothing by field."""
    rules = ("", '"/a" = "exact"', '"/a" = "text"', '"/a" = {number = 0}', '"/a" = {number = 1}', '"/b" = "exact"')
    texts = [OBJECT + (f"[compare]\n{rule}\n" if rule else "") for rule in rules]
    assert len({read(tmp_path, text).digest for text in texts}) == len(rules)


def test_digests_of_earlier_versions_hold(tmp_path: Path) -> None:
    """A wrapper that compares no fields has the digest, and the JSON, that it had before there was `[compare]`, so that
    runs made then go on."""
    digests = {wrapper.name: wrapper.digest for wrapper in catalogue.wrappers(["plain", "json"])}
    assert digests == {
        "plain": "59a86c5ae12a50eb186209651e8124ceefec67e6918d48753be9151540b78872",
        "json": "33eb94b967c2812ceb79a3f099c74666542d4e68054521cbdc3150b3215efb84",
    }
    stored = b'{"kind":"json","field":"answer","begin":"","end":"","schema":null,"answer_path":null}'
    contract = read(tmp_path, OBJECT).contract
    assert (msgspec.json.encode(contract), msgspec.json.decode(stored, type=Contract)) == (stored, contract)


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (HEAD + TEXT + '[compare]\n"/a" = "exact"\n', "9: compare: a text contract has no fields to compare", ""),
        (
            OBJECT + 'answer_path = "/a"\n[compare]\n"/a" = "exact"\n',
            "10: compare: contract.answer_path names the one value that is compared",
            "leave out one of the two",
        ),
        (OBJECT + "[compare]\n", "9: compare: no field is named", 'write "/label" = "exact"'),
        (OBJECT + 'compare = {"/a" = "exact"}\n', "9: contract.compare: it is no part of", "write [compare]"),
        (OBJECT + '[contract.compare]\n"/a" = "exact"\n', "9: contract.compare: it is no part", "write [compare]"),
        ("compare = 3\n" + OBJECT, "1: compare: must be a table, not a whole number", ""),
        (
            OBJECT + '[compare]\n"/a" = "exact"\nlabel = "exact"\n',
            "11: compare: 'label' is not a JSON pointer",
            'write "/label" or "/customer/0"',
        ),
        (OBJECT + '[compare]\n"" = "exact"\n', "10: compare: '' is not a JSON pointer", None),
        (OBJECT + '[compare]\n"/a~2" = "exact"\n', "10: compare: '/a~2' is not a JSON pointer", None),
        (OBJECT + "[compare]\n'/a' = 'exact'\n'/b' = 'exakt'\n", "11: compare: /b: 'exakt' is not a way", HOW),
        (OBJECT + '[compare]\n"/a" = {number = -0.1}\n', "10: compare: /a: {'number': -0.1} is not a way", HOW),
        (OBJECT + '[compare]\n"/a" = {number = nan}\n', "10: compare: /a: {'number': nan} is not a way", HOW),
        (OBJECT + '[compare]\n"/a" = {number = inf}\n', "10: compare: /a: {'number': inf} is not a way", HOW),
        (OBJECT + '[compare]\n"/a" = {number = true}\n', "10: compare: /a: {'number': True} is not a way", HOW),
        (OBJECT + '[compare]\n"/a" = {number = "1"}\n', "10: compare: /a: {'number': '1'} is not a way", HOW),
        (OBJECT + '[compare]\n"/a" = {nmber = 1}\n', "10: compare: /a: {'nmber': 1} is not a way", HOW),
        (OBJECT + '[compare]\n"/a" = {number = 1, x = 2}\n', "10: compare: /a: {'number': 1, 'x': 2} is", HOW),
        (OBJECT + '[compare."/a"]\nnumber = []\n', "9: compare: /a: {'number': []} is not a way", HOW),
        (OBJECT + f'[compare]\n"/a" = {{number = 1{"0" * 400}}}\n', "10: compare: /a: {'number': 1000", HOW),
    ],
)
def test_a_rule_that_cannot_be(tmp_path: Path, text: str, said: str, hint: str | None) -> None:
    """A wrong field, rule or tolerance is one line with the field, its value and what to write instead."""
    error = refused(tmp_path, text)
    assert error.message.startswith(f"mine.toml:{said}")
    assert len(error.message) < 200
    assert error.hint == hint or hint is None


# What is wrong, and where --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD.replace("Answer.", "Answer {{answr_hint}}.") + TEXT, "mine.toml:5: unknown placeholder {{answr_hint}}"),
        (HEAD.replace("Answer.", r"\{{nope}} {{nope}}") + TEXT, "mine.toml:5: unknown placeholder {{nope}}"),
        (HEAD.replace("Answer.", "\\{{nope}}\n{{nope}}") + TEXT, "mine.toml:6: unknown placeholder {{nope}}"),
        (HEAD.replace("Answer.", "{{reply}}") + TEXT, "mine.toml:5: unknown placeholder {{reply}}"),
        ('example = "{{questio}}"\n' + HEAD + TEXT, "mine.toml:1: unknown placeholder {{questio}}"),
        ('name = "mine"\nuser = "Hello."\n' + TEXT, "mine.toml: no placeholder shows the question"),
        (
            'name = "mine"\nuser = "Hello."\nexample = "{{content}}"\n' + TEXT,
            "mine.toml: no placeholder shows the question",
        ),
        (HEAD.replace("{{content}}", "Hello.") + TEXT, "mine.toml: no placeholder shows the question"),
        ("name = 'mine'\n" + TEXT, "mine.toml: no user prompt"),
        (HEAD, "mine.toml: no contract"),
        (HEAD + "[contract]\n", "mine.toml:7: no kind in contract"),
        (HEAD + '[contract]\nkind = "jsn"\n', "mine.toml:8: unknown contract.kind 'jsn'"),
        (HEAD + TEXT + "colour = 3\n", "mine.toml:9: unknown field 'colour' in contract"),
        ('summry = "x"\n' + HEAD + TEXT, "mine.toml:1: unknown field 'summry'"),
        (HEAD.replace('"mine"', "3") + TEXT, "mine.toml:1: name: must be text, not a whole number"),
        ("version = '1'\n" + HEAD + TEXT, "mine.toml:1: version: must be a whole number, not text"),
        ("user = 3\nname = 'mine'\n" + TEXT, "mine.toml:1: user: must be text, not a whole number"),
        ("contract = 3\n" + HEAD, "mine.toml:1: contract: must be a table, not a whole number"),
        (HEAD.replace("mine", "my own") + TEXT, "mine.toml:1: name 'my own': use letters, digits, _ . -"),
        (HEAD.replace("mine", "mine[a]") + TEXT, "mine.toml:1: name 'mine[a]': use letters, digits, _ . -"),
        (
            HEAD + TEXT + '[[examples]]\nreply = "B"\n[[examples]]\nreply = 3\n',
            "mine.toml:12: examples[1].reply: must be text, not a whole number",
        ),
        (HEAD + TEXT + '[[examples]]\nstrict = "B"\n', "mine.toml:9: no reply in examples[0]"),
        (
            HEAD + TEXT + '[[examples]]\nreply = "B"\nanswer_type = "bool"\n',
            "mine.toml:11: unknown examples[0].answer_type 'bool'",
        ),
        (
            'messages = [{role = "user", content = "x"}]\n' + HEAD + TEXT,
            "mine.toml:1: give either user/system or [[messages]]",
        ),
        (
            'name = "mine"\n[[messages]]\nrole = "assistant"\ncontent = "{{content}}"\n' + TEXT,
            "mine.toml:2: the last message must be the user's",
        ),
        (
            'name = "mine"\n[[messages]]\nrole = "boss"\ncontent = "{{content}}"\n' + TEXT,
            "mine.toml:3: unknown messages[0].role 'boss'",
        ),
        ("name = 'mine'\nmessages = []\n" + TEXT, "mine.toml:2: the last message must be the user's"),
        (HEAD + '[contract]\nkind = "block"\n', "mine.toml:7: contract.begin: a block contract needs begin and end"),
        (HEAD + '[contract]\nkind = "json"\nend = "x"\n', "mine.toml:9: contract.end: a json contract has no begin"),
        (HEAD + '[contract]\nkind = "json"\nfield = ""\n', "mine.toml:9: contract.field: '' is not the name"),
        (HEAD + TEXT + "[contract.schema]\n", "mine.toml:9: contract.schema: a text contract has no schema"),
        (HEAD + TEXT + 'answer_path = "/a"\n', "mine.toml:9: contract.answer_path: a text contract has no answer_path"),
        (
            HEAD + '[contract]\nkind = "json"\nanswer_path = "a"\n',
            "mine.toml:9: contract.answer_path: 'a' is not a JSON pointer",
        ),
        (
            HEAD + TEXT + '[variants.a]\nset = "x"\n',
            "mine.toml:10: variants.a.set: set cannot vary",
        ),
        (HEAD + TEXT + '[variants."a b"]\n', "mine.toml:9: name 'a b': use letters"),
        (HEAD + TEXT + "[variants.a]\nuser = 3\n", "mine.toml:9: variants: must be text, not a whole number"),
        (HEAD + "[contract\n", "mine.toml: not TOML: Expected ']' at the end of a table declaration (at line 7"),
        ("x = " + "[" * 100_000, "mine.toml: not TOML: nested too deeply"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    """What is wrong with a wrapper file is one line that begins with the path and the line in it."""
    assert refused(tmp_path, text).message.startswith(said)


def test_an_unknown_placeholder_has_near_ones(tmp_path: Path) -> None:
    """The hint names the nearest placeholders, the cases' columns among them."""
    assert refused(tmp_path, HEAD.replace("content", "contnt") + TEXT).hint == "did you mean content"
    assert refused(tmp_path, HEAD.replace("content", "tickt") + TEXT, ("ticket",)).hint == "did you mean ticket"


@pytest.mark.parametrize(
    "user",
    [
        "{{pad}}\n{{content}}",
        "{{content}}\n{{pad}}",
        "\n {{pad}} \n{{content}}\n",
        "{{examples}}\n{{pad}}\n{{content}}",
        "{{content}}\n{{pad}}\n{{schema}}{{separator}}",
    ],
)
def test_a_slot_at_the_edge_is_refused(tmp_path: Path, user: str) -> None:
    """A slot that nothing is sure to stand before and after is refused, since chat templates trim there."""
    error = refused(tmp_path, f"name = 'mine'\nuser = {json.dumps(user)}\n{TEXT}")
    assert error.message == "mine.toml:2: the {{pad}} slot is at the edge of a message"
    assert error.hint == "chat templates trim there: put the slot between two lines of text"


def test_two_slots_are_refused(tmp_path: Path) -> None:
    """There is one slot in all messages together."""
    twice = "{{content}} {{pad}} a {{pad}} b"
    assert (
        refused(tmp_path, f"name = 'mine'\nuser = '{twice}'\n{TEXT}").message
        == "mine.toml:2: more than one {{pad}} slot"
    )
    apart = "system = 'a {{pad}} b'\n" + HEAD + TEXT
    assert refused(tmp_path, apart).message == "mine.toml:1: more than one {{pad}} slot"


def test_what_is_not_text(tmp_path: Path) -> None:
    """A file that is not UTF-8 says where, and a folder is no file."""
    path = tmp_path / "mine.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(FileError, match="not UTF-8: invalid start byte at byte 8"):
        read_wrapper(path)
    with pytest.raises(FileError, match="Is a directory"):
        read_wrapper(tmp_path)


# Parsers -------------------------------------------------------------------------------------------------------

PARSER = 'name = "mine"\nsteps = ["classify_reply", "canonical"]\n'


def parser_refused(folder: Path, text: str) -> str:
    path = folder / "p.toml"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        read_parser(path)
    return caught.value.message.replace(f"{folder}/", "")


def test_a_parser_file(tmp_path: Path) -> None:
    """A parser is its ordered steps; summary and examples are not in its digest, steps and version are."""
    path = tmp_path / "p.toml"
    digests = []
    for text in (
        PARSER,
        PARSER + 'summary = "x"\n[[examples]]\nreply = "B"\nparsed = "B"\n',
        PARSER.replace('"classify_reply", ', ""),
        PARSER + "version = 2\n",
    ):
        path.write_text(text)
        digests.append(read_parser(path).digest)
    path.write_text(PARSER)
    assert read_parser(path).steps == (ParserStep("classify_reply"), ParserStep("canonical"))
    assert catalogue.parsers([str(path)]) == (read_parser(path),)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "mine"\nsteps = []\n', "p.toml:2: no steps"),
        ('name = "mine"\n', "p.toml: no steps"),
        ('name = "mine"\nsteps = "canonical"\n', "p.toml:2: steps: must be a list, not text"),
        (PARSER + "color = 3\n", "p.toml:3: unknown field 'color'"),
        (PARSER.replace("mine", "my own"), "p.toml:1: name 'my own': use letters, digits, _ . -"),
        (PARSER + '[[examples]]\nreply = "B"\nreason = "odd"\n', "p.toml:5: unknown examples[0].reason 'odd'"),
        (PARSER + '[[examples]]\nreply = "B"\nchoices = 3\n', "p.toml:5: examples[0].choices: must be a"),
    ],
)
def test_what_is_wrong_with_a_parser(tmp_path: Path, text: str, said: str) -> None:
    """What is wrong with a parser file is one line with the path and the line in it."""
    assert parser_refused(tmp_path, text).startswith(said)


def test_what_a_parsers_example_is_read_against() -> None:
    """An example names the contract of one of our five wrappers; choices are labels, or labels with texts."""
    assert catalogue.example_contract(ParserExample("B", contract="block")) == Contract(
        "block", begin="<BEGIN ANSWER>", end="<END ANSWER>"
    )
    assert catalogue.example_contract(ParserExample("B", contract="json")) == Contract("json")
    assert catalogue.example_space(ParserExample("B", choices=("A", "B"))) == AnswerSpace("choice", ("A", "B"))
    texts = {"A": "copper", "B": "wood"}
    assert catalogue.example_space(ParserExample("B", choices=texts)) == AnswerSpace(
        "choice", ("A", "B"), ("copper", "wood")
    )
