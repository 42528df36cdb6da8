"""Why a run went the way it did: nodes that ran again, left by their fallback or for a default, in every dialect."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.graph.narration import causes
from harness.report.conversation import rows
from harness.report.failure import failure_text
from harness.report.results import line
from harness.scenario.load import load_file
from harness.scenario.outcome import Observation, Outcome
from harness.scenario.run import run_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def run(suite: str, name: str) -> Outcome:
    """Run a scenario of `scenarios/`."""
    [scenario] = [one for one in load_file(SCENARIOS / suite).scenarios if one.name == name]
    return run_scenario(scenario)[-1]


@pytest.mark.parametrize(
    ("suite", "name", "expected"),
    [
        (
            "sherma/errors.scenario.yaml",
            "the last attempt is not followed by a delay and the fallback sees the error",
            [
                "signal ran again because it failed: ValueError: first",
                "signal ran again because it failed: KeyError: second",
                "signal → dark because signal failed: out of oil",
            ],
        ),
        (
            "sherma/hooks.scenario.yaml",
            "retries come before the error hook",
            [
                "fragile went on without an update because a hook took its error: division by zero in 1 / 0",
                "brittle ran again because it failed: request timed out",
            ],
        ),
        (
            "yagra/subgraphs.scenario.yaml",
            "a subgraph node falls back after its last attempt",
            [
                "grow ran again because it failed: the tap is dry  × 2",
                "grow → give_up because grow failed: the tap is dry",
            ],
        ),
        (
            "loki/scripts.scenario.yaml",
            "a script past its timeout goes to fallback",
            ["fire → cold because fire failed: the script timed out after 1 s"],
        ),
        (
            "loki/human.scenario.yaml",
            "answers are compared exactly",
            ["sign → clarify because 'Yes' is none of its routes: yes, no, later"],
        ),
        (
            "loki/human.scenario.yaml",
            "an empty answer takes the default, which is not validated again",
            ["berth used a default because the answer is empty"],
        ),
        (
            "leafmesh/manager.scenario.yaml",
            "after the retries all escalation targets fire",
            [
                "counter ran again because it failed: cannot see  × 2",
                "counter → keeper because counter failed: cannot see",
            ],
        ),
        (
            "leafmesh/human.scenario.yaml",
            "a human who is too late is answered for by fallback_response",
            ["conductor used a default because nobody answered human agent 'conductor' within 60 s"],
        ),
        (
            "agentspec/nodes.scenario.yaml",
            "a FlowNode takes the inner default branch",
            ["check/decide → check/end_refused because 'stolen' is no key of its mapping: free, out"],
        ),
        (
            "langgraph/functional/functional.scenario.yaml",
            "a task is retried as its policy says",
            ["grade ran again because it failed: invalid literal for int() with base 10: 'very good'"],
        ),
        ("agentspec/nodes.scenario.yaml", "two keys of a BranchingNode lead to one branch", []),
    ],
)
def test_a_run_tells_why_it_left_its_way(suite: str, name: str, expected: list[str]) -> None:
    assert run(suite, name).observed.causes == expected


def test_a_failure_shows_the_causes_below_the_path_and_the_results_have_them() -> None:
    outcome = run("loki/scripts.scenario.yaml", "a script past its timeout goes to fallback")
    cause = "fire → cold because fire failed: the script timed out after 1 s"
    assert f"  path   fire → cold\n  why    {cause}\n" in failure_text(outcome)
    assert line(outcome)["causes"] == [cause]
    assert "why" not in failure_text(outcome, "short")


def test_a_cause_is_shortened_and_shown_without_escape_sequences_and_secrets() -> None:
    observed = Observation(causes=["a ran again because it failed: \x1b[31mpa55w0rd " + "x" * 9000])
    observed.rewrite(lambda value: json.loads(json.dumps(value).replace("pa55w0rd", "<key>")))
    outcome = Outcome("s", "n", "m", "sherma", "a", observed, "failed", 0.0)
    shown = failure_text(outcome)
    assert "failed: \\x1b[31m<key> xxx" in shown
    assert len(shown) < 1000
    assert len(line(outcome)["causes"][0]) < 1000


def test_only_the_last_causes_are_kept_in_the_results() -> None:
    observed = Observation(causes=[f"cause {number}" for number in range(100)])
    outcome = Outcome("s", "n", "m", "sherma", "a", observed, "failed", 0.0)
    assert line(outcome)["causes"] == [f"cause {number}" for number in range(80, 100)]
    assert "  why    … 95 earlier\n         cause 95\n" in failure_text(outcome)


def event(event: str, /, **data: Any) -> dict[str, Any]:
    return {"event": event, "at": 0.0, "graph": "", **data}


def test_a_route_that_is_no_fallback_has_no_cause() -> None:
    failed = event("node_error", node="a", type="ValueError", message="it is bad")
    ways = [event("route", source="a", target=to, condition=how) for to, how in (("b", "x"), ("c", None))]
    assert causes([failed, *ways]) == []
    way = event("route", source="a", target="__end__", condition="on error")
    assert causes([failed, way]) == ["a → (end) because a failed: it is bad"]
    assert causes([failed, event("node_start", node="a"), way]) == []


def test_the_conversation_tells_a_cause_unless_the_failed_call_above_says_the_same() -> None:
    call = event("call", call=1, kind="llm", name="m", node="a", request={})
    failed = event(
        "answer", call=1, ok=False, latency=0.0, error={"type": "OSError", "message": "it is down"}
    )
    again, other = (
        event("because", node="a", then="retry", message=why) for why in ("it is down", "no JSON")
    )
    told = [(row.label, row.text) for row in rows([call, failed, again, other], {})]
    assert told[-2:] == [("failed", "OSError: it is down"), ("retry", "no JSON")]


def test_a_failure_that_the_run_passes_over_is_told_unless_a_warning_tells_it() -> None:
    failed = event("node_error", node="a", type="ValueError", message="it is bad")
    ended = event("end", status="completed")
    assert causes([failed, ended]) == ["the run went on after a failed: it is bad"]
    assert causes([failed, event("warning", text="agent 'a' failed: it is bad"), ended]) == []
    assert causes([failed, event("node_start", node="a"), ended]) == []
    assert causes([failed, event("end", status="failed")]) == []
