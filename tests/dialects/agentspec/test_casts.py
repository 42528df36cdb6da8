"""Casting values to the types of properties, and the laws between casts and types."""

from copy import deepcopy
from datetime import date
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.dialects.agentspec.properties import CastError, as_text, cast_value, fits, mistakes
from harness.dialects.agentspec.types import castable, is_list_of, same_type, type_of

NULL, BOOLEAN, INTEGER, NUMBER, STRING = (
    {"type": name} for name in ("null", "boolean", "integer", "number", "string")
)
STRINGS = {"type": "array", "items": STRING}
BOX = {"type": "object", "properties": {"width": INTEGER, "label": {**STRING, "default": 7}}}
CLOSED = {**BOX, "additionalProperties": False}
NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, NULL]}, "value": INTEGER}}


@pytest.mark.parametrize(
    ("value", "schema", "result"),
    [
        # to string: JSON, except for text
        ("a", STRING, "a"),
        (True, STRING, "true"),
        (2.0, STRING, "2.0"),
        (None, STRING, "null"),
        (["a", "b"], STRING, '["a", "b"]'),
        ({"row": 7, "é": None}, STRING, '{"row": 7, "\\u00e9": null}'),
        # numbers
        (7.9, INTEGER, 7),
        (-7.9, INTEGER, -7),
        (True, INTEGER, 1),
        (0, BOOLEAN, False),
        (0.0, BOOLEAN, False),
        (0.5, BOOLEAN, True),
        (-3, BOOLEAN, True),
        (False, NUMBER, 0.0),
        (2, NUMBER, 2.0),
        (2.0, NUMBER, 2.0),
        (2.5, NUMBER, 2.5),
        (1e300, NUMBER, 1e300),
        (2**60 + 1, NUMBER, 2.0**60),
        # text that can be meant one way only
        ("12", INTEGER, 12),
        (" -3.0 ", INTEGER, -3),
        ("2.5", NUMBER, 2.5),
        ("1e3", NUMBER, 1000.0),
        ("12", NUMBER, 12.0),
        ("True", BOOLEAN, True),
        ("false", BOOLEAN, False),
        # what is inside
        ([1.5, True], STRINGS, ["1.5", "true"]),
        (("a", 1), STRINGS, ["a", "1"]),
        ([1, 2.0], {"type": "array", "items": NUMBER}, [1.0, 2.0]),
        ([[1]], {"type": "array"}, [[1]]),
        ([1, 2.0], {}, [1, 2.0]),
        ({"width": 30.7, "label": "x", "more": 1}, BOX, {"width": 30, "label": "x", "more": 1}),
        ({}, BOX, {"label": "7"}),
        ({"more": 1, "label": "x"}, CLOSED, {"label": "x"}),
        ({"a": 1.5}, {"type": "object", "additionalProperties": INTEGER}, {"a": 1}),
        ({"x-a": 1, "label": "x"}, {**CLOSED, "patternProperties": {"^x-": {}}}, {"x-a": 1, "label": "x"}),
        (
            {"value": 1.5, "next": {"value": 2.5, "next": None}},
            NODE,
            {"value": 1, "next": {"value": 2.5, "next": None}},
        ),
        # unions
        (None, {"type": ["integer", "null"]}, None),
        (None, {"anyOf": [STRING, INTEGER]}, None),
        (2, {"type": ["string", "integer"]}, 2),
        (2, {"type": ["number", "null"]}, 2.0),
        (2, {"type": ["number", "integer"]}, 2),
        (2.0, {"type": ["integer", "number"]}, 2.0),
        (2.0, {"type": ["integer", "null"]}, 2),
        (2.5, {"type": ["string", "integer"]}, "2.5"),
        (2, {"type": ["string", "number"]}, 2.0),
        (2, {"type": ["number", "string"]}, 2.0),
        (2, {"type": ["boolean", "number"]}, 2.0),
        (2.5, {"type": ["boolean", "integer"]}, True),
        (10**400, {"type": ["number", "string"]}, str(10**400)),
        ("2", {"type": ["integer", "null"]}, 2),
        ([1], {"anyOf": [STRING, STRINGS]}, ["1"]),
        ({"label": 1}, {"anyOf": [STRING, STRINGS, BOX]}, {"label": "1"}),
        # no type
        ({"a": [1]}, {}, {"a": [1]}),
        (None, {"title": "x"}, None),
        (None, NULL, None),
    ],
)
def test_a_value_is_cast(value: Any, schema: Any, result: Any) -> None:
    found = cast_value(value, type_of(schema))

    assert found == result
    assert repr(found) == repr(result)


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        ("abc", NUMBER, "expected a value of type number, found text 'abc'"),
        ("2.5", INTEGER, "type integer, found text '2.5'"),
        ("", NUMBER, "found text ''"),
        ("1_000", INTEGER, "found text '1_000'"),
        ("٣", INTEGER, "found text '٣'"),
        ("nan", NUMBER, "found text 'nan'"),
        ("1e999", NUMBER, "found text '1e999'"),
        (10**400, NUMBER, "type number, found a number of about 400 digits"),
        ("9" * 5000, INTEGER, "found text '999"),
        ("yes", BOOLEAN, "type boolean, found text 'yes'"),
        (float("inf"), INTEGER, "type integer, found the number inf"),
        (float("nan"), INTEGER, "type integer, found the number nan"),
        (None, INTEGER, "found nothing (null)"),
        ("null", NULL, "type null"),
        ([1], NUMBER, "found a list"),
        ("abc", STRINGS, "type array of string, found text 'abc'"),
        ([], BOX, "type object, found an empty list"),
        (date(2024, 1, 1), STRING, "type string, found a date"),
        ("abc", {"type": ["integer", "null"]}, "type integer or null, found text 'abc'"),
        ([{"width": 1}, {"width": "x"}], {"type": "array", "items": BOX}, "[1].width: expected"),
        (
            {"a": ["x"]},
            {"type": "object", "properties": {"a": {"type": "array", "items": NULL}}},
            "a[0]: exp",
        ),
    ],
)
def test_a_value_that_cannot_be_cast(value: Any, schema: Any, message: Any) -> None:
    with pytest.raises(CastError) as caught:
        cast_value(value, type_of(schema))

    assert message in str(caught.value)
    assert caught.value.code == "cast"


