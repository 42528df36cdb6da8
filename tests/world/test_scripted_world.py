"""The scripted world: which stub answers, what the answer is, and what happens when there is none."""

import asyncio
import re
import socket
import threading
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from harness.errors import UnscriptedCall
from harness.graph.effects import (
    AgentCall,
    HandlerCall,
    HTTPCall,
    HumanCall,
    LLMCall,
    MCPCall,
    MCPEndpoint,
    RetrievalCall,
    ScriptCall,
    ToolCall,
    ToolSpec,
)
from harness.world.failures import KINDS, to_exception
from harness.world.faults import Faults
from harness.world.network import NetworkClosed, closed_network
from harness.world.scripted import ScriptedWorld
from harness.world.spec import Entry, ErrorAnswer, FaultSpec, MCPServerSpec, Stub, WorldSpec


def llm(node: Any = "n", model: Any = "gpt-4o", **more: Any) -> Any:
    return LLMCall(node=node, name=model, messages=(SystemMessage("be kind"), HumanMessage("hello")), **more)


def ask(world: Any, effect: Any, state: Any = None) -> Any:
    return asyncio.run(world.answer(effect, state or {}))


def answers(spec: Any, *effects: Any, state: Any = None) -> Any:
    world = ScriptedWorld(spec)
    return [ask(world, effect, state).value for effect in effects]


def replies(*stubs: Any) -> Any:
    return WorldSpec(llm=tuple(stubs))


def reply(text: Any, **matchers: Any) -> Any:
    return Stub(answer={"reply": text}, **matchers)


# ------------------------------------------------------------ which stub


def test_the_first_stub_with_uses_left_answers() -> None:
    found = answers(replies(reply("a", times=2), reply("b")), llm(), llm(), llm())
    assert [answer.text for answer in found] == ["a", "a", "b"]


def test_a_stub_that_two_threads_ask_for_at_once_answers_one_of_them() -> None:
    """Real tools ask from threads, beside the loop that performs the agent's own effects."""
    world = ScriptedWorld(WorldSpec(tools={"f": Entry(stubs=(Stub(args={"a": 1}, answer={"return": 1}),))}))
    refused: list[UnscriptedCall] = []

    def ask_beside() -> None:
        try:
            ask(world, ToolCall(name="f", args={"a": 1}))
        except UnscriptedCall as error:
            refused.append(error)

    beside = threading.Thread(target=ask_beside)

    class Slow(dict[str, Any]):
        """Arguments, during the comparison of which another thread asks."""

        def get(self, key: str, default: Any = None) -> Any:
            if not beside.ident:
                beside.start()
                beside.join(0.2)
            return super().get(key, default)

    assert ask(world, ToolCall(name="f", args=Slow(a=1))).value == 1
    beside.join()
    assert len(refused) == 1


def test_of_two_threads_that_ask_at_once_one_is_hit_by_the_fault_of_the_second_call() -> None:
    hit: list[bool] = []

    class Slow(FaultSpec):
        """A fault during whose look at the count another thread asks."""

        def __getattribute__(self, name: str) -> Any:
            if name == "nth" and not beside.ident:
                beside.start()
                beside.join(0.2)
            return super().__getattribute__(name)

    faults = Faults(seed=0)
    faults.add([Slow(effect="tool", nth=2, error=ErrorAnswer("timeout"))])

    def ask_and_note() -> None:
        strike = faults.strike(ToolCall(name="f", args={}))
        hit.append(asyncio.run(strike.answer(ToolCall(name="f", args={}), {})) is not None)

    beside = threading.Thread(target=ask_and_note)
    ask_and_note()
    beside.join()
    assert sorted(hit) == [False, True]


