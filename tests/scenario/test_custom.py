"""`expect.custom`: Python functions that judge a run. Source: docs/scenario-format.md, "custom"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest

from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario

MANIFEST = """\
manifest_version: 1
prompts: [{id: greet, version: "1", instructions: Greet the guest.}]
llms: [{id: fast, version: "1", provider: openai, model_name: gpt-4o}]
default_llm: {id: fast}
agents:
  desk:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: greet
      nodes:
        - name: greet
          type: call_llm
          args:
            prompt: [{role: system, content: 'prompts["greet"]["instructions"]'}]
            state_updates: {messages: "[llm_response]"}
      edges: []
"""

Judge = Callable[..., Outcome]


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Runs a scenario whose model says "Welcome", judged by the function `check` that the code defines."""

    def run(code: str, item: str = "", reply: str = "[Welcome]") -> Outcome:
        folder = Path(mkdtemp(dir=tmp_path))  # modules are imported once from each
        (folder / "agent.yaml").write_text(MANIFEST)
        (folder / "own_checks.py").write_text(code)
        file = folder / "a.scenario.yaml"
        file.write_text(
            "harness: 1\nmanifest: agent.yaml\nscenarios:\n  - name: x\n    seed: 7\n    input: hello\n"
            f"    llm: {{greet: {reply}}}\n"
            f"    expect: {{custom: [{{call: own_checks.check{item}}}]}}\n"
        )
        (scenario,) = load_file(file).scenarios
        (outcome,) = run_scenario(scenario)
        return outcome

    return run


@pytest.mark.parametrize(
    ("given", "score", "message"),
    [
        ("True", 1, ""),
        ("False", 0, "own_checks.check gave 0"),
        ("1", 1, ""),
        ("0.25", 0.25, "own_checks.check gave 0.25"),
        ("(0.5, 'too curt')", 0.5, "too curt"),
        ("(True, 'fine')", 1, "fine"),
    ],
)
def test_it_gives_a_bool_a_number_or_one_with_a_reason(
    judged: Judge, given: str, score: float, message: str
) -> None:
    outcome = judged(f"def check(run): return {given}")
    (check,) = [check for check in outcome.checks if check.name == "custom[0]"]
    assert (check.score, check.message, check.broken) == (score, message, False)
    assert outcome.verdict == ("passed" if score == 1 else "failed")
    assert outcome.score == score


@pytest.mark.parametrize(
    "given", ["3", "-0.1", "'yes'", "None", "[]", "(1, 2)", "(1, 'a', 'b')", "float('nan')"]
)
def test_anything_else_cannot_be_judged(judged: Judge, given: str) -> None:
    outcome = judged(f"def check(run): return {given}")
    assert outcome.verdict == "error"
    assert "gives a bool, a number from 0 to 1, or (number, reason)" in outcome.checks[-1].message


def test_it_sees_what_a_line_of_results_has(judged: Judge) -> None:
    outcome = judged(
        """
def check(run):
    assert (run.scenario, run.seed, run.status, run["status"]) == ("x", 7, "completed", "completed")
    assert run.suite.endswith("a.scenario.yaml")
    assert run.path == ["greet"] and run.visits == {"greet": 1} and run.error is None
    assert run.output == "Welcome" and run.state["messages"][-1]["content"] == "Welcome"
    assert [call["name"] for call in run.calls] == ["gpt-4o"] and run.usage["llm_calls"] == 1
    assert run.routes == [["__start__", "greet"], ["greet", "__end__"]]
    return True
"""
    )
    assert outcome.passed, outcome.checks[-1].message


def test_it_can_change_nothing(judged: Judge) -> None:
    code = "def check(run):\n    run.calls.clear(); run.state['messages'] = []\n    run.output = 'other'"
    outcome = judged(code)
    assert outcome.verdict == "error"
    assert "cannot assign to field 'output'" in outcome.checks[-1].message
    assert outcome.observed.calls
    assert outcome.observed.state["messages"]


def test_it_is_given_its_arguments_and_may_be_async(judged: Judge) -> None:
    code = "async def check(run, least): return len(run.output) >= least"
    assert judged(code, ", args: {least: 3}").passed
    assert judged(code, ", args: {least: 30}").verdict == "failed"
    assert "unexpected keyword argument 'most'" in judged(code, ", args: {most: 3}").checks[-1].message


def test_its_name_and_weight_are_those_of_the_check(judged: Judge) -> None:
    outcome = judged("def check(run): return False", ", name: polite, weight: 3")
    (check,) = [check for check in outcome.checks if check.name == "polite"]
    assert check.weight == 3
    assert check.span is not None
    assert (check.span.line, check.span.column) == (8, 23)


def test_a_failed_assertion_is_a_failure_and_another_exception_an_error(judged: Judge) -> None:
    failed = judged("def check(run):\n    assert run.output == 'Bye', 'not a farewell'")
    assert failed.verdict == "failed"
    assert "not a farewell" in failed.checks[-1].message
    broken = judged("def check(run):\n    return run.output['text']")
    assert broken.verdict == "error"
    assert "raised TypeError" in broken.checks[-1].message
    assert "own_checks.py:2" in broken.checks[-1].message


def test_a_function_that_is_not_there_is_told_with_the_nearest(judged: Judge) -> None:
    outcome = judged("def chek(run): return True")
    assert outcome.verdict == "error"
    assert "did you mean 'chek'?" in outcome.checks[-1].message


def test_a_failed_run_is_judged_too(judged: Judge) -> None:
    code = "def check(run): return run.status == 'failed' and run.error['type'] == 'AuthenticationError'"
    outcome = judged(code, reply="[{error: auth}]")
    assert outcome.checks[-1].score == 1