def test_casting_changes_neither_the_value_nor_a_default() -> None:
    value, schema = (
        {"a": [1.5]},
        {"type": "object", "properties": {"b": {"default": []}}, "additionalProperties": STRINGS},
    )
    first = cast_value(value, type_of(schema))
    first["b"].append(1)

    assert value == {"a": [1.5]}
    assert cast_value(value, type_of(schema)) == {"a": ["1.5"], "b": []}


@pytest.mark.parametrize(
    ("value", "schema", "does"),
    [
        (1, INTEGER, True),
        (2.0, INTEGER, True),
        (2.5, INTEGER, False),
        (2, NUMBER, True),
        (True, INTEGER, False),
        (True, BOOLEAN, True),
        (1, BOOLEAN, False),
        ("1", INTEGER, False),
        (1, STRING, False),
        (None, NULL, True),
        (None, STRING, False),
        (None, {"type": ["string", "null"]}, True),
        (None, {"type": ["string", "integer"]}, False),
        (["a"], STRINGS, True),
        ([1], STRINGS, False),
        ({"width": 1, "label": "x"}, BOX, True),
        ({"label": "x", "more": 1}, BOX, True),
        ({"label": "x", "more": 1}, CLOSED, False),
        ({"width": 1}, BOX, False),
        (object(), {}, True),
    ],
)
def test_a_value_of_the_type_fits(value: Any, schema: Any, does: Any) -> None:
    assert fits(value, type_of(schema)) is does


def test_text_of_values() -> None:
    assert [as_text(value) for value in ("a", 1, True, None, [{"a": 0.5}])] == [
        "a",
        "1",
        "true",
        "null",
        '[{"a": 0.5}]',
    ]


# ---------------------------------------------------------------- laws

