"""A run does not affect the next one, and every failure is reported, in the same way on every rerun."""

import os
import textwrap
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

MANIFEST = """\
manifest_version: 1
default_llm: {id: m}
llms: [{id: m, version: "1.0.0", provider: openai, model_name: gpt-4o}]
tools: [{id: keep, version: "1.0.0", import_path: parts.keep}]
hooks: HOOKS
agents:
  bot:
    state:
      fields:
        - {name: messages, type: list, default: []}
        - {name: info, type: dict, default: {n: 0}}
        - {name: seen, type: int, default: 0}
        - {name: a, type: str}
        - {name: b, type: str}
    graph:
"""

PARTS = '''
import asyncio
import sys

from sherma.hooks import BaseHookExecutor

ROWS = []


def keep(row: int) -> list:
    """Keep a row."""
    ROWS.append(row)
    return ROWS


class Counts(BaseHookExecutor):
    async def node_execute(self, ctx):
        info, metadata = ctx.state["info"], ctx.node_context.node_def.args.metadata
        info["n"] += 1
        metadata["runs"] = metadata.get("runs", 0) + 1
        ctx.result = {"info": info, "seen": metadata["runs"]}
        return ctx


class Asks(BaseHookExecutor):
    async def node_execute(self, ctx):
        answer = await ctx.registries.chat_models["m"].ainvoke("hello")
        ctx.result = {"messages": [answer]}
        return ctx


class Absorbs(BaseHookExecutor):
    async def node_execute(self, ctx):
        try:
            await ctx.registries.chat_models["m"].ainvoke("hello")
        except Exception:
            await asyncio.sleep(100)
        return None


class Exits(BaseHookExecutor):
    async def node_enter(self, ctx):
        sys.exit(7)
'''

ONE_NODE = """\
      entry_point: it
      nodes: [{name: it, type: custom, args: {metadata: {}}}]
      edges: []
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def go(scenario: Any, hooks: Any = "[]", graph: Any = ONE_NODE) -> Any:
        (tmp_path / "bot.yaml").write_text(MANIFEST.replace("HOOKS", hooks) + graph, encoding="utf-8")
        (tmp_path / "parts.py").write_text(PARTS, encoding="utf-8")
        file = tmp_path / "bot.scenario.yaml"
        text = "harness: 1\nmanifest: bot.yaml\nscenarios:\n  - name: it\n" + textwrap.indent(
            scenario, "    "
        )
        file.write_text(text, encoding="utf-8")
        [scenario] = load_file(file).scenarios
        return run_scenario(scenario)

    return go


def test_changes_that_a_hook_makes_are_undone_before_the_next_run(run: Any) -> None:
    first, second = run("input: {info: {n: 0}}\nrepeat: 2\n", "[{import_path: parts.Counts}]")
    assert first.observed.state["info"] == second.observed.state["info"] == {"n": 1}
    assert first.observed.state["seen"] == second.observed.state["seen"] == 1


def test_ids_of_model_answers_to_a_hook_come_from_the_seed(run: Any) -> None:
    scenario = "input: hi\nllm: [{reply: hello, times: any}]\n"
    first, second = (run(scenario, "[{import_path: parts.Asks}]")[0] for _ in range(2))
    assert first.observed.state == second.observed.state
    assert first.digest == second.digest


def test_an_unanswered_call_ends_the_run_even_if_a_hook_catches_it_and_waits(run: Any) -> None:
    [outcome] = run("expect: {status: timeout}\n", "[{import_path: parts.Absorbs}]")
    assert outcome.verdict == "error"
    assert outcome.observed.error["type"] == "UnscriptedCall"
    assert outcome.observed.error["node"] == "it"


def test_a_hook_that_calls_sys_exit_fails_its_node_but_does_not_exit(run: Any) -> None:
    [outcome] = run("input: hi\n", "[{import_path: parts.Exits}]")
    assert "sys.exit(7)" in outcome.observed.error["message"]


PARALLEL = """\
      nodes:
        - {name: left, type: set_state, args: {values: {a: state.gone_left}}}
        - {name: right, type: set_state, args: {values: {b: state.gone_right}}}
      edges: [{source: __start__, target: left}, {source: __start__, target: right}]
