"""Properties and their types. spec: "Input and output properties", "Type compatibility rules"."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.dialects.agentspec.properties import Property, mistakes
from harness.dialects.agentspec.types import castable, is_list_of, same_type, type_of

NULL, BOOLEAN, INTEGER, NUMBER, STRING = (
    {"type": name} for name in ("null", "boolean", "integer", "number", "string")
)
ANYTHING: dict[str, Any] = {}


def array(items: Any) -> Any:
    return {"type": "array", "items": items}


def any_of(*alternatives: Any) -> Any:
    return {"anyOf": list(alternatives)}


def thing(others: Any = None, **properties: Any) -> Any:
    schema = {"type": "object", "properties": properties}
    return schema if others is None else {**schema, "additionalProperties": others}


NODE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": INTEGER, "next": any_of({"$ref": "#/$defs/node"}, NULL)},
        }
    },
}

CASTABLE = [
    # a subtype
    (NUMBER, {"type": ["number", "null"]}),
    (STRING, any_of(NULL, STRING)),
    ({"type": ["integer", "null"]}, any_of(NULL, STRING, INTEGER)),
    (NULL, NULL),
    # everything to string
    *[
        (source, STRING)
        for source in (NULL, BOOLEAN, INTEGER, NUMBER, STRING, array(STRING), thing(), ANYTHING)
    ],
    # numbers, integers and booleans to each other
    *[(a, b) for a in (BOOLEAN, INTEGER, NUMBER) for b in (BOOLEAN, INTEGER, NUMBER)],
    (INTEGER, any_of(NULL, BOOLEAN)),
    # by items and properties
    (array(NUMBER), array(STRING)),
    (array(array(BOOLEAN)), array(array(INTEGER))),
    (array(NUMBER), {"type": "array"}),
    (thing(a=NUMBER, b=STRING), thing(a=INTEGER)),
    (thing(a=thing(b=NUMBER)), thing(a=thing(b=STRING))),
    (thing(a=NUMBER), {"type": "object"}),
    (thing(False, a=NUMBER), thing(a=NUMBER)),
    (thing(True), thing()),
    (thing(INTEGER), thing(NUMBER)),
    (thing(INTEGER, a=BOOLEAN), thing(NUMBER)),
    (thing(False, a=NUMBER, b=STRING), thing(False, a=NUMBER)),
    (thing(False), thing(a={**NUMBER, "default": 1})),
    # what is unknown
    (STRING, ANYTHING),
    (ANYTHING, ANYTHING),
    (ANYTHING, any_of(NULL, STRING)),
    (INTEGER, {"title": "x", "description": "of any type"}),
    (INTEGER, any_of({}, STRING)),
]
NOT_CASTABLE = [
    (STRING, NUMBER),
    (STRING, BOOLEAN),
    (NULL, INTEGER),
    ({"type": ["number", "null"]}, NUMBER),
    (any_of(NUMBER, STRING), {"type": ["integer", "null"]}),
    (NUMBER, array(NUMBER)),
    (array(NUMBER), NUMBER),
    (array(STRING), array(NUMBER)),
    (array(ANYTHING), array(NUMBER)),
    (thing(a=STRING), thing(a=NUMBER)),
    (thing(a=NUMBER), thing(b=NUMBER)),
    (thing(), thing(a={**NUMBER, "default": 1})),
    (thing(False), thing(a=NUMBER)),
    (thing(), thing(False)),
    (thing(a=NUMBER), thing(False, a=NUMBER)),
    (thing(), thing(NUMBER)),
    (thing(STRING), thing(NUMBER)),
    (thing(NUMBER, a=STRING), thing(NUMBER)),
    (ANYTHING, NUMBER),
    (ANYTHING, any_of(NUMBER, NULL)),
]


@pytest.mark.parametrize(("source", "target"), CASTABLE)
def test_castable_types(source: Any, target: Any) -> None:
    assert castable(type_of(source), type_of(target))


@pytest.mark.parametrize(("source", "target"), NOT_CASTABLE)
def test_types_that_are_not_castable(source: Any, target: Any) -> None:
    assert not castable(type_of(source), type_of(target))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"type": ["string", "null"]}, any_of(NULL, STRING)),
        (any_of(NULL, any_of(STRING, INTEGER)), {"oneOf": [INTEGER, {"type": ["null", "string"]}]}),
        ({"title": "a", "type": "integer", "default": 1}, INTEGER),
        (array(ANYTHING), {"type": "array"}),
        (thing(), {"type": "object", "additionalProperties": True}),
        (any_of(STRING, ANYTHING), ANYTHING),
        (any_of(STRING, False), STRING),
        ({"enum": ["red", "green"]}, STRING),
        ({"enum": [1, None]}, {"type": ["integer", "null"]}),
        ({"const": 2.5}, NUMBER),
        ({"type": "integer", "enum": [1, 2]}, INTEGER),
        ({"type": ["array", "null"], "items": STRING}, any_of(array(STRING), NULL)),
        ({"properties": {"a": STRING}, "anyOf": [{"type": "object"}, NULL]}, any_of(thing(a=STRING), NULL)),
        ({"allOf": [thing(a=STRING), thing(b=NULL)]}, thing(a=STRING, b=NULL)),
        ({"allOf": [{"minimum": 0}], "type": "integer"}, INTEGER),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": array(STRING)}}, array(STRING)),
        (array({"$ref": "#/$defs/a", "$defs": {"a": STRING}}), array(STRING)),
        ({"$ref": "https://example.com/schema.json"}, ANYTHING),
        ({"$ref": "#"}, ANYTHING),
        (NODE, NODE),
    ],
)
def test_same_types_however_they_are_written(a: Any, b: Any) -> None:
    assert same_type(type_of(a), type_of(b))
    assert same_type(type_of(b), type_of(a))
    assert castable(type_of(a), type_of(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (INTEGER, NUMBER),
        (STRING, ANYTHING),
        (STRING, any_of(STRING, NULL)),
        (array(STRING), array(INTEGER)),
        (thing(a=STRING), thing()),
        (thing(a=STRING), thing(a=NULL)),
        (thing(), thing(False)),
        (thing(STRING), thing()),
    ],
)
def test_different_types(a: Any, b: Any) -> None:
    assert not same_type(type_of(a), type_of(b))
    assert not same_type(type_of(b), type_of(a))


@pytest.mark.parametrize(
    ("source", "inner", "is_one"),
    [
        (array(STRING), STRING, True),
        (array(INTEGER), NUMBER, True),
        (STRING, STRING, False),
        (array(STRING), array(STRING), False),
        (array(array(STRING)), array(STRING), True),
        (array(thing(a=NUMBER)), thing(a=STRING), True),
        (array(STRING), NUMBER, False),
        (any_of(array(NUMBER), NULL), NUMBER, True),
        (any_of(array(NUMBER), NUMBER), NUMBER, False),
        (NULL, any_of(NUMBER, NULL), False),
        (array(ANYTHING), NUMBER, False),
        (array(ANYTHING), ANYTHING, True),
        (ANYTHING, ANYTHING, False),
    ],
)
def test_a_list_of_the_inner_type(source: Any, inner: Any, is_one: Any) -> None:
    assert is_list_of(type_of(source), type_of(inner)) is is_one


def test_recursive_schema_references_end() -> None:
    levels = {f"d{n}": thing(**{key: {"$ref": f"#/$defs/d{n + 1}"} for key in "abcdefgh"}) for n in range(50)}
    doubling = {"$ref": "#/$defs/d0", "$defs": levels}
    chain = {"$ref": "#/$defs/0", "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(5000)}}

    assert castable(type_of(doubling), type_of(doubling))
    assert same_type(type_of(chain), type_of(ANYTHING))


def test_a_schema_may_be_nested_deeper_than_python_calls() -> None:
    nested = STRING
    for _ in range(5000):
        nested = array(nested)

    assert castable(type_of(nested), type_of(nested))


def test_schemas_are_not_changed() -> None:
    schema = {"type": "string", "anyOf": [NULL, {"allOf": [NODE, thing(a=NULL)]}], "$defs": {}}
    before = deepcopy(schema)

    castable(type_of(schema), type_of(schema))
    same_type(type_of(schema), type_of(NODE))

    assert schema == before


# ---------------------------------------------------------------- properties


def test_a_property_has_a_title_and_a_default_of_its_own() -> None:
    price = Property({"title": "prices", "type": "array", "items": NUMBER, "default": [1]})
    price.default.append(2)

    assert (price.title, price.has_default, price.default) == ("prices", True, [1])
    assert not Property({"title": "x", "type": "string"}).has_default
    assert Property({"title": "x", "type": ["string", "null"], "default": None}).has_default


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (STRING, "string"),
        (array(NUMBER), "array of number"),
        ({"type": ["integer", "null"]}, "integer or null"),
        (array(any_of(STRING, NULL)), "array of (string or null)"),
        ({"type": "array"}, "array"),
        (thing(a=STRING), "object"),
        (ANYTHING, "anything"),
    ],
)
def test_the_text_of_a_type(schema: Any, text: Any) -> None:
    assert str(Property({**schema, "title": "x"}).type) == text


@pytest.mark.parametrize(
    "schema",
    [
        {"title": "topic"},
        {"title": "Über_7-x", "type": "string", "description": "any text, of course"},
        {"title": "x", **any_of({"title": "a", "type": "string"}, NULL), "default": None},
        {"title": "x", **thing(NUMBER), "default": {}},
        {"title": "x", **array(array(NUMBER)), "default": [[1], [2.5], []]},
        # numbers, integers and booleans are interchangeable, and a string can be made of anything
        {"title": "x", "type": "integer", "default": 2.5},
        {"title": "x", "type": "boolean", "default": 1},
        {"title": "x", "type": "number", "default": True},
        {"title": "x", "type": "string", "default": None},
        {"title": "x", "type": "string", "default": [1]},
        {"title": "x", **any_of(INTEGER, BOOLEAN), "default": None},
        {"title": "x", **thing(a={**NUMBER, "default": 1}), "default": {"b": 1}},
        {"title": "x", "default": {"what": ["ever"]}},
    ],
)
def test_a_property_without_mistakes(schema: Any) -> None:
    assert list(mistakes(schema)) == []


@pytest.mark.parametrize(
    ("schema", "code", "at", "message", "hint"),
    [
        ("topic", "wrong-type", (), "found text 'topic'", ""),
        (None, "wrong-type", (), "found nothing", ""),
        ({"type": "string"}, "property-title", (), "needs a 'title'", ""),
        ({"title": ""}, "property-title", ("title",), "found text ''", ""),
        ({"title": 7}, "property-title", ("title",), "found the number 7", ""),
        ({"title": "two words"}, "property-title", ("title",), "'two words'", "two_words"),
        *[({"title": f"a{sign}b"}, "property-title", ("title",), "has no", "a_b") for sign in ".,{} '\"\n"],
        (
            {"title": "x", **array({"title": "a b"})},
            "property-title",
            ("items", "title"),
            "'a b'",
            "a_b",
        ),
        (
            {"title": "x", **thing(any_of(NULL, {"title": "{a}"}))},
            "property-title",
            ("additionalProperties", "anyOf", 1, "title"),
            "'{a}'",
            "'a'",
        ),
        (
            {"title": "x", **thing(p={"title": "."})},
            "property-title",
            ("properties", "p", "title"),
            "'.'",
            "",
        ),
        ({"title": "x", "type": "strng"}, "bad-schema", ("type",), "found text 'strng'", "'string'"),
        ({"title": "x", "type": ["string", "nul"]}, "bad-schema", ("type", 1), "text 'nul'", "'null'"),
        (
            {"title": "x", "type": ["integer", "nul"], "default": "a"},
            "bad-schema",
            ("type", 1),
            "text 'nul'",
            "'null'",
        ),
        ({"title": "x", **thing(p={"required": 1})}, "bad-schema", ("properties", "p", "required"), "1", ""),
        ({"title": "x", "pattern": "("}, "bad-schema", ("pattern",), "'('", ""),
        (
            {"title": "x", "type": "integer", "default": "12"},
            "property-default",
            ("default",),
            "must be of type integer, found text '12'",
            "",
        ),
        ({"title": "x", "type": "integer", "default": None}, "property-default", ("default",), "null", ""),
        ({"title": "x", **array(NUMBER), "default": [1, "a"]}, "property-default", ("default",), "list", ""),
        ({"title": "x", **thing(a=STRING), "default": {}}, "property-default", ("default",), "object", ""),
        (
            {"title": "x", **thing(False), "default": {"a": 1}},
            "property-default",
            ("default",),
            "object",
            "",
        ),
    ],
)
def test_mistakes_in_a_property(schema: Any, code: Any, at: Any, message: Any, hint: Any) -> None:
    (mistake,) = mistakes(schema)

    assert (mistake.code, mistake.at) == (code, at)
    assert message in mistake.message
    assert hint in mistake.hint


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, "", "string", "array", "nul", ["string"], ["nul"], {}]
)
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("description", "type", "items", "default"), ODD)),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("array") | ODD}, optional={"items": inner, "anyOf": ODD}
    ),
)


@given(SCHEMAS)
def test_law_a_schema_that_the_metaschema_refuses_is_no_property(schema: dict[str, Any]) -> None:
    found = {mistake.code for mistake in mistakes({**schema, "title": "x"})}
    assert ("bad-schema" in found) == (
        not Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(schema)
    )
