"""Graphs inside graphs of an app: `outer/inner` in calls, the trace, coverage and pictures."""

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests.dialects.apps.conftest import RunApp

APP = """
from typing import Literal

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

model = FakeListChatModel(responses=["unused"])


def ask(state):
    return {"messages": [model.invoke(state["messages"][-1:])]}


def again(state) -> Literal["ask", "__end__"]:
    return "__end__"


def asking(name=None):
    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", again)
    return builder.compile(name=name)


searcher, writer, unnamed = asking("searcher"), asking("writer"), asking()


@tool
def search(text: str) -> str:
    "Search."
    return searcher.invoke({"messages": text})["messages"][-1].content


@tool
async def translate(text: str) -> str:
    "Translate."
    return (await unnamed.ainvoke({"messages": text}))["messages"][-1].content


def plan(state) -> Command[Literal["tools", "write"]]:
    calls = [{"name": name, "args": {"text": "x"}, "id": name} for name in ("search", "translate")]
    return Command(goto="tools", update={"messages": [AIMessage("", tool_calls=calls)]})


async def write(state):
    return await writer.ainvoke({"messages": state["messages"][-1:]})


def wander(state):
    return Command(goto="close")


builder = StateGraph(MessagesState)
builder.add_node("plan", plan)
builder.add_node("tools", ToolNode([search, translate]))
builder.add_node("write", write)
builder.add_node("check", asking("checker"))
builder.add_node("wander", wander)
builder.add_node("close", lambda state: {})
builder.add_edge(START, "plan")
builder.add_edge("tools", "write")
builder.add_edge("write", "check")
builder.add_edge("check", "wander")
graph = builder.compile()
"""

SCENARIO = """
- name: all
  input: go
  llm:
    tools/searcher/ask: [found]
    tools/translate/ask: [translated]
    write/writer/ask: [written]
    check/ask: [checked]
"""


def results(folder: Path, manifests: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the scenario with each of these manifests, by file name, and return the folder of the results."""
    (folder / "app.py").write_text(dedent(APP), encoding="utf-8")
    (folder / "langgraph.json").write_text('{"dependencies": ["."], "graphs": {"agent": "./app.py:graph"}}')
    for name, manifest in manifests.items():
        text = f"harness: 1\nmanifest: {manifest}\nscenarios:{SCENARIO}"
        (folder / f"{name}.scenario.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, ["run", "."])
    assert done.exit_code == 0, done.output
    return folder / "reports" / "latest"


def test_calls_name_the_innermost_node_by_the_graphs_around_it(run_app: RunApp) -> None:
    outcome = run_app(f"manifest: app.py:graph\nscenarios:{SCENARIO}", {"app.py": APP})["all"]
    assert outcome.verdict == "passed", outcome
    assert {(call["kind"], call["name"], call["node"]) for call in outcome.observed.calls} == {
        ("tool", "search", "tools"),
        ("llm", "FakeListChatModel", "tools/searcher/ask"),  # the graph of a tool has its own name
        ("tool", "translate", "tools"),
        ("llm", "FakeListChatModel", "tools/translate/ask"),  # or, without one, that of the tool
        ("llm", "FakeListChatModel", "write/writer/ask"),  # a graph that a node invokes
        ("llm", "FakeListChatModel", "check/ask"),  # a graph that is the node
    }


def test_routes_have_the_label_of_their_condition_at_any_depth(run_app: RunApp) -> None:
    outcome = run_app(f"manifest: app.py:graph\nscenarios:{SCENARIO}", {"app.py": APP})["all"]
    assert outcome.coverage["branches"] == [
        "check/ask -> check [again]",
        "plan -> tools [Command]",
        "tools/searcher/ask -> tools [again]",
        "tools/translate/ask -> tools [again]",
        "wander -> close [Command]",
        "write/writer/ask -> write [again]",
    ]


def test_coverage_has_what_the_picture_shows_and_marks_what_only_a_run_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = json.loads(
        (results(tmp_path, {"one": "app.py:graph"}, monkeypatch) / "summary.json").read_text()
    )
    [found] = summary["coverage"].values()
    assert found["nodes"]["missing"] == []
    assert found["nodes"]["dynamic"] == ["tools/searcher/ask", "tools/translate/ask"]
    assert found["edges"]["missing"] == [
        ["check/ask", "check/ask"],
        ["plan", "write"],
        ["wander", "__end__"],  # it seems to be the last one
        ["write/writer/ask", "write/writer/ask"],
    ]
    assert ["wander", "close"] in found["edges"]["dynamic"]
    assert found["branches"]["missing"] == [
        "check/ask -> check/ask [again]",
        "plan -> write [Command]",
        "write/writer/ask -> write/writer/ask [again]",
    ]
    printed = CliRunner().invoke(cli, ["summary", "reports/latest", "--coverage"]).output
    assert "dynamic: node tools/searcher/ask" in printed


def test_coverage_of_a_function_begins_with_its_start(run_app: RunApp) -> None:
    app = """
        from langgraph.func import entrypoint, task

        @task
        def part(text):
            return text

        @entrypoint()
        def whole(text):
            return part(text).result()
    """
    (outcome,) = run_app(
        "manifest: app.py:whole\nscenarios: [{name: it, input: hi}]", {"app.py": app}
    ).values()
    assert outcome.coverage["edges"] == [["__start__", "whole"], ["whole", "__end__"]]
    assert outcome.coverage["nodes"] == ["part", "whole"]


def test_the_report_draws_what_only_a_run_reaches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (results(tmp_path, {"one": "app.py:graph"}, monkeypatch) / "report.html").read_text("utf-8")
    assert '"text":"tools/searcher/ask","captions":["dynamic"]' in page.replace(" ", "")


def test_coverage_lists_an_app_once_however_manifests_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = {"folder": ".", "file": "langgraph.json", "object": "app.py:graph", "module": "app:graph"}
    run = results(tmp_path, forms, monkeypatch)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["total"]["passed"] == 4
    assert len(summary["coverage"]) == len(summary["latency_by_node"]) == 1


def test_the_picture_has_the_graphs_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.py").write_text(dedent(APP), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    drawn = CliRunner().invoke(cli, ["show", "app.py:graph"]).output
    assert "check  [langgraph]\n├─▶ wander\n└─▶ check/ask" in drawn
    assert "write/writer/ask  [langgraph]\n" in drawn
    assert "─ again ─▶ write  (back)" in drawn


def test_of_a_failed_run_only_names_that_cannot_exist_are_warnings(run_app: RunApp) -> None:
    scenario = """
        manifest: app.py:graph
        scenarios:
          - name: it
            input: go
            tools: {translte: {return: x}}
            llm:
              tols/searcher/ask: [this cannot be]
              write/other/ask: [this may be]
              other: [this, too]
            expect: {status: failed}
    """
    outcome = run_app(scenario, {"app.py": APP})["it"]
    assert outcome.observed.status == "failed"
    [warning] = outcome.observed.warnings
    assert "llm names 'tols/searcher/ask', but 'LangGraph' has no such node (did you mean" in warning


def test_names_that_a_run_did_not_show_are_warnings(run_app: RunApp) -> None:
    more = "    check/other: [unused]\n  tools: {translte: {return: x}}\n  allow_unused: true\n"
    outcome = run_app(f"manifest: app.py:graph\nscenarios:{SCENARIO}{more}", {"app.py": APP})["all"]
    assert outcome.observed.status == "completed"
    named = [each for each in outcome.observed.warnings if "has no such" in each]
    assert [each.partition(", but")[0].rpartition(": ")[2] for each in named] == [
        "llm names 'check/other'",
        "tools names 'translte'",
    ]