"""


def test_of_parallel_nodes_that_fail_the_first_is_always_reported(run: Any) -> None:
    errors = [run("input: hi\n", graph=PARALLEL)[0].observed.error for _ in range(12)]
    assert {error["node"] for error in errors} == {"left"}
    assert all("gone_left" in error["message"] for error in errors)


def test_the_digest_depends_on_the_answers_of_the_model(run: Any) -> None:
    digests = {
        run(f"input: hi\nllm: [{{reply: {word}}}]\n", "[{import_path: parts.Asks}]")[0].digest
        for word in "ab"
    }
    assert len(digests) == 2


TOOLS = """\
      entry_point: ask
      nodes:
        - name: ask
          type: call_llm
          args:
            prompt: [{role: messages, content: state.messages}]
            tools: [{id: keep}]
            state_updates: {messages: '[llm_response]'}
      edges: []
"""


def test_a_real_tool_that_cannot_be_imported_is_an_error_of_the_scenario(run: Any) -> None:
    scenario = (
        "input: hi\ntools: {keep: {real: parts.kepe}}\nllm: [{tool_calls: [{name: keep, args: {row: 1}}]}]\n"
    )
    [outcome] = run(scenario, graph=TOOLS)
    assert outcome.verdict == "error"
    assert "parts.kepe" in outcome.observed.error["message"]
    assert "keep" in outcome.observed.error["message"]


def test_a_real_tool_of_a_turn_overrides_the_stubs_of_the_scenario(run: Any) -> None:
    scenario = textwrap.dedent(
        """\
        tools: {keep: {return: stubbed}}
        turns:
          - {input: one, llm: [{tool_calls: [{name: keep, args: {row: 1}}]}, done]}
          - {input: two, tools: {keep: real}, llm: [{tool_calls: [{name: keep, args: {row: 2}}]}, done]}
          - input: three
            tools: {keep: [{times: 1, return: once}]}
            llm: [{tool_calls: [{name: keep, args: {row: 3}}]}, {tool_calls: [{name: keep, args: {row: 4}}]}, done]
        """
    )
    [outcome] = run(scenario, graph=TOOLS)
    answers = [
        message["content"] for message in outcome.observed.state["messages"] if message["type"] == "tool"
    ]
    assert answers == ["stubbed", "[2]", "once", "[2, 4]"]


def test_faults_of_a_turn_count_calls_from_that_turn_on(run: Any) -> None:
    scenario = textwrap.dedent(
        """\
        llm: [{reply: fine, times: any}]
        turns:
          - {input: one}
          - {input: two, faults: [{effect: llm, nth: 1, error: server_error}], expect: {status: failed}}
        expect: {status: failed}
        """
    )
    [outcome] = run(scenario, graph=TOOLS)
    assert outcome.passed, outcome.checks


def test_the_call_of_a_judge_is_not_counted_in_the_run(run: Any) -> None:
    scenario = textwrap.dedent(
        """\
        llm:
          ask: [fine]
          judge: [{json: {grade: 0.9, reason: polite}, latency: 3}]
        input: hi
        expect:
          judge: [{rubric: It is polite., model: gpt-4o, threshold: 0.8}]
          call_counts: {llm: 1}
          usage: {llm_calls: 1}
          checks: [{that: latency.total == 0.0}]
        """
    )
    [outcome] = run(scenario, graph=TOOLS)
    assert outcome.passed, [check for check in outcome.checks if not check.passed]


def test_a_refused_connection_is_a_warning_even_if_the_tool_catches_it(run: Any, tmp_path: Path) -> None:
    scenario = "input: hi\ntools: {keep: {real: calls.home}}\n"
    scenario += "llm: [{tool_calls: [{name: keep, args: {row: 1}}]}, done]\n"
    (tmp_path / "calls.py").write_text(
        "import os, socket\n\n\ndef home(row):\n"
        "    os.chdir('/')\n"
        "    try:\n        socket.create_connection(('127.0.0.1', 9))\n"
        "    except OSError:\n        return 'never mind'\n"
    )
    here = os.getcwd()
    [outcome] = run(scenario, graph=TOOLS)
    assert outcome.passed
    assert any("127.0.0.1" in warning for warning in outcome.observed.warnings)
    assert os.getcwd() == here