@pytest.mark.parametrize(
    ("matchers", "holds"),
    [
        ({"nodes": ("n",)}, True),
        ({"nodes": ("m",)}, False),
        ({"nodes": ("n*",)}, True),
        ({"nodes": ("n", "m")}, False),
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
    world = ScriptedWorld(replies(reply("x", nodes=("inner",)), reply("y", nodes=("outer/inner",))))
    assert ask(world, llm(node="outer/inner")).value.text == "x"
    assert ask(world, llm(node="outer/inner")).value.text == "y"
    assert not world.has_answers([llm(node="inner")], {})


def test_args_match_as_subsets_with_value_matchers() -> None:
    stubs = (
        Stub(times="any", args={"n": {"$gt": 3}}, answer={"return": "big"}),
        Stub(answer={"return": "small"}),
    )
    spec = WorldSpec(tools={"t": Entry(stubs=stubs)})
    calls = [ToolCall(name="t", args={"n": n, "more": True}) for n in (9, 1, 4)]
    assert answers(spec, *calls) == ["big", "small", "big"]


class Watched:
    """A value of which is known how often it was compared."""

    times = 0

    def __init__(self, number: Any) -> None:
        self.number = number

    def __eq__(self, other: Any) -> Any:
        Watched.times += 1
        return self.number == other

    __hash__ = None  # type: ignore[assignment]


def test_a_stub_that_does_not_fit_is_compared_once_and_one_that_is_used_up_no_more() -> None:
    stubs = [Stub(args={"n": Watched(n)}, answer={"return": n}) for n in range(10)]
    calls = [ToolCall(name="t", args={"n": n}) for n in reversed(range(10))]
    Watched.times = 0
    assert answers(WorldSpec(tools={"t": Entry(stubs=tuple(stubs))}), *calls) == list(reversed(range(10)))
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
    spec = WorldSpec(tools={"t": Entry(stubs=(Stub(args={"x": wanted}, answer={"return": 1}),))})
    assert ScriptedWorld(spec).has_answers([ToolCall(name="t", args={"x": given})], {}) is holds


def test_the_args_may_be_one_matcher() -> None:
    spec = WorldSpec(tools={"t": Entry(stubs=(Stub(args={"$contains": "a"}, answer={"return": 1}),))})
    assert ScriptedWorld(spec).has_answers([ToolCall(name="t", args={"a": 1, "$contains": "b"})], {})


def test_a_stub_that_was_used_up_may_be_asked_about_again_after_a_turn_added_others() -> None:
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


NAMED = {
    "tools": ToolCall,
    "handlers": HandlerCall,
    "agents": AgentCall,
    "scripts": ScriptCall,
    "retrieval": RetrievalCall,
}


def world_of(key: str, value: Any) -> WorldSpec:
    """A world with one key."""
    return WorldSpec(**{key: value})


every_named_kind = pytest.mark.parametrize(("key", "effect"), NAMED.items(), ids=NAMED)


@every_named_kind
def test_an_effect_is_known_by_its_alias_where_its_name_is_not(key: Any, effect: Any) -> None:
    def says(text: str) -> Entry:
        said = {"context": text, "sources": []} if key == "retrieval" else text
        return Entry(stubs=(Stub(times="any", answer={"return": said}),))

    def answer(entries: dict[str, Entry]) -> Any:
        (value,) = answers(world_of(key, entries), effect(name="n", alias="a"))
        return value.context if key == "retrieval" else value

    assert answer({"a": says("by alias")}) == "by alias"
    assert answer({"a": says("by alias"), "n": says("by name")}) == "by name"


# ------------------------------------------------------------ whether anything is said


@every_named_kind
@pytest.mark.parametrize(
    "entry", [Entry(real=True), Entry(real="pkg.fn"), Entry(stubs=(Stub(args={"n": 1}),))]
)
def test_a_name_is_answered_for_when_it_has_an_entry_under_name_or_alias(
    key: Any, effect: Any, entry: Any
) -> None:
    world = ScriptedWorld(world_of(key, {"a": entry}))
    assert world.answers_for(effect(name="a"))
    assert world.answers_for(effect(name="n", alias="a"))
    assert not world.answers_for(effect(name="n", real=really))


@pytest.mark.parametrize("effect", [llm(), HTTPCall(name="u"), HumanCall(name="n")], ids=lambda e: e.kind)
def test_a_list_of_stubs_answers_for_its_kind_even_when_it_is_used_up(effect: Any) -> None:
    assert not ScriptedWorld(WorldSpec()).answers_for(effect)
    world = ScriptedWorld(world_of(effect.kind, (Stub(answer={"reply": "x"}),)))
    ask(world, effect)
    assert world.answers_for(effect)


def test_an_mcp_tool_is_answered_for_when_its_server_is_there() -> None:
    world = ScriptedWorld(WorldSpec(mcp={"weather": MCPServerSpec()}))
    for server, expected in {"weather": True, "charts": False}.items():
        call = MCPCall(name="report", endpoint=MCPEndpoint(server, "stdio"))
        assert world.answers_for(call) is expected


def test_asking_whether_anything_is_said_uses_nothing_up() -> None:
    world = ScriptedWorld(replies(reply("a")))
    assert world.answers_for(llm())
    assert ask(world, llm()).value.text == "a"


# ------------------------------------------------------------ what it answers


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"reply": "hi"}, "hi"),
        ({"json": {"a": [1, 2.5, None], "b": "é"}}, '{"a":[1,2.5,null],"b":"é"}'),
        ({"chunks": ["st", "ream"]}, "stream"),
        ({"tool_calls": [{"name": "t", "args": {}}]}, ""),
    ],
)
def test_what_a_model_says(answer: Any, text: Any) -> None:
    assert answers(replies(Stub(answer=answer)), llm())[0].text == text


