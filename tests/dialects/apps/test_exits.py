"""What the code of an app raises that is no failure of its own: `sys.exit()` becomes one, a pause does not."""

import pytest

from tests.dialects.apps.conftest import RunApp, error_of

APP = """
import asyncio
import sys
from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    how: str


def plain(state):
    if state["how"] == "plain":
        sys.exit("no more")


async def leave():
    await asyncio.sleep(1)
    sys.exit(4)


async def awaiting(state):
    match state["how"]:
        case "async":
            sys.exit(3)
        case "task":
            await asyncio.create_task(leave())
        case "gather":
            await asyncio.gather(leave(), asyncio.sleep(3))
        case "interrupt":
            raise KeyboardInterrupt
        case "caught":
            try:
                await asyncio.create_task(leave())
            except SystemExit:
                return {"how": "survived"}


builder = StateGraph(State)
builder.add_node("plain", plain)
builder.add_node("awaiting", awaiting)
builder.add_edge(START, "plain")
builder.add_edge("plain", "awaiting")
graph = builder.compile()


def outer(state):
    graph.invoke(state)


outside = StateGraph(State)
outside.add_node("outer", outer)
outside.add_edge(START, "outer")
around = outside.compile()


async def agent(how):
    sys.exit()
"""
WAYS = {
    "plain": ("app.py:graph", "plain", "it called sys.exit('no more')"),
    "async": ("app.py:graph", "awaiting", "it called sys.exit(3)"),
    "task": ("app.py:graph", "awaiting", "it called sys.exit(4)"),
    "gather": ("app.py:graph", "awaiting", "it called sys.exit(4)"),
    "interrupt": ("app.py:graph", "awaiting", "it raised KeyboardInterrupt"),
    "plain, in a graph that a node invokes": ("app.py:around", "outer", "it called sys.exit('no more')"),
    "an agent": ("app.py:agent", "agent", "it called sys.exit(None)"),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_exit_is_a_failure_of_its_node(run_app: RunApp, way: str) -> None:
    manifest, node, message = WAYS[way]
    how = way.partition(",")[0]
    scenarios = f"manifest: {manifest}\nscenarios: [{{name: it, input: {{how: {how}}}}}]"
    outcome = run_app(scenarios, {"app.py": APP})["it"]
    assert outcome.verdict == "failed"
    assert error_of(outcome) == message
    assert outcome.observed.error is not None
    assert outcome.observed.error["node"] == node
    assert outcome.observed.path[-1] == node


def test_an_exit_that_the_app_handles_is_none(run_app: RunApp) -> None:
    scenarios = """
    manifest: app.py:graph
    scenarios: [{name: it, input: {how: caught}, expect: {state: {how: survived}, latency: {total: 1}}}]
    """
    assert run_app(scenarios, {"app.py": APP})["it"].verdict == "passed"


def test_the_pause_of_a_tool_is_no_exception_that_the_app_raised(run_app: RunApp) -> None:
    app = """
        from langchain_core.tools import tool
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph.types import interrupt

        @tool
        def ask(question: str) -> str:
            "Ask."
            return interrupt(question)

        def node(state):
            return {"messages": [ask.invoke({"question": "really?"})]}

        builder = StateGraph(MessagesState)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        graph = builder.compile()
    """
    scenarios = """
    manifest: app.py:graph
    scenarios: [{name: it, input: hi, human: ["yes"], expect: {output: "yes"}}]
    """
    outcome = run_app(scenarios, {"app.py": app})["it"]
    assert outcome.passed, outcome.checks
    assert outcome.observed.raised == []
