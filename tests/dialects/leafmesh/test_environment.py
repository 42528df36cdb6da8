"""`${VAR}` and `${VAR:default}` in the text of a mesh file. NOTES 1.1."""

from __future__ import annotations

from typing import Any

import pytest

from harness.dialects.leafmesh.mesh_file import Environment
from harness.errors import ManifestError
from harness.source.document import parse
from tests.dialects.leafmesh.opener import Opener

ENV = {"A": "one", "N": "7", "EMPTY": "", "URL": "http://h:9000/x", "LINES": "x: 1\n  y: 2", "lower": "low"}


def value_of(text: str) -> Any:
    return parse(text, file="f", rewrite=Environment(ENV).rewrite).value


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${A}", "one"),
        ("'${A}'", "one"),
        ("x ${A}${N} y", "x one7 y"),
        ("${lower}", "low"),
        ("${N}", 7),
        ('"${N}"', "7"),
        ("${NO:6379}", 6379),
        ("${NO:true}", True),
        ("${NO:0.4}", 0.4),
        ("${NO:http://h:9000}", "http://h:9000"),
        ("${NO:a:b:c}", "a:b:c"),
        ("${NO:-x}", "-x"),
        ('"${NO:}"', ""),
        ("${NO:}", None),
        ('"${EMPTY:default}"', ""),
        ('"${NO}"', ""),
        ("[${N}, ${NO:8}]", [7, 8]),
        ("{port: ${NO:6379}}", {"port": 6379}),
        ("${LINES}", {"x": 1, "y": 2}),
        ("$A $ {A} ${} ${1A} ${A-B} ${A", "$A $ {A} ${} ${1A} ${A-B} ${A"),
        ("$${A}", "$one"),
        ('"${NO:\n}"', "${NO: }"),
    ],
)
def test_values(written: str, expected: object) -> None:
    assert value_of(f"k:\n  {written}\n") == {"k": expected}


def test_values_are_not_substituted_again() -> None:
    rewritten = Environment({"X": "${A}", "A": "one"}).rewrite("a: ${X}")
    assert rewritten.text == "a: ${A}"


def test_keys_are_text_too() -> None:
    assert value_of("${A}: 1") == {"one": 1}


@pytest.mark.parametrize(
    "text",
    [
        "# ${NO}\na: b",
        "a: b # ${NO}",
        "a: 'x' # ${NO}\nb: c",
        "a: | # ${NO}\n  text",
        "a:\n  - b # ${NO}\n# ${LINES}\nc: d",
        "a: {b: c} # ${NO} '",
        "a: |\n  text\n# ${NO}\n",
    ],
)
def test_comments_are_left_alone(text: str) -> None:
    environment = Environment(ENV)
    assert environment.rewrite(text).text == text
    assert not list(environment.warnings(parse(text, file="f")))


@pytest.mark.parametrize(
    "text",
    [
        "a: 'x # ${A}'",
        'a: "x # ${A}"',
        "a: |\n  # ${A}\n  b",
        "a: >\n  x # ${A}",
        "a: x#${A}",
        "a: 'x\n  # ${A}'",
    ],
)
def test_a_hash_in_a_text_begins_no_comment(text: str) -> None:
    assert "one" in value_of(text)["a"]


def test_an_unset_variable_is_empty_with_one_warning_at_its_first_use(opener: Opener) -> None:
    text = "agents:\n  a: {prompt: 'x${SALT}', description: '${SALT} ${PEPPER}'}\nentry_points: []"
    mesh_file = opener.open(text)
    agent = mesh_file.mesh.agents["a"]
    assert (agent.description, mesh_file.document.value["agents"]["a"]["prompt"]) == (" ", "x")
    assert [(w.code, w.message, w.severity, opener.place(w)) for w in mesh_file.warnings] == [
        ("missing-variable", "the environment variable SALT is not set: it is empty", "warning", "${SALT}"),
        (
            "missing-variable",
            "the environment variable PEPPER is not set: it is empty",
            "warning",
            "${PEPPER}",
        ),
    ]


def test_an_unset_variable_is_reported_with_the_error_on_its_line(opener: Opener) -> None:
    text = "entry_points: [{name: go, target: '${GUIDE}'}]\nagents:\n  a: {prompt: '${SALT}'}"
    assert [(problem.severity, problem.message) for problem in opener.problems(text)] == [
        ("error", "the entry point's target: there is no agent ''"),
        ("warning", "the environment variable GUIDE is not set: it is empty"),
    ]


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("${SALT:-much}", "not set, and its default is '-much', with the '-'", "${SALT:much}"),
        ("${SALT:-}", "not set, and its default is '-', with the '-'", "${SALT:}"),
        ("${SALT:?needed}", "not set, and its default is '?needed', with the '?'", "${SALT:needed}"),
        ("${SALT:${SEA:x}}", "not set, and its default ends at the first }: '${SEA:x'", "contain a variable"),
    ],
)
def test_a_default_as_a_shell_would_read_it_is_a_warning(
    opener: Opener, written: str, message: str, hint: str
) -> None:
    text = f"agents: {{a: {{prompt: '{written}'}}}}\nentry_points: []"
    (warning,) = opener.open(text).warnings
    assert warning.message == f"the environment variable SALT is {message}"
    assert hint in warning.hint
    assert not opener.open(text, {"SALT": "much"}).warnings


@pytest.mark.parametrize("default", ["-1", "-0.5", "+49 30 1234", "a-b", "x=y", ""])
def test_no_warning_for_other_defaults(opener: Opener, default: str) -> None:
    assert not opener.open(f"agents: {{a: {{prompt: '${{SALT:{default}}}'}}}}\nentry_points: []").warnings


