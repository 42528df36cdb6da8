"""`harness.run`: agents in plain Python: their world, their conversation, what happened, and what is wrong."""

import asyncio
import functools
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict
from unittest.mock import AsyncMock, Mock

import pytest
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt

import harness
from harness.api import keys
from harness.errors import FormatError
from harness.graph.effects import EFFECTS
from harness.scenario.document_expect import Expect as ExpectModel
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
TRIAGE = "agents/triage.yaml"
BILLING = {"classify": [{"json": {"intent": "billing"}}]}
QUESTION = {"classify": {"json": {"intent": "question"}}, "answer": "At nine."}


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]


def ask(state: State) -> dict[str, Any]:
    return {"messages": [ChatOpenAI(model="gpt-4o").invoke(state["messages"])]}


def approve(state: State) -> dict[str, Any]:
    return {"messages": [("ai", f"a person says {interrupt({'question': 'may I?'})}")]}


GRAPH = StateGraph(State)
GRAPH.add_node(ask)
GRAPH.add_node(approve)
GRAPH.add_edge(START, "ask")
GRAPH.add_edge("ask", "approve")
GRAPH.add_edge("approve", END)
APP = GRAPH.compile()


@pytest.fixture(autouse=True)
def tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The agents of the tutorial in the current folder."""
    shutil.copytree(SCENARIOS / "tutorial", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---------------------------------------------------------------- a run


def test_an_agent_runs_in_a_given_world() -> None:
    run = harness.run(TRIAGE, "I was charged twice", llm=BILLING)
    assert (run.status, run.path) == ("completed", ["classify", "open_ticket"])
    assert run.state["intent"] == "billing"
    assert run.visits == {"classify": 1, "open_ticket": 1}
    assert run.output == "I have opened a ticket with our billing team."
    assert repr(run) == f"<Run completed: classify → open_ticket; output={run.output!r}>"
    [call] = run.calls()
    assert (call.kind, call.name, call.node, call.prompt) == (
        "llm",
        "gpt-4o-mini",
        "classify",
        "I was charged twice",
    )


def test_its_values_are_not_written_as_text_to_read_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.authoring.writer.file_text", Mock(side_effect=AssertionError))
    run = harness.run(
        TRIAGE, "hi", llm={"classify": ({"json": {"intent": "question"}},), "answer": "a: 'b'\r\n"}
    )
    assert run.output == "a: 'b'\r\n"
    run.check(path=("classify", "answer"))


def test_two_runs_alike_have_equal_digests() -> None:
    assert len({harness.run(TRIAGE, "hi", llm=QUESTION).digest for _ in range(2)}) == 1


def test_calls_are_found_by_kind_and_name() -> None:
    run = harness.run(TRIAGE, "hi", llm=QUESTION)
    assert [call.node for call in run.calls(llm="gpt-*")] == ["classify", "answer"]
    assert run.calls(tool="*") == []
    with pytest.raises(TypeError, match="no kind 'tools'"):
        run.calls(tools="x")


def test_a_graph_object_runs_as_it_is() -> None:
    run = harness.run(APP, "hello", llm=["Hi."], human=["yes"])
    assert (run.status, run.path, run.output) == ("completed", ["ask", "approve"], "a person says yes")


def test_a_function_is_an_agent() -> None:
    assert harness.run(str.upper, "hello").output == "HELLO"
    assert harness.run(lambda input: input * 2, "ho").output == "hoho"


def test_an_agent_that_fails_raises_nothing() -> None:
    def agent(input: str) -> str:
        raise ValueError("no")

    run = harness.run(agent, "x")
    assert run.status == "failed"
    assert run.error is not None
    assert (run.error["type"], run.error["message"]) == ("ValueError", "no")
    assert "ValueError: no" in repr(run)


def test_a_call_that_nothing_answers_ends_the_run() -> None:
    run = harness.run(TRIAGE, "hi")
    assert run.error is not None
    assert run.error["type"] == "UnscriptedCall"


def test_inside_of_a_running_loop() -> None:
    async def main() -> harness.Run:
        return await harness.arun(APP, "hello", llm=["Hi."], human=["yes"])

    assert asyncio.run(main()).output == "a person says yes"


def test_inside_of_a_running_loop_nothing_blocks() -> None:
    run = harness.run(APP, "hello", llm=["Hi."])

    async def main(use: Callable[[], Any]) -> Any:
        return use()

    for use in (lambda: harness.run(APP, "hello"), lambda: run.resume("yes"), lambda: run.send("x")):
        with pytest.raises(RuntimeError, match=r"await harness\.arun"):
            asyncio.run(main(use))
    assert run.resume("yes").output == "a person says yes"


# ---------------------------------------------------------------- callables


def test_a_callable_answers_in_place_of_a_stub() -> None:
    run = harness.run(
        TRIAGE, "hi", llm={**QUESTION, "answer": lambda request: f"About {request.prompt}: done."}
    )
    assert run.output == "About hi: done."


@pytest.mark.parametrize(("given", "reply", "tools"), [
    ({"reply": "a", "usage": {"input_tokens": 3}}, "a", ()),
    ({"intent": "x"}, '{"intent":"x"}', ()),
    ({"tool_calls": [{"name": "t", "args": {}}]}, "", [{"name": "t", "args": {}}]),
])  # fmt: skip
def test_it_may_give_all_that_a_stub_may(given: Any, reply: str, tools: Any) -> None:
    run = harness.run(APP, "hello", llm=lambda request: given, human=["yes"])
    [call] = run.calls(llm="*")
    assert (call.reply, call.tool_calls) == (reply, tools)


def test_its_exception_is_that_of_the_call() -> None:
    run = harness.run(APP, "hello", llm=Mock(side_effect=TimeoutError("late")))
    assert run.status == "failed"
    assert run.calls(llm="*")[0].reason == "late"


def test_a_mock_is_a_tool() -> None:
    refund = Mock(return_value={"worth": [20]})
    handlers = {name: f"support_tools.{name}" for name in ("unpack", "add_up", "pay")}
    run = harness.run(
        "agents/returns.yaml",
        {"order": "C3", "note": "Too small"},
        llm={"sort": "return"},
        handlers={**handlers, "look_at": lambda given: refund(given["piece"])},
    )
    assert run.status == "interrupted"
    assert [call.args[0] for call in refund.call_args_list] == ["bowl", "jug", "vase"]


async def _said(prefix: str, request: Any) -> str:
    return f"{prefix} {request.prompt}"


class _Speaker:
    async def __call__(self, request: Any) -> str:
        return f"Yes, {request.prompt}"


@pytest.mark.parametrize(
    "answer", [AsyncMock(return_value="Yes, hi"), functools.partial(_said, "Yes,"), _Speaker()]
)
def test_an_async_callable_answers_too(answer: Any) -> None:
    assert harness.run(TRIAGE, "hi", llm={**QUESTION, "answer": answer}).output == "Yes, hi"


def test_an_async_callable_in_place_of_a_stub_cannot_wait() -> None:
    async def answer(request: Any) -> str:
        await asyncio.sleep(1)
        return "late"

    run = harness.run(TRIAGE, "hi", llm={**QUESTION, "answer": answer})
    assert run.error is not None
    assert "give the stub a latency" in run.error["message"]


def test_a_module_is_no_agent() -> None:
    error = harness.run("support_tools.py", "x").error
    assert error is not None
    assert "name the agent in it, such as support_tools.py:graph" in error["message"]


def test_a_model_that_answers_nothing_is_told() -> None:
    run = harness.run(TRIAGE, "hi", llm={"classify": lambda request: None})
    assert run.error is not None
    assert "a callable under `llm:` returned None" in run.error["message"]


def test_an_object_with_an_async_call_is_a_handler() -> None:
    class LookAt:
        async def __call__(self, given: Any) -> Any:
            await asyncio.sleep(5)
            return {"worth": [20]}

    handlers = {name: f"support_tools.{name}" for name in ("unpack", "add_up", "pay")}
    run = harness.run(
        "agents/returns.yaml",
        {"order": "C3", "note": "Too small"},
        llm={"sort": "return"},
        handlers={**handlers, "look_at": LookAt()},
    )
    assert (run.status, run.latency["total"]) == ("interrupted", 5)


# ---------------------------------------------------------------- a conversation


def test_a_conversation_goes_on() -> None:
    answer = Mock(side_effect=lambda request: f"About {request.prompt}")
    first = harness.run(TRIAGE, "one", llm={**QUESTION, "answer": answer})
    second = first.send("two", llm={"classify": {"json": {"intent": "question"}}})
    assert first.path == ["classify", "answer"]
    assert second.path == [*first.path, *first.path]
    assert second.output == "About two"
    assert answer.call_count == 2  # what was answered is not asked again


def test_an_interrupt_is_answered() -> None:
    run = harness.run(APP, "hello", llm=["Hi."])
    assert (run.status, run.interrupts) == ("interrupted", [{"question": "may I?"}])
    assert run.resume("no").output == "a person says no"


def test_a_run_is_one_moment_of_its_conversation() -> None:
    run = harness.run(APP, "hello", llm=["Hi."])
    run.resume("no")
    with pytest.raises(harness.AlreadyContinued, match="went on already"):
        run.resume("yes")
    with pytest.raises(AttributeError):
        run.status = "completed"  # type: ignore[misc]


# ---------------------------------------------------------------- checks


def test_expectations_are_those_of_a_scenario() -> None:
    run = harness.run(TRIAGE, "I was charged twice", llm=BILLING)
    assert (
        run.check(
            state={"intent": "billing"}, path=["classify", "open_ticket"], latency={"nodes": {"classify": 2}}
        )
        is run
    )
    with pytest.raises(AssertionError) as failed:
        run.check(path=["classify", "answer"])
    assert str(failed.value).splitlines()[2:7] == [
        "",
        "  path (score 0.50)",
        "    step 2: expected answer, was open_ticket",
        "      expected: classify → answer",
        "      actual:   classify → open_ticket",
    ][:5] or "step 2: expected answer, was open_ticket" in str(failed.value)


def test_stubs_that_are_left_over_fail_a_check() -> None:
    given: dict[str, Any] = {"classify": [*BILLING["classify"], "more"]}
    with pytest.raises(AssertionError, match="never used: llm: reply: 'more'"):
        harness.run(TRIAGE, "x", llm=given).check()
    harness.run(TRIAGE, "x", llm=given, allow_unused=True).check()


@pytest.mark.parametrize(("use", "told"), [
    (lambda: harness.run(TRIAGE, "x", tols={}), "did you mean 'tools'?"),  # type: ignore[call-arg]
    (lambda: harness.run("agents/triag.yaml", "x"), "no such file"),
    (lambda: harness.run(TRIAGE, "x", llm={"classify": [{"replay": "x"}]}), "did you mean 'reply'?"),
    (lambda: harness.run(TRIAGE, "x", llm=BILLING).check(paths=[]), "did you mean 'path'?"),  # type: ignore[call-arg]
    (lambda: harness.run(TRIAGE, "x", record_mode="onse"), "record_mode: expected one of none, once"),  # type: ignore[arg-type]
    (lambda: harness.run(TRIAGE, "x", llm={"classify": {"reply": len}}), "a callable stands for a whole stub"),
    (lambda: harness.run(TRIAGE, "x", hooks=[len]), "hooks are dotted paths"),  # type: ignore[list-item]
    (lambda: harness.run(TRIAGE, "x", mcp={"a": {"tools": 3}}), "tools: expected a list"),
    (lambda: harness.run(TRIAGE, "x", mcp={"a": len}), "mcp: 'a' is a server, in whose place no callable stands"),  # type: ignore[dict-item]
    (lambda: harness.run(TRIAGE, "x", agent="triag"), "no agent 'triag'\n    did you mean 'triage'?"),
    (lambda: harness.run(APP, "x", agent="app"), "an object is one agent, which has no name"),
    (lambda: harness.run(TRIAGE, "x", llm=["\ud800"]), "a value is no data"),
])  # fmt: skip
def test_wrong_keys_are_refused(use: Callable[[], Any], told: str) -> None:
    with pytest.raises(FormatError) as refused:
        use()
    assert told in str(refused.value)


def test_a_name_that_the_agent_has_not_is_told_without_a_place_in_a_file() -> None:
    error = harness.run(TRIAGE, "x", llm={"clasify": "x"}).error
    assert error is not None
    assert error["message"].startswith("llm names 'clasify', but 'triage' has no such node\n")
    warnings = harness.run(TRIAGE, "x", llm=BILLING, mcp={"a": {"tools": []}}, allow_unused=True).warnings
    assert not any(".yaml:" in each for each in warnings), warnings


@pytest.mark.parametrize(("expect", "told"), [
    ({"output": {"$contains": ""}}, "says nothing of a text"),
    ({"checks": [{"that": "1 == 1"}]}, "reads nothing of the run"),
    ({"visits": {"classify": {"$gte": 0}}}, "cannot fail"),
])  # fmt: skip
def test_what_no_run_could_fail_is_a_warning(expect: Any, told: str) -> None:
    run = harness.run(TRIAGE, "I was charged twice", llm=BILLING)
    with pytest.warns(UserWarning, match=told):
        run.check(**expect)
    with warnings.catch_warnings(action="error"):
        run.check()
        run.check(path=["classify", "open_ticket"])


def test_it_is_told_once() -> None:
    run = harness.run(TRIAGE, "I was charged twice", llm=BILLING)
    with pytest.warns(UserWarning, match="cannot fail") as told:
        run.check(calls=[], visits={"classify": {"$gte": 0}})  # type: ignore[dict-item]  # a matcher
    assert [str(each.message).partition(", ")[0].partition(":")[0] for each in told] == [
        "'calls' lists nothing",
        "visits.classify cannot fail",
    ]


def test_judges_belong_in_scenarios() -> None:
    with pytest.raises(ValueError, match="calls no model"):
        harness.run(TRIAGE, "x", llm=BILLING).check(judge=[])  # type: ignore[call-arg]


# ---------------------------------------------------------------- as a scenario


def test_a_run_is_written_as_a_scenario_that_does_the_same(tmp_path: Path) -> None:
    run = harness.run(TRIAGE, "one", llm={**QUESTION, "answer": lambda request: f"About {request.prompt}"})
    run = run.send("two", llm={"classify": {"json": {"intent": "question"}}})
    file = tmp_path / "made.scenario.yaml"
    file.write_text(run.to_scenario("two questions"))
    [scenario] = load_file(file).scenarios
    [outcome] = run_scenario(scenario)
    assert outcome.passed
    assert outcome.observed.path == run.path
    assert outcome.observed.output == "About two"


def test_what_is_written_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-live-4f8a1c9e2b7d")
    world: Any = {"llm": {**QUESTION, "answer": "tok-73b1c9e2b7d0"}, "env": {"OWN_TOKEN": "tok-73b1c9e2b7d0"}}
    written = harness.run(TRIAGE, "is sk-live-4f8a1c9e2b7d valid?", **world).to_scenario()
    assert 'input: "is <secret:SHOP_API_KEY> valid?"' in written
    assert "4f8a1c9e2b7d" not in written
    assert "73b1c9e2b7d0" not in written


def test_a_conversation_that_waits_is_written_as_one(tmp_path: Path) -> None:
    run = harness.run(APP, "one", llm=["Hi."]).resume("yes").send("two", llm=["Ho."])
    assert run.status == "interrupted"
    file = tmp_path / "made.scenario.yaml"
    file.write_text(run.to_scenario())
    [outcome] = run_scenario(load_file(file).scenarios[0])
    assert outcome.passed, outcome.checks


def test_a_notebook_shows_its_page() -> None:
    page = harness.run(TRIAGE, "I was charged twice", llm=BILLING)._repr_html_()
    assert page.startswith("<iframe sandbox=")
    assert "open_ticket" in page


def test_the_typed_keys_are_those_of_scenarios() -> None:
    assert keys.Expect.__annotations__.keys() == ExpectModel.model_fields.keys() - {"judge", "unused"}
    assert keys.World.__annotations__.keys() == {effect.key for effect in EFFECTS.values()}
