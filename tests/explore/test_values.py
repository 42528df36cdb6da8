"""The values that exploration draws for a schema: valid, simple at 0, edges among them; and broken replies."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from harness.explore.values import Choose, NotDrawable, arguments, broken, instance, wrong_arguments
from harness.graph.effects import ToolSpec
from tests.explore.schemas import MODELS, SCHEMAS, Address, Decision, Intent, Order, Ticket

WORDS = ("billing", "0.8", "refund the order")
DRAWS = 150


def validator(schema: Any) -> Draft202012Validator:
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def simplest(count: int) -> int:
    return 0


def largest(count: int) -> int:
    return count - 1


def drawn(draw: Callable[[Choose], Any], count: int = DRAWS) -> list[Any]:
    """Return what is drawn with chance."""
    return [draw(Random(seed).randrange) for seed in range(count)]


# ---------------------------------------------------------------- valid


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_instance_is_valid(name: str) -> None:
    schema = SCHEMAS[name]
    values = [instance(schema, simplest), instance(schema, largest)]
    values += drawn(lambda choose: instance(schema, choose, WORDS))
    assert [value for value in values if not validator(schema).is_valid(value)] == []


@pytest.mark.parametrize("model", MODELS)
def test_an_instance_is_one_of_the_model_that_declares_the_schema(model: type[BaseModel]) -> None:
    schema = model.model_json_schema()
    for value in drawn(lambda choose: instance(schema, choose, WORDS)):
        model.model_validate_json(json.dumps(value))


def bounds(least: str, most: str, top: int) -> st.SearchStrategy[dict[str, Any]]:
    pairs = st.tuples(st.integers(0, top), st.integers(0, top)).map(sorted)
    both = pairs.map(lambda pair: {least: pair[0], most: pair[1]})
    return st.one_of(st.just({}), both, both.map(lambda keys: {least: keys[least]}))


def schemas() -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c"])
    scalars = st.one_of(
        st.sampled_from(
            [{"type": "null"}, {"type": "boolean"}, {"enum": ["x", None, 3]}, {"const": "y"}, {}]
        ),
        st.builds(
            lambda of, keys: {"type": of, **keys},
            st.sampled_from(["integer", "number"]),
            bounds("minimum", "maximum", 50),
        ),
        bounds("minLength", "maxLength", 12).map(lambda keys: {"type": "string", **keys}),
        st.sampled_from(["date", "uuid", "email"]).map(lambda of: {"type": "string", "format": of}),
    )

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        lists = st.builds(
            lambda items, keys: {"type": "array", "items": items, **keys},
            inner,
            bounds("minItems", "maxItems", 4),
        )
        objects = st.builds(
            lambda properties, required, keys: {
                "type": "object",
                "properties": properties,
                "required": required,
                **keys,
            },
            st.dictionaries(names, inner, max_size=3),
            st.lists(names, unique=True),
            st.sampled_from([{}, {"additionalProperties": {"type": "integer"}}]),
        )
        several = st.builds(
            lambda key, options: {key: options},
            st.sampled_from(["anyOf", "allOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=2),
        )
        return st.one_of(lists, objects, several)

    return st.recursive(scalars, larger, max_leaves=6)


@given(schema=schemas(), data=st.data())
def test_an_instance_of_any_schema_is_valid(schema: Any, data: st.DataObject) -> None:
    def choose(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    try:
        value = instance(schema, choose, WORDS)
    except NotDrawable:
        assert "allOf" in json.dumps(schema) or "oneOf" in json.dumps(
            schema
        )  # parts that contradict each other
    else:
        assert Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (False, "nothing is valid under false"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "nothing is valid"),
        ({"$ref": "#/$defs/missing"}, "'#/$defs/missing' leads nowhere"),
        ({"$ref": "https://example.com/schema"}, "leads nowhere"),
        ({"$ref": "#"}, "nothing is valid"),
        ({"type": "object", "properties": {"in": {"$ref": "#"}}, "required": ["in"]}, "nothing is valid"),
        ({"type": "string", "pattern": "("}, "is not a 'regex'"),
        ({"type": "strnig"}, "not a JSON Schema"),
        ({"oneOf": [{"type": "null"}, {"type": "null"}]}, "none of 30 drawn values is valid"),
    ],
)
def test_a_schema_without_instances_says_why(schema: Any, why: str) -> None:
    with pytest.raises(NotDrawable, match="no value can be drawn for the schema") as raised:
        instance(schema, simplest)
    assert why in raised.value.why


# ---------------------------------------------------------------- simple


def test_choosing_0_gives_the_simplest_value() -> None:
    assert instance(Ticket.model_json_schema(), simplest) == {
        "id": "00000000-0000-0000-0000-000000000000",
        "priority": "low",
        "tags": [],
        "address": None,
        "due": "2026-01-01",
        "opened": "2026-01-01T09:00:00Z",
    }
    assert instance(Order.model_json_schema(), simplest, WORDS) == {
        "lines": [{"article": "billing", "count": 1, "price": 0}],
        "notes": {},
    }
    assert instance(Address.model_json_schema(), simplest) == {"street": "a", "code": "AA-00000"}


def test_null_is_simpler_than_all_else() -> None:
    assert instance({"anyOf": [{"type": "string"}, {"type": "null"}]}, simplest) is None


def test_an_alternative_that_ends_is_simpler_than_one_that_contains_others() -> None:
    assert instance(SCHEMAS["Formula"], simplest) == {"term": {"value": 0}}


def test_recursive_values_end_however_large_the_choices_are() -> None:
    depth = json.dumps(instance(SCHEMAS["a reference to the whole"], lambda count: 1 % count)).count("next")
    assert instance(SCHEMAS["a reference to the whole"], simplest) == {"next": None}
    assert 5 <= depth <= 10


def test_equal_choices_give_equal_values() -> None:
    first, second = ([instance(SCHEMAS[name], Random(7).randrange, WORDS) for name in SCHEMAS] for _ in "12")
    assert json.dumps(first) == json.dumps(second)


def test_a_drawn_value_is_the_callers_own() -> None:
    instance(SCHEMAS["a constant"], simplest)["a"].append(2)
    assert instance(SCHEMAS["a constant"], simplest) == {"a": [1]}


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize(
    ("schema", "edges"),
    [
        ({"type": "integer"}, [0, 1, -1, 2**31, -(2**31)]),
        ({"type": "integer", "minimum": 1, "maximum": 500}, [1, 2, 499, 500]),
        ({"type": "number", "minimum": 0, "maximum": 1}, [0, 1, 0.5, 0.99, 0.8, 0.81]),
        ({"type": "number"}, [0.5, 1e300, -1e300, 0.8]),
        ({"type": ["string", "null"]}, [None, "", "billing", "refund the order"]),
        ({"type": "array", "items": {"type": "null"}, "maxItems": 12}, [[], [None], [None] * 12]),
        ({"type": "object", "properties": {"a": {"type": "null"}}}, [{}, {"a": None}]),
        ({"type": "string", "maxLength": 5}, ["", "billi", "one m"]),
        ({"type": "string", "format": "date"}, ["2024-02-29", "9999-12-31"]),
    ],
)
def test_edges_are_likely(schema: Any, edges: list[Any]) -> None:
    values = drawn(lambda choose: instance(schema, choose, WORDS))
    assert [edge for edge in edges if edge not in values] == []


def test_texts_are_mostly_words_and_also_long_or_not_ascii() -> None:
    texts = drawn(lambda choose: instance({"type": "string"}, choose, WORDS))
    assert 0.5 < sum(text in WORDS for text in texts) / DRAWS < 0.8
    assert max(map(len, texts)) == 300
    assert not all(text.isascii() for text in texts)


def test_what_no_schema_declares_is_of_any_type() -> None:
    values = drawn(lambda choose: instance({}, choose, WORDS))
    assert {type(value) for value in values} >= {type(None), bool, int, float, str, list, dict}


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_broken_reply_is_not_json_or_not_valid(name: str) -> None:
    schema = SCHEMAS[name]
    for text in [broken(schema, largest), *drawn(lambda choose: broken(schema, choose))]:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        assert not validator(schema).is_valid(value)


def test_broken_replies_are_prose_cut_off_or_lack_a_key() -> None:
    texts = drawn(lambda choose: broken(Intent.model_json_schema(), choose))
    assert {"I cannot answer that.", ""} <= set(texts)
    assert broken(Intent.model_json_schema(), simplest) == "I cannot answer that."
    found = [json.loads(text) for text in texts if text.startswith("{") and text.endswith("}")]
    assert any("intent" not in value for value in found)
    assert not any(value.get("intent", "") is None for value in found)
    nested = drawn(lambda choose: broken(Decision.model_json_schema(), choose), 500)
    assert any(text.startswith(('{"action": {"because"', '{"action": {"amount"')) for text in nested)


PAY = ToolSpec(
    "pay", "Pays.", {"properties": {"amount": {"type": "integer"}, "to": {"type": "string"}}, "required": ["amount"]}
)  # fmt: skip
CLOSE = ToolSpec("close", "Closes.", {})


def test_arguments_fit_the_tool() -> None:
    assert arguments(PAY, simplest) == {"amount": 0}
    assert all(validator(PAY.schema).is_valid(each) for each in drawn(lambda choose: arguments(PAY, choose)))


def test_a_tool_without_declared_arguments_gets_none() -> None:
    assert drawn(lambda choose: arguments(CLOSE, choose), 20) == [{}] * 20


def test_wrong_arguments_do_not_fit_the_tool() -> None:
    wrong = drawn(lambda choose: wrong_arguments(PAY, choose, WORDS))
    assert [
        each for each in wrong if not isinstance(each, dict) or validator(PAY.schema).is_valid(each)
    ] == []
    assert {} in wrong
    assert wrong_arguments(CLOSE, simplest) == {"unexpected": "value"}