@pytest.mark.parametrize(
    ("written", "endpoint"),
    [
        ("", "http://env"),
        ("mesh: {local: {timeout: 5}}", "http://env"),
        ("mesh: {local: {endpoint: 'http://file'}}", "http://file"),
    ],
)
def test_a_local_model_may_be_where_a_variable_says(opener: Opener, written: str, endpoint: str) -> None:
    mesh_file = opener.open(
        f"agents: {{a: {{}}}}\nentry_points: []\n{written}", {"LOCAL_MODEL_ENDPOINT": "http://env"}
    )
    assert mesh_file.mesh.mesh.local is not None
    assert mesh_file.mesh.mesh.local.endpoint == endpoint


def test_a_variable_that_is_set_to_nothing_is_set(opener: Opener) -> None:
    mesh_file = opener.open("agents: {a: {prompt: '${SALT:much}'}}\nentry_points: []", {"SALT": ""})
    assert mesh_file.document.value["agents"]["a"]["prompt"] == ""
    assert not mesh_file.warnings


TEXT = """\
name: "${NAME:a mesh}"
entry_points: [{name: ${GO:go}, target: ${WHO}}]
agents:
  ${WHO}: {prompt: "${PROMPT}", temperature: 5}
"""


@pytest.mark.parametrize("who", ["a", "ant", "an_agent_with_a_very_long_name"])
@pytest.mark.parametrize("prompt", ["", "p", "first\\nsecond " * 9, "first\n\n  second"])
def test_places_are_those_of_the_file(opener: Opener, who: str, prompt: str) -> None:
    (problem,) = opener.problems(TEXT, {"WHO": who, "PROMPT": prompt})
    assert str(problem.span).endswith("mesh.yaml:4:46")
    assert opener.place(problem) == "5"
    document = opener.open(TEXT.replace("5", "1"), {"WHO": who, "PROMPT": prompt}).document
    assert str(document.key_span(("agents", who))).endswith(":4:3")
    assert document.key_span(("agents", who)).length == len("${WHO}")
    assert document.span(("entry_points", 0, "target")).length == len("${WHO}")
    assert str(document.key_span(("agents", who, "temperature"))).endswith(":4:33")


def test_the_places_of_shared_parts_are_those_of_the_file() -> None:
    text = "a: &a {k: '${A}', l: [1]}\nb: *a\nc: ${NO}"
    document = parse(text, file="f", rewrite=Environment({"A": "long enough"}).rewrite)
    assert [str(document.span((key, "l", 0))) for key in "ab"] == ["f:1:23", "f:1:23"]
    assert str(document.key_span(("c",))) == "f:3:1"


def test_syntax_errors_are_located_in_the_original_file(opener: Opener) -> None:
    text = "name: '${NAME}'\nagents: {a: {prompt: 'x'}\n"
    (problem,) = opener.problems(text, {"NAME": "a long name\n\n\n  over lines"})
    assert (problem.code, opener.place(problem)) == ("syntax", "{")


@pytest.mark.parametrize(
    "hostile", ["'", '"', "a: b: c", "]}", "\n- x\ny", "\t", "\x00", "\x1b[31m", "&x *y", "\ud800"]
)
def test_a_hostile_value_is_text_and_at_worst_a_located_error(opener: Opener, hostile: str) -> None:
    text = "name: '${NAME}'\nversion: ${NAME}\nagents: {a: {}}\nentry_points: []"
    try:
        opener.open(text, {"NAME": hostile})
    except ManifestError as error:
        places = [problem.span for problem in error.problems]
        assert all(place is not None and place.line <= 4 for place in places)


def test_values_that_make_a_text_too_large_are_not_even_put_together(opener: Opener) -> None:
    (problem,) = opener.problems("a: '" + "${X}" * 2000 + "'", {"X": "x" * 1_000_000})
    assert problem.code == "too-large"


SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"
KEY = "-----BEGIN KEY-----\\nMIIBVQIBADANBgkqhkiG\n  9w0BAQEFAASCAT8wggE7\n"


@pytest.mark.parametrize(
    "text",
    [
        "temperature: ${TOKEN}",
        "temperature: Bearer ${TOKEN}",
        "agent_type: ${TOKEN}",
        "can_call: [{agent: '${TOKEN}'}]",
        "can_call: [{agent: a, condition: '${TOKEN} = 1'}]",
        "name: '${TOKEN}'",
        "'${TOKEN}': 1",
        "wait_for: 'x and ${TOKEN}'",
        "response_format: {type: '${TOKEN}'}",
        "memory: ${TOKEN}",
        "]\n${TOKEN}",
        "prompt: 'x\n${TOKEN}",
    ],
)
def test_messages_do_not_show_values_of_variables(opener: Opener, text: str) -> None:
    for value in (SECRET, KEY, "four"):
        mesh = f"entry_points: []\nagents:\n  a:\n    {text}\n"
        try:
            problems = opener.open(mesh, {"TOKEN": value}).warnings
        except ManifestError as error:
            problems = error.problems
        assert problems
        for part in (value, value[:12], *value.splitlines()):
            assert part not in str(problems)


def test_a_value_that_breaks_the_yaml_is_named_in_the_hint(opener: Opener) -> None:
    text = "agents: {a: {prompt: ${TEXT}}}\nname: ${NAME:x}\n"
    (problem,) = opener.problems(text, {"TEXT": "x: y: z"})
    assert problem.code == "syntax"
    assert problem.hint.endswith("but not with the values of its variables: ${TEXT}, ${NAME}")
    (problem,) = opener.problems(text + "]", {"TEXT": "x: y: z"})
    assert "variables" not in problem.hint
