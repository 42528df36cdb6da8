"""The text of failed runs: unanswered pauses, and tools without a function."""

from pathlib import Path
from typing import Any

import pytest

from harness.report.failure import failure_text
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from tests.manifests import CALLS_TOOL

ASKING = """\
manifest_version: 1
agents:
  asking:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: fork
      nodes:
        - {name: fork, type: set_state, args: {values: {messages: '[]'}}}
        - {name: ada, type: interrupt, args: {value: '{"question": "Agreed?"}'}}
        - {name: bob, type: interrupt, args: {value: '"Really?"'}}
        - {name: quick, type: set_state, args: {values: {messages: '[]'}}}
      edges: [EDGES]
"""

TOOL = CALLS_TOOL.replace("TOOL", "{component_type: ServerTool, name: lookup}")


RETRYING = """\
version: "1.0"
start_at: look
end_at: [look]
nodes:
  - {id: look, handler: look, retry: {max_attempts: 2, backoff: fixed, base_delay_seconds: 1}}
edges: []
"""


@pytest.fixture
def failure_of(tmp_path: Path) -> Any:
    """Return a function that runs a scenario and returns the failure text of its last run."""

    def text(manifest: str, scenario: str) -> str:
        (tmp_path / "m.yaml").write_text(manifest)
        file = tmp_path / "a.scenario.yaml"
        file.write_text(f"harness: 1\nmanifest: m.yaml\nscenarios: [{{name: a, {scenario}}}]\n")
        return failure_text(run_scenario(load_file(file).scenarios[0])[-1])

    return text


def asking(*targets: str, more: str = "") -> str:
    edges = ", ".join(f"{{source: fork, target: {target}}}" for target in targets)
    return ASKING.replace("EDGES", edges + more)


def test_paused_run_names_the_node_its_question_and_how_to_answer(failure_of: Any) -> None:
    assert (
        "expected completed, was interrupted: paused in ada, asking: {question: 'Agreed?'}\n"
        "      answer under `human: {ada: '…'}`, or in a turn with `resume`\n"
    ) in failure_of(asking("ada"), "input: hi")


def test_paused_run_names_only_the_parallel_nodes_that_paused(failure_of: Any) -> None:
    shown = failure_of(asking("quick", "bob", "ada"), "input: hi")
    assert "paused in " in shown
    assert "`human: {ada: '…', bob: '…'}`" in shown or "`human: {bob: '…', ada: '…'}`" in shown
    assert "quick" not in shown.partition("paused in ")[2].partition("\n")[0]


def test_conversation_shows_the_pause_it_ended_with(failure_of: Any) -> None:
    loop = asking("ada", more=", {source: ada, target: bob}")
    shown = failure_of(loop, "turns: [{input: hi, expect: {status: interrupted}}, {resume: 'yes'}]")
    assert "paused in bob, asking: 'Really?'\n" in shown
    assert "paused in ada" not in shown


def test_live_tool_without_a_function_explains_how_to_provide_one(failure_of: Any) -> None:
    shown = failure_of(TOOL, "tools: {lookup: real}")
    assert (
        "`lookup: real` names no function, and the manifest has none: write `lookup: package.module.function`"
    ) in shown
    assert "add `lookup`" not in shown
    assert "add `lookup` under `tools:`" in failure_of(TOOL, "description: nobody answers")


def test_import_error_points_to_the_line_that_names_the_function(failure_of: Any) -> None:
    shown = failure_of(TOOL, "tools: {lookup: no.such}")
    assert "cannot import 'no.such': there is no module 'no'" in shown
    assert "; pythonpath in [tool.harness] adds folders" in shown
    assert "a.scenario.yaml:3:" in shown.partition("    at ")[2].partition("\n")[0]
    assert "                                            ^\n" in shown


def test_exception_of_a_tool_shows_the_frames_of_its_code(failure_of: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def look():\n    return table()['x']\n\ndef table():\n    return {}\n")
    shown = failure_of(TOOL, "tools: {lookup: mine.look}")
    assert "  KeyError in call\n    'x'\n" in shown
    assert "mine.py:2 in look\n      return table()['x']\n" in shown


def test_exception_before_a_successful_retry_is_shown(failure_of: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "tries = []\n\ndef look(state):\n    tries.append(1)\n"
        "    if len(tries) < 2:\n        raise OSError('busy')\n    return {}\n"
    )
    shown = failure_of(RETRYING, "handlers: {look: mine.look}, expect: {never: [look]}")
    assert "  raised OSError: busy  " in shown
    assert "mine.py:6 in look: raise OSError('busy')\n" in shown


def test_an_exceeded_bound_of_the_whole_latency_shows_both_values_and_its_line(failure_of: Any) -> None:
    slow = "human: {ada: [{reply: 'yes', latency: 3}]}"
    shown = failure_of(asking("ada"), f"input: hi, {slow}, expect: {{latency: {{total: 2.5}}}}")
    assert "\n  latency.total (score 0.98)\n    expected at most 2.5 s, was 3 s\n" in shown
    assert "{latency: {total: 2.5}}" in shown