names = st.sampled_from("abc")
scalars = st.sampled_from([NULL, BOOLEAN, INTEGER, NUMBER, STRING, {}, {"enum": ["a", 1]}, {"const": None}])
lists_of_types = st.lists(
    st.sampled_from(["null", "boolean", "integer", "number", "string"]), min_size=1, unique=True
)


def containers(inner: Any) -> Any:
    properties = st.dictionaries(names, inner | st.just({**STRING, "default": 1}), max_size=2)
    others = inner | st.booleans()
    return (
        inner.map(lambda items: {"type": "array", "items": items})
        | st.builds(lambda given: {"type": "object", "properties": given}, properties)
        | st.builds(
            lambda given, more: {"type": "object", "properties": given, "additionalProperties": more},
            properties,
            others,
        )
        | st.lists(inner, min_size=1, max_size=3).map(lambda given: {"anyOf": given})
        | st.lists(inner, min_size=1, max_size=2).map(lambda given: {"allOf": given})
    )


schemas = st.recursive(scalars | lists_of_types.map(lambda given: {"type": given}), containers, max_leaves=6)
json_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-9, 9)
    | st.sampled_from(["", "a", "1", "2.5", "true"])
)
json = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def of_type(draw: Any, schema: Any) -> Any:
    """Draw a value of a type, which is built from its schema."""
    if "anyOf" in schema:
        return draw(of_type(draw(st.sampled_from(schema["anyOf"]))))
    type_ = schema.get("type")
    if type_ == "array":
        return draw(st.lists(of_type(schema["items"]), max_size=2))
    if type_ == "object":
        others = schema.get("additionalProperties", {})
        more = st.dictionaries(names, of_type(others) if isinstance(others, dict) else json, max_size=2)
        given = draw(more) if others is not False else {}
        return {**given, **{name: draw(of_type(one)) for name, one in schema["properties"].items()}}
    return draw(json)


@st.composite
def schema_with_value(draw: Any) -> Any:
    schema = draw(schemas)
    return schema, draw(of_type(schema))


@given(schemas)
def test_law_a_type_can_be_cast_to_itself(schema: Any) -> None:
    assert castable(type_of(schema), type_of(deepcopy(schema)))
    assert same_type(type_of(schema), type_of(deepcopy(schema)))
    assert castable(type_of(schema), type_of(STRING))
    assert castable(type_of(schema), type_of({}))


@given(schemas, schemas)
def test_law_the_same_types_can_be_cast_to_each_other(a: Any, b: Any) -> None:
    if same_type(type_of(a), type_of(b)):
        assert castable(type_of(a), type_of(b))
        assert castable(type_of(b), type_of(a))


@given(schema_with_value(), schemas)
def test_law_a_value_of_a_type_can_be_cast_to_all_castable_types(source_and_value: Any, target: Any) -> None:
    source, value = source_and_value
    assume(fits(value, type_of(source)))
    if castable(type_of(source), type_of(target)):
        cast_value(value, type_of(target))


@given(schemas, json)
def test_law_casting_twice_is_casting_once(schema: Any, value: Any) -> None:
    before = deepcopy(value)
    try:
        once = cast_value(value, type_of(schema))
    except CastError:
        return
    finally:
        assert value == before
    assert cast_value(once, type_of(schema)) == once
    if "null" not in as_text(once):  # every union lets null through
        assert fits(once, type_of(schema))


@given(schemas, json)
def test_law_a_value_that_fits_stays_equal(schema: Any, value: Any) -> None:
    if fits(value, type_of(schema)):
        assert cast_value(value, type_of(schema)) == value


@given(json, json)
def test_law_no_schema_breaks_the_rules(schema: Any, value: Any) -> None:
    schema = schema if isinstance(schema, dict) else {"anyOf": schema, "title": schema, "default": value}
    renamed = {"a": "type", "b": "properties", "c": "items"}
    schema = {renamed.get(key, key): held for key, held in schema.items()}

    list(mistakes(schema))
    castable(type_of(schema), type_of(value))
    same_type(type_of(schema), type_of(value))
    is_list_of(type_of(schema), type_of(value))
    fits(value, type_of(schema))
    fits(value, type_of(schema), as_default=True)
