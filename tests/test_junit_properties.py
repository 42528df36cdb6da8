"""Properties of test cases in JUnit XML: verdict, score, latency, tokens and cost of each scenario."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

SCENARIOS = """
harness: 1
manifest: agent.yaml
scenarios:
  - name: two runs
    repeat: 2
    input: {topic: rain}
    handlers: {say: {return: {text: wet}, latency: 1.5}}
    expect: {state: {text: wet}}
"""

WORKFLOW = """
version: "1.0"
start_at: say
end_at: [say]
nodes: [{id: say, handler: say}]
edges: []
"""


def test_score_latency_and_tokens_are_properties_of_a_test_case(pytester: pytest.Pytester) -> None:
    (pytester.path / "agent.yaml").write_text(WORKFLOW, encoding="utf-8")
    (pytester.path / "rain.scenario.yaml").write_text(SCENARIOS, encoding="utf-8")
    pytester.runpytest("-p", "no:cacheprovider", "--junitxml=junit.xml").assert_outcomes(passed=1)
    found = ET.parse(pytester.path / "junit.xml").iter("property")
    assert {each.get("name"): each.get("value") for each in found} == {
        "verdict": "passed",
        "score": "1",
        "latency": "1.5",
        "input_tokens": "0",
        "output_tokens": "0",
        "cost": "0",
    }


def test_the_report_folder_has_a_junit_file_with_the_same_properties(pytester: pytest.Pytester) -> None:
    (pytester.path / "agent.yaml").write_text(WORKFLOW, encoding="utf-8")
    (pytester.path / "rain.scenario.yaml").write_text(SCENARIOS, encoding="utf-8")
    pytester.runpytest("-p", "no:cacheprovider", "--junitxml=pytest.xml", "--harness-report=out")
    files = (pytester.path / name for name in ("pytest.xml", "out/junit.xml"))
    of_pytest, of_report = ([each.attrib for each in ET.parse(file).iter("property")] for file in files)
    assert of_pytest == of_report != []
