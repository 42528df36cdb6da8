"""The choice of the stub of a scripted world that answers."""

import threading
from typing import Any

import pytest

from harness.errors import UnscriptedCall
from harness.graph.effects import ToolCall, ToolSpec
from harness.matchers.regex import last_part_matches
from harness.world.scripted import ScriptedWorld
from tests.world.stubs import answers, ask, llm, replies, reply, world_spec


def test_the_first_stub_with_uses_left_answers() -> None:
    found = answers(replies(reply("a", times=2), reply("b")), llm(), llm(), llm())
    assert [answer.text for answer in found] == ["a", "a", "b"]


def test_a_stub_that_two_threads_ask_for_at_once_answers_one_of_them() -> None:
    """Real tools make calls from threads, concurrently with the effects of the agent."""
    world = ScriptedWorld(world_spec(tools={"f": [{"times": 1, "args": {"a": 1}, "return": 1}]}))
    refused: list[UnscriptedCall] = []

    def ask_beside() -> None:
        try:
            ask(world, ToolCall(name="f", args={"a": 1}))
        except UnscriptedCall as error:
            refused.append(error)

    beside = threading.Thread(target=ask_beside)

    class Slow(dict[str, Any]):
        """Arguments that let another thread make a call while they are compared."""

        def get(self, key: str, default: Any = None) -> Any:
            if not beside.ident:
                beside.start()
                beside.join(0.2)
            return super().get(key, default)

    assert ask(world, ToolCall(name="f", args=Slow(a=1))).value == 1
    beside.join()
    assert len(refused) == 1


@pytest.mark.parametrize(
    ("matchers", "holds"),
    [
        ({"node": "n"}, True),
        ({"node": "m"}, False),
        ({"node": "n*"}, True),
        ({"model": "gpt-*"}, True),
        ({"model": "claude-*"}, False),
        ({"when": 'request.messages[1].content == "hello"'}, True),
        ({"when": 'request.messages[0].role == "system" && request.prompt == "hello"'}, True),
        ({"when": 'request.messages[7].content == "x"'}, False),
        ({"when": "request.messages"}, False),
        ({"when": "state.n == 3"}, True),
        ({"when": 'request.model == "gpt-4o" && request.kind == "llm" && request.node == "n"'}, True),
        ({"when": 'size(request.tools) == 1 && request.tools[0].name == "t"'}, True),
    ],
)
def test_a_stub_answers_when_all_its_matchers_hold(matchers: Any, holds: Any) -> None:
    world = ScriptedWorld(replies(reply("x", **matchers)))
    effect = llm(tools=(ToolSpec("t", "", {}),))
    assert world.has_answers([effect], {"n": 3}) is holds


def test_a_node_matcher_without_a_slash_looks_at_the_last_part() -> None:
    world = ScriptedWorld(replies(reply("x", node="inner"), reply("y", node="outer/inner")))
    assert ask(world, llm(node="outer/inner")).value.text == "x"
    assert ask(world, llm(node="outer/inner")).value.text == "y"
    assert not world.has_answers([llm(node="inner")], {})


@pytest.mark.parametrize(
    ("vague", "exact", "node"),
    [
        ("*", "plan", "plan"),
        ("pl?n", "plan", "plan"),
        ("*", "outer/inner", "outer/inner"),
        ("inner", "outer/inner", "outer/inner"),
        ("outer/model", "outer/inner/model", "outer/inner/model"),
        ("model", "outer/model", "outer/inner/model"),
        ("model", "outer/*", "outer/model"),
        ("*", "outer/*", "outer/model"),
    ],
)
@pytest.mark.parametrize("kind", ["llm", "human"])
def test_of_the_nodes_of_a_mapping_the_name_that_says_more_is_asked_first(
    vague: str, exact: str, node: str, kind: str
) -> None:
    for first, second in ((vague, exact), (exact, vague)):
        spec = world_spec(**{kind: {first: [{"reply": first}], second: [{"reply": second}]}})
        asked = getattr(spec, kind)
        assert [stub.list_node for stub in asked if last_part_matches(stub.list_node, node)] == [exact, vague]


def test_names_that_say_as_much_are_asked_in_the_order_of_the_file() -> None:
    for first, second in (("outer/*", "*/model"), ("*/model", "outer/*")):
        spec = world_spec(llm={first: ["a"], second: ["b"]})
        assert [stub.list_node for stub in spec.llm] == [first, second]


def test_args_match_as_subsets_with_value_matchers() -> None:
    stubs = (
        {"args": {"n": {"$gt": 3}}, "return": "big"},
        {"times": 1, "return": "small"},
    )
    spec = world_spec(tools={"t": [*stubs]})
    calls = [ToolCall(name="t", args={"n": n, "more": True}) for n in (9, 1, 4)]
    assert answers(spec, *calls) == ["big", "small", "big"]


class Watched:
    """A value that counts how often it was compared."""

    times = 0

    def __init__(self, number: Any) -> None:
        self.number = number

    def __eq__(self, other: Any) -> Any:
        Watched.times += 1
        return self.number == other

    __hash__ = None  # type: ignore[assignment]


def test_a_stub_that_does_not_fit_is_compared_once_and_one_that_is_used_up_no_more() -> None:
    stubs = [{"times": 1, "args": {"n": Watched(n)}, "return": n} for n in range(10)]
    calls = [ToolCall(name="t", args={"n": n}) for n in reversed(range(10))]
    Watched.times = 0
    assert answers(world_spec(tools={"t": [*stubs]}), *calls) == list(reversed(range(10)))
    assert Watched.times == sum(range(1, 11))


@pytest.mark.parametrize(
    ("wanted", "given", "holds"),
    [
        ("a", "a", True),
        ("a", "b", False),
        (1, 1.0, True),
        (1, 2, False),
        (1, True, False),
        ("1", 1, False),
        ({"$gt": 3}, 4, True),
        ({"$gt": 3}, 3, False),
        ({"k": "v"}, {"k": "v", "l": 1}, True),
        ([1, "x"], [1, "y"], False),
    ],
)
def test_an_argument_is_compared_as_values_are(wanted: Any, given: Any, holds: Any) -> None:
    spec = world_spec(tools={"t": [{"times": 1, "args": {"x": wanted}, "return": 1}]})
    assert ScriptedWorld(spec).has_answers([ToolCall(name="t", args={"x": given})], {}) is holds


def test_the_args_may_be_one_matcher() -> None:
    spec = world_spec(tools={"t": [{"times": 1, "args": {"$contains": "a"}, "return": 1}]})
    assert ScriptedWorld(spec).has_answers([ToolCall(name="t", args={"a": 1, "$contains": "b"})], {})


def test_a_used_up_stub_is_no_answer_after_a_turn_added_others() -> None:
    world = ScriptedWorld(replies(reply("once"), reply("late")))
    assert ask(world, llm()).value.text == "once"
    world.put_in_front(replies(reply("early", times=2)))
    assert world.has_answers([llm()] * 3, {})
    assert not world.has_answers([llm()] * 4, {})
    assert [ask(world, llm()).value.text for _ in range(3)] == ["early", "early", "late"]


def test_a_turn_s_stubs_stand_in_front() -> None:
    world = ScriptedWorld(replies(reply("late")))
    world.put_in_front(replies(reply("early")))
    assert [ask(world, llm()).value.text for _ in range(2)] == ["early", "late"]
