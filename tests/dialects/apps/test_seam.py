"""What is expected of functions that are not public, of LangGraph, LangChain and the SDK of MCP.

These tests run on every version of `make oldest`, and on the newest. If one fails with a new version, something that
the native scheduler relies on has changed.
"""

import asyncio
import importlib
import json
import operator
import subprocess
import sys
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.tools import BaseTool, tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send

from harness.engine.versions import RUN_TASK, runner
from tests.dialects.apps.conftest import RunApp


class State(TypedDict, total=False):
    seen: Annotated[list[str], operator.add]


def graph_of(*nodes: Any, **named: Any) -> Any:
    """Return a graph that runs nodes one after the other."""
    builder: Any = StateGraph(State)
    names: list[str] = []
    for name, node in [*((each.__name__, each) for each in nodes), *named.items()]:
        builder.add_node(name, node)
        builder.add_edge(names[-1] if names else START, name)
        names.append(name)
    return builder.compile()


def leaf(state: State) -> State:
    return {"seen": ["leaf"]}


async def leaf_async(state: State) -> State:
    return {"seen": ["leaf_async"]}


INNER = graph_of(leaf)


@tool
def ask_graph(question: str) -> str:
    """Ask a graph."""
    return str(INNER.invoke({"seen": []})["seen"])


def calls_graph(state: State) -> State:
    return {"seen": INNER.invoke({"seen": []})["seen"]}


async def awaits_graph(state: State) -> State:
    return {"seen": (await graph_of(leaf_async).ainvoke({"seen": []}))["seen"]}


def calls_tool(state: State) -> State:
    return {"seen": [ask_graph.invoke({"question": "?"})]}


def goes_on(state: State) -> Any:
    return Command(
        update={"seen": ["goes_on"]}, goto=[Send("leaf", {"seen": []}), Send("leaf", {"seen": []})]
    )


@task
def job(number: int) -> int:
    return number


@entrypoint()
def jobs(count: int) -> list[int]:
    return [each.result() for each in [job(number) for number in range(count)]]


