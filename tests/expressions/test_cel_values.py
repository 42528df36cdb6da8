"""Conversion of values into and out of expressions."""

from __future__ import annotations

import uuid
from collections import UserDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, overload

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from harness.errors import ExpressionError
from harness.expressions.cel import compile, written_keys


class Colour(Enum):
    RED = "red"


@dataclass
class Letter:
    to: str
    grams: int
    _secret: str = "x"


@dataclass(slots=True)
class Box:
    label: str


class Bag(BaseModel):
    town: str
    letters: list[Letter] = []


@dataclass
class Holder:
    bag: Bag
    boxes: list[Box] = field(default_factory=list)


class Thing:
    def __init__(self) -> None:
        self.size = 2
        self._hidden = 1


class Counted(Sequence[Any]):
    """A sequence that notes which of its elements were read."""

    def __init__(self, items: list[Any]) -> None:
        self.items, self.read = items, list[int]()

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: Any) -> Any:
        self.read.append(index)
        return self.items[index]

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self.items)):
            yield self[index]


def value(source: str, null_as_false: bool = False, **bindings: Any) -> Any:
    return compile(source, null_as_false=null_as_false).evaluate(bindings)


class TestObjects:
    def test_dataclasses_models_and_objects_read_like_maps_of_their_public_fields(self) -> None:
        bag = Bag(town="Røros", letters=[Letter("Ola", 5), Letter("Kari", 40)])
        assert value("bag.town", bag=bag) == "Røros"
        assert value('bag["letters"][0].to', bag=bag) == "Ola"
        assert value("bag.letters.filter(l, l.grams > 20).map(l, l.to)", bag=bag) == ["Kari"]
        assert value("holder.boxes[0].label", holder=Holder(bag, [Box("b")])) == "b"
        assert value("thing.size", thing=Thing()) == 2
        assert value('default(bag.colour, "no colour")', bag=bag) == "no colour"

    def test_private_fields_are_not_fields(self) -> None:
        assert value("has(a._secret) || has(b._hidden)", a=Letter("Ola", 5), b=Thing()) is False

    def test_objects_come_out_as_plain_data_at_any_depth(self) -> None:
        holder = Holder(Bag(town="Røros", letters=[Letter("Ola", 5)]), [Box("b")])
        assert value("[holder]", holder=holder) == [
            {"bag": {"town": "Røros", "letters": [{"to": "Ola", "grams": 5}]}, "boxes": [{"label": "b"}]}
        ]

    @pytest.mark.parametrize(
        ("given", "seen"),
        [
            (Colour.RED, "red"),
            ((1, 2), [1, 2]),
            ({"b", "a"}, ["a", "b"]),
            (UserDict({"a": 1}), {"a": 1}),
            (datetime(2020, 1, 1), "2020-01-01T00:00:00Z"),
            (timedelta(seconds=90), "90s"),
            (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
            (b"x", b"x"),
        ],
    )
    def test_other_values(self, given: Any, seen: Any) -> None:
        assert value("x", x=given) == seen
        assert value("[x, x][0]", x=given) == seen

    def test_an_integer_of_more_than_64_bits_is_an_error_only_when_it_is_read(self) -> None:
        state = {"big": 2**63, "small": 1}
        assert value("state.small", state=state) == 1
        with pytest.raises(ExpressionError, match="overflow"):
            value("state.big + 1", state=state)

    @pytest.mark.parametrize(
        "source", ["xs + [null, 1]", "[null, 1] + xs", "xs + xs", "(xs + xs)[1] == xs[1]"]
    )
    def test_lists_are_joined_without_being_read(self, source: str) -> None:
        xs = [2**63, None, {"a": [1]}]
        joined = {"xs + [null, 1]": [*xs, None, 1], "[null, 1] + xs": [None, 1, *xs], "xs + xs": xs * 2}
        assert value(source, xs=xs) == joined.get(source, True)


class TestMessages:
    MESSAGES = (
        HumanMessage("hello"),
        AIMessage("world", id="m1", tool_calls=[{"name": "t", "args": {"a": None}, "id": "1"}]),
        ToolMessage("r", tool_call_id="1"),
    )

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("messages.map(m, m.type)", ["human", "ai", "tool"]),
            ("messages[0].content", "hello"),
            ("messages[0].additional_kwargs", {}),
            ("messages[0].response_metadata", {}),
            ("messages[1].id", "m1"),
            ("messages[1].name", None),
            ("messages[1].tool_calls[0].name", "t"),
            ("messages[1].tool_calls[0].args.a", None),
            ("messages[2].tool_call_id", "1"),
            ("has(messages[0].tool_calls)", False),
            ('messages[0].contains("ell")', True),
            ('messages[0].contains("type")', False),
        ],
    )
    def test_messages_read_like_maps(self, source: str, expected: Any) -> None:
        assert value(source, messages=self.MESSAGES) == expected