def test_an_http_answer_has_status_body_and_headers() -> None:
    stub = Stub(method="post", url="https://*/x", answer={"json": {"ok": True}, "headers": {"X-A": 1}})
    call = HTTPCall(name="https://a.example/x", args={"method": "POST"})
    (found,) = answers(WorldSpec(http=(stub,)), call)
    assert (found.status, found.json, found.text, found.headers) == (
        200,
        {"ok": True},
        '{"ok":true}',
        {"x-a": "1"},
    )


def test_people_answer_by_node() -> None:
    spec = WorldSpec(human=(Stub(nodes=("b",), answer={"reply": {"ok": True}}),))
    assert answers(spec, HumanCall(node="b", name="b")) == [{"ok": True}]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_kind_has_a_class_and_a_text(kind: Any) -> None:
    error = to_exception(ErrorAnswer(kind))
    assert isinstance(error, KINDS[kind][0])
    assert str(error) == KINDS[kind][1]
    assert str(to_exception(ErrorAnswer(kind, "mine"))) == "mine"


@pytest.mark.parametrize("name", ["ValueError", "KeyError", "OSError", "TimeoutError", "UnicodeDecodeError"])
def test_an_exception_has_the_built_in_type_and_exactly_the_message(name: Any) -> None:
    error = to_exception(ErrorAnswer("exception", "as written", name))
    assert (type(error).__name__, str(error)) == (name, "as written")


# ------------------------------------------------------------ the real thing


def doubled(n: Any) -> Any:
    return n * 2


def test_a_dotted_path_stands_in_for_a_tool() -> None:
    spec = WorldSpec(tools={"t": Entry(real=f"{__name__}.doubled")})
    assert answers(spec, ToolCall(name="t", args={"n": 4})) == [8]


async def really() -> Any:
    return "really"