def sends() -> Any:
    builder: Any = StateGraph(State)
    builder.add_node(goes_on)
    builder.add_node(leaf)
    builder.add_edge(START, "goes_on")
    return builder.compile()


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that pass through the functions that the native scheduler wraps."""
    found: list[Any] = []
    module = runner()
    blocking, awaiting = (getattr(module, name) for name in RUN_TASK)

    def run(given: Any, *args: Any, **options: Any) -> Any:
        found.append(given)
        return blocking(given, *args, **options)

    async def arun(given: Any, *args: Any, **options: Any) -> Any:
        found.append(given)
        return await awaiting(given, *args, **options)

    for name, function in zip(RUN_TASK, (run, arun), strict=True):
        monkeypatch.setattr(module, name, function)
    return found


EVERY_DEPTH = [
    ("a node", graph_of(leaf), ["leaf"], False),
    ("a graph as a node", graph_of(outer=INNER), ["outer", "leaf"], False),
    ("a graph that a node invokes", graph_of(calls_graph), ["calls_graph", "leaf"], False),
    ("a graph that a node awaits", graph_of(awaits_graph), ["awaits_graph", "leaf_async"], True),
    ("a graph that a tool invokes", graph_of(calls_tool), ["calls_tool", "leaf"], False),
    ("nodes that a Send starts", sends(), ["goes_on", "leaf", "leaf"], False),
]


@pytest.mark.parametrize(
    ("graph", "names", "only_async"),
    [each[1:] for each in EVERY_DEPTH],
    ids=[each[0] for each in EVERY_DEPTH],
)
def test_every_task_at_any_depth_passes_through_the_runner(
    tasks: list[Any], graph: Any, names: list[str], only_async: bool
) -> None:
    asyncio.run(graph.ainvoke({"seen": []}))
    assert [each.name for each in tasks if each.name != START] == names
    if not only_async:
        tasks.clear()
        graph.invoke({"seen": []})
        assert [each.name for each in tasks if each.name != START] == names


def test_every_task_of_a_function_passes_through_the_runner(tasks: list[Any]) -> None:
    jobs.invoke(2)
    assert sorted(each.name for each in tasks) == ["job", "job", "jobs"]
    kinds = {each.name: (each.path[0], each.path[-1]) for each in tasks}
    assert kinds["job"] == ("__pregel_push", True)
    assert kinds["jobs"][0] != "__pregel_push"


def test_a_task_has_what_a_visit_reads_from_it(tasks: list[Any]) -> None:
    sends().invoke({"seen": ["before"]})
    first = next(each for each in tasks if each.name == "goes_on")
    assert first.input == {"seen": ["before"]}
    assert first.config["metadata"]["langgraph_step"] == 1
    assert ("seen", ["goes_on"]) in first.writes
    assert [value.node for _, value in first.writes if isinstance(value, Send)] == ["leaf", "leaf"]
    assert len({each.id for each in tasks}) == len(tasks)
    assert [each.path[-1] for each in tasks if each.name == "leaf"] == [False, False]
    tasks.clear()
    graph_of(leaf, second=leaf).invoke({"seen": []})
    writes = [channel for each in tasks if each.name == "leaf" for channel, _ in each.writes]
    assert "branch:to:second" in writes


PARAMETERS = [
    (BaseTool.run, ["tool_input"]),
    (BaseTool.arun, ["tool_input"]),
    (BaseTool._parse_input, ["tool_input"]),
    (BaseTool._run, []),
    (BaseTool._arun, []),
    (BaseChatModel._generate_with_cache, ["messages"]),
    (BaseChatModel._agenerate_with_cache, ["messages"]),
    (BaseChatModel.stream, ["input"]),
    (BaseChatModel.astream, ["input"]),
    (BaseChatModel._generate, ["messages"]),
    (BaseChatModel._agenerate, ["messages"]),
    (BaseChatModel._stream, ["messages"]),
    (BaseChatModel._astream, ["messages"]),
    (BaseChatModel._get_ls_params, []),
]


@pytest.mark.parametrize(
    ("function", "first"), PARAMETERS, ids=lambda each: getattr(each, "__qualname__", "")
)
def test_the_functions_of_langchain_that_are_wrapped_take_these_parameters(
    function: Any, first: list[str]
) -> None:
    assert list(signature(function).parameters)[1 : 1 + len(first)] == first


def test_a_node_for_tools_checks_every_call() -> None:
    from langgraph.prebuilt import ToolNode

    node: Any = ToolNode([ask_graph])
    assert node._validate_tool_call({"name": "ask_graph", "args": {}, "id": "1", "type": "tool_call"}) is None
    refused = node._validate_tool_call({"name": "other", "args": {}, "id": "1", "type": "tool_call"})
    assert "other is not a valid tool" in refused.content
    assert list(node.tools_by_name) == ["ask_graph"]


def test_a_graph_has_what_its_description_reads() -> None:
    graph = sends()
    assert graph.copy({"checkpointer": None}).checkpointer is None
    assert graph.stream_channels_asis == ["seen"]
    assert graph.output_channels == ["seen"]
    assert graph.interrupt_before_nodes == graph.interrupt_after_nodes == []
    assert not graph.builder.branches
    assert set(graph.builder.nodes) == {"goes_on", "leaf"}
    assert [name for name, _ in graph_of(outer=INNER).get_subgraphs()] == ["outer"]
    assert getattr(jobs, "builder", None) is None


@pytest.mark.skipif(find_spec("mcp") is None, reason="the SDK of MCP is not installed")
def test_the_sdk_of_mcp_has_its_transports_and_streams_in_memory() -> None:
    for module, names in {
        "mcp.client.stdio": ["stdio_client"],
        "mcp.client.sse": ["sse_client"],
        "mcp.client.streamable_http": ["streamablehttp_client", "streamable_http_client"],
        "mcp.shared.memory": ["create_client_server_memory_streams"],
    }.items():
        assert [name for name in names if hasattr(importlib.import_module(module), name)], module


@pytest.mark.skipif(
    find_spec("langchain_mcp_adapters") is None, reason="langchain-mcp-adapters is not installed"
)
def test_the_mcp_client_of_langchain_passes_on_the_name_of_a_server() -> None:
    client: Any = importlib.import_module("langchain_mcp_adapters.client")
    assert list(signature(client.MultiServerMCPClient.session).parameters)[:2] == ["self", "server_name"]
    assert "connection" in signature(client.load_mcp_tools).parameters


ASKING = {
    "app.py": """
        from langchain_openai import ChatOpenAI
        from langgraph.graph import MessagesState, START, StateGraph
        from langgraph.types import interrupt


        async def think(state):
            return {"messages": [await ChatOpenAI(model="gpt-4o").ainvoke(state["messages"])]}


        def ask(state):
            return {"messages": [("user", interrupt("who?"))]}


        builder = StateGraph(MessagesState)
        builder.add_node(think)
        builder.add_node(ask)
        builder.add_edge(START, "think")
        builder.add_edge("think", "ask")
        graph = builder.compile()
    """
}
SCENARIO = """
    manifest: app.py:graph
    scenarios:
      - {name: it, input: hi, llm: [hello], human: [Ada], expect: {output: Ada, calls: [{llm: gpt-4o}]}}
      - {name: nothing answers, input: hi}
"""


CHANGED = """
import sys
from harness.cli.entry import main
from harness.engine.versions import RUN_TASK, runner

setattr(runner(), RUN_TASK[0], lambda part, other: None)
assert runner() is None
sys.argv = ["harness", "run", "app.scenario.yaml", "--json", "lines.jsonl"]
main()
"""


def test_without_these_functions_an_app_runs_and_its_calls_have_no_node(
    run_app: RunApp, tmp_path: Path
) -> None:
    known = run_app(SCENARIO, ASKING)
    assert known["it"].passed
    assert known["it"].observed.path == ["think", "ask"]
    assert known["it"].observed.calls[0]["node"] == "think"

    # In a process of its own, since they are wrapped once in a process.
    subprocess.run([sys.executable, "-c", CHANGED], cwd=tmp_path, capture_output=True, check=False)
    lines = (tmp_path / "lines.jsonl").read_text(encoding="utf-8").splitlines()
    unknown, unanswered = map(json.loads, lines)
    assert unknown["verdict"] == "passed", unknown
    assert unknown["path"] == []
    assert unknown["calls"][0]["node"] == ""
    assert ["which node runs" in each for each in unknown["warnings"]] == [True]
    assert "nothing answers the call of model 'gpt-4o'" in unanswered["error"]["message"]
