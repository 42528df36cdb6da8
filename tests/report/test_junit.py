"""junit.xml: a test case for each scenario, in the format of build servers."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Span
from harness.report.junit import junit
from harness.report.results import ResultsWriter, line
from harness.scenario.outcome import Observation, Outcome
from tests.report.fixtures import MakeCheck, MakeOutcome


def _suites(*outcomes: Outcome) -> ET.Element:
    return ET.fromstring(b"".join(junit(map(line, outcomes))))


def _case(*outcomes: Outcome) -> ET.Element:
    (case,) = _suites(*outcomes).iter("testcase")
    return case


def _properties(case: ET.Element) -> dict[Any, Any]:
    return {each.get("name"): each.get("value") for each in case.iter("property")}


def test_repeats_are_one_case_with_the_mean_score_the_longest_latency_and_all_tokens(
    outcome: MakeOutcome,
) -> None:
    usage = {"llm_calls": 1, "input_tokens": 12, "output_tokens": 3, "cost": 0.5, "by_model": {}}
    slow = {"total": 2.5, "nodes": {}}
    case = _case(outcome(usage=usage, wall=0.25), outcome("failed", repeat=1, usage=usage, latency=slow))
    assert _properties(case) == {
        "verdict": "failed",
        "score": "0.5",
        "latency": "2.5",
        "input_tokens": "24",
        "output_tokens": "6",
        "cost": "1",
    }
    assert case.get("time") == "0.250"


def test_a_failure_has_its_cause_and_the_line_of_each_check_that_failed(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    check = failed_check("path", "expected b, was c", span=Span("triage.scenario.yaml", 9, 5))
    case = _case(outcome("failed", checks=[check], span=Span("triage.scenario.yaml", 7, 3)))
    (failure,) = case.iter("failure")
    assert (case.get("file"), case.get("line")) == ("triage.scenario.yaml", "7")
    assert (failure.get("message"), failure.get("type")) == ("path", "checks")
    assert "triage.scenario.yaml:9:5: path: expected b, was c" in (failure.text or "")


def test_errors_and_skipped_runs_are_not_failures(outcome: MakeOutcome) -> None:
    error = {"type": "UnscriptedCall", "code": "unscripted-call", "message": "nothing answers llm"}
    suites = _suites(
        outcome("error", error=error, status="failed"), outcome("skipped", scenario="later", reason="not yet")
    )
    (suite,) = suites
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "2", "failures": "0", "errors": "1", "skipped": "1"}
    assert [each.get("message") for each in suites.iter("error")] == ["nothing answers llm"]
    assert [each.get("message") for each in suites.iter("skipped")] == ["not yet"]


def test_incomplete_run_has_properties_with_the_reason(tmp_path: Path, outcome: MakeOutcome) -> None:
    with ResultsWriter(tmp_path) as results:
        results.add(outcome())
        results.finish("interrupted after 1 of 2 runs")
    (suite,) = ET.parse(tmp_path / "junit.xml").getroot()
    said = suite.find("properties")
    assert said is not None
    assert _properties(said) == {"complete": "false", "reason": "interrupted after 1 of 2 runs"}


@given(text=st.text())
def test_any_text_makes_valid_xml(text: str) -> None:
    error = {"type": "E", "code": None, "message": text, "node": None, "where": text}
    observed = Observation(status="failed", error=error)
    broken = Outcome(text, text, "", "", "", observed=observed, verdict="error", score=0.0)
    assert [case.find("error") is not None for case in _suites(broken).iter("testcase")] == [True]