def test_local_agents_run_for_real_unless_stubbed_and_tools_only_when_told() -> None:
    assert answers(WorldSpec(), AgentCall(name="a", real=really)) == ["really"]
    assert answers(WorldSpec(tools={"t": Entry(real=True)}), ToolCall(name="t", real=really)) == ["really"]
    with pytest.raises(UnscriptedCall):
        answers(WorldSpec(), ToolCall(name="t", real=really))


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (SystemExit(3), "it called sys.exit(3)"),
        (GeneratorExit("bye"), "it raised GeneratorExit: bye"),
        (KeyboardInterrupt(), "it raised KeyboardInterrupt"),
        (BaseExceptionGroup("two", [KeyboardInterrupt(), ValueError()]), "it raised BaseExceptionGroup: two"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_tool_raises_beside_exceptions_is_its_own_failure(raised: Any, told: Any) -> None:
    async def ends() -> None:
        raise raised

    world = ScriptedWorld(WorldSpec(tools={"t": Entry(real=True)}))
    with pytest.raises(RuntimeError, match=re.escape(told)):
        ask(world, ToolCall(name="t", real=ends))


# ------------------------------------------------------------ nobody answers


def test_an_unscripted_call_shows_the_request_and_why_the_nearest_stub_did_not_match() -> None:
    world = ScriptedWorld(
        replies(reply("far", nodes=("x",), model="y"), reply("near", when='request.prompt == "bye"'))
    )
    with pytest.raises(UnscriptedCall) as caught:
        ask(world, llm())
    text = str(caught.value)
    assert "human: hello" in text
    assert "'near'" in text
    assert 'request.prompt == "bye" is False' in text


def test_an_unscripted_tool_suggests_the_name_that_was_meant() -> None:
    world = ScriptedWorld(WorldSpec(tools={"weather": Entry(stubs=())}))
    with pytest.raises(UnscriptedCall, match="did you mean 'weather'"):
        ask(world, ToolCall(name="wether"))


def test_left_over_stubs_are_told_unless_they_may_be_used_any_number_of_times() -> None:
    world = ScriptedWorld(replies(reply("a"), reply("b", times=3), reply("c", times="any")))
    ask(world, llm())
    ask(world, llm())
    (left,) = world.unused()
    assert "'b'" in left
    assert "used 1 of 3 times" in left


# ------------------------------------------------------------ faults


def struck(fault: Any, count: Any = 6, seed: Any = 0, **effect: Any) -> Any:
    spec = WorldSpec(llm=(reply("hello", times="any"),), faults=(fault,))
    world = ScriptedWorld(spec, seed=seed)
    return [ask(world, llm(**effect)) for _ in range(count)]


OVERLOAD = ErrorAnswer("server_error")


def test_the_nth_and_every_nth_effect_are_hit() -> None:
    assert [bool(a.error) for a in struck(FaultSpec("llm", nth=2, error=OVERLOAD))] == [False, True] + [
        False
    ] * 4
    assert [bool(a.error) for a in struck(FaultSpec("llm", every=3, error=OVERLOAD))] == [
        False,
        False,
        True,
    ] * 2


def test_a_rate_is_drawn_from_the_seed() -> None:
    def hits(seed: Any) -> Any:
        return [bool(a.error) for a in struck(FaultSpec("llm", rate=0.5, error=OVERLOAD), 40, seed)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 5 < sum(hits(1)) < 35


def test_latency_is_added_and_text_is_cut() -> None:
    slow, cut = (
        struck(FaultSpec("llm", nth=1, latency_s=2.5))[0],
        struck(FaultSpec("llm", nth=1, truncate=3))[0],
    )
    assert (slow.latency_s, cut.value.text) == (2.5, "hel")


def test_faults_look_at_kind_node_and_name() -> None:
    assert not any(a.error for a in struck(FaultSpec("tool", nth=1, error=OVERLOAD)))
    assert not any(a.error for a in struck(FaultSpec("llm", node="other", nth=1, error=OVERLOAD)))
    assert any(a.error for a in struck(FaultSpec("llm", node="n", name="gpt*", nth=1, error=OVERLOAD)))


# ------------------------------------------------------------ the network


def test_the_network_is_closed_during_a_scenario_and_open_after_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with closed_network(), pytest.raises(NetworkClosed, match="closed during a scenario"):
            socket.create_connection(address)
        socket.create_connection(address).close()


def test_names_are_not_looked_up_either() -> None:
    with closed_network(), pytest.raises(OSError, match="closed"):
        socket.getaddrinfo("localhost", 80)