class TestNulls:
    STATE: ClassVar[dict[str, Any]] = {"x": None, "m": {"deep": [None]}}

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("state.x == null", False),
            ("state.x == false", True),
            ("default(state.x, 1)", False),
            ("state.x", False),
            ("state.m", {"deep": [False]}),
            ("state.m.deep[0] || true", True),
            ("null", None),
            ('json("{\\"a\\": null}")', {"a": None}),
            ('json("null") == null', True),
            ("[null, state.x]", [None, False]),
            ('template("${x}", {"x": state.x})', "False"),
        ],
    )
    def test_stored_nulls_can_read_as_false_while_fresh_ones_stay(self, source: str, expected: Any) -> None:
        assert value(source, null_as_false=True, state=self.STATE) == expected

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("state.x", None),
            ("state.m", {"deep": [None]}),
            ("state.x == null", True),
            ("state.x != null", False),
            ("state.m != null", True),
            ("1 == null", False),
            ("null == 1.5", False),
            ("state.m.deep != null", True),
        ],
    )
    def test_otherwise_they_are_null_and_compare_with_everything(self, source: str, expected: Any) -> None:
        assert value(source, state=self.STATE) == expected


class TestLaziness:
    def test_only_the_element_that_is_asked_for_is_read(self) -> None:
        messages = Counted([HumanMessage(str(i)) for i in range(1000)])
        assert value(
            'state.messages[size(state.messages) - 1].content == "999"', state={"messages": messages}
        )
        assert messages.read == [999]

    def test_last_reads_one_element(self) -> None:
        numbers = Counted([1, 2, 3])
        assert value("last(numbers)", numbers=numbers) == 3
        assert numbers.read == [2]

    def test_size_reads_none(self) -> None:
        numbers = Counted([1, 2, 3])
        assert value("size(numbers) + numbers.size()", numbers=numbers) == 6
        assert numbers.read == []

    @pytest.mark.parametrize(
        ("source", "answer"), [("l.exists(x, x == 2)", True), ("l.all(x, x < 2)", False), ("2 in l", True)]
    )
    def test_a_decided_question_stops(self, source: str, answer: bool) -> None:
        numbers = Counted([1, 2, 3])
        assert value(source, l=numbers) is answer
        assert numbers.read == [0, 1]

    def test_what_is_not_chosen_is_not_evaluated(self) -> None:
        numbers = Counted([1, 2, 3])
        assert value("true || numbers[0] == 1 ? 1 : numbers[1]", numbers=numbers) == 1
        assert numbers.read == []

    def test_reading_a_mapping_leaves_it_as_it_was(self) -> None:
        counts: defaultdict[str, int] = defaultdict(int)
        assert value("has(counts.x)", counts=counts) is False
        assert counts == {}

    def test_results_share_nothing_with_the_bindings(self) -> None:
        state = {"l": [[1]]}
        value("state.l", state=state)[0].append(2)
        assert state == {"l": [[1]]}


class TestExpression:
    @pytest.mark.parametrize(
        ("source", "reference"),
        [
            ("state.x", ("state", "x")),
            ('state["x"]', ("state", "x")),
            ("(state . x)", ("state", "x")),
            ("state.a['b'].c", ("state", "a", "b", "c")),
            ("state", ("state",)),
            ("state.x[0]", None),
            ("state[x]", None),
            ("state.x + 1", None),
            ("[state.x]", None),
            ("state.x()", None),
            ('"state"', None),
        ],
    )
    def test_a_reference_is_a_path_of_names_and_string_keys(self, source: str, reference: Any) -> None:
        assert compile(source).reference == reference

    def test_names_are_the_free_identifiers(self) -> None:
        expression = compile(
            'state.l.map(m, m + llm_response.x) == [other] && type(1) == int && has(prompts["p"])'
        )
        assert expression.names == {"state", "llm_response", "other", "prompts"}

    def test_written_keys_are_those_of_the_maps_it_gives(self) -> None:
        assert written_keys('{"a": {"b": 1}, state.k: 2, ("c"): 3}') == {"a", "c"}
        assert written_keys('x ? {"a": 1} : y ? {"b": 2} : z') == {"a", "b"}
        assert written_keys('[{"a": 1}]') == written_keys("{}") == frozenset()

    def test_reads_are_the_fields_written_out(self) -> None:
        expression = compile('state.a[0] == state["b"].c && state[key] == x.map(state, state.d)')
        assert expression.reads == {("state", "a"), ("state", "b")}

    def test_the_same_text_is_compiled_once_for_each_reading_of_null(self) -> None:
        assert compile("1 + 1") is compile("1 + 1")
        assert compile("1 + 1") is not compile("1 + 1", null_as_false=True)

    def test_an_evaluation_may_happen_inside_another(self) -> None:
        expression = compile("items.map(x, x)")

        class Nested(Counted):
            def __getitem__(self, index: Any) -> Any:
                assert expression.evaluate({"items": [7]}) == [7]
                return super().__getitem__(index)

        assert expression.evaluate({"items": Nested([1, 2])}) == [1, 2]
