"""Scenarios and outcomes travel between processes: `harness run -j` sends the one and gets back the other."""

from __future__ import annotations

import pickle
from pathlib import Path

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

MANIFEST = Path(__file__).parents[2] / "benchmarks" / "manifests" / "triage.yaml"

SCENARIOS = f"""\
harness: 1
manifest: {MANIFEST}
scenarios:
  - name: one
    input: I was charged twice
    llm: {{classify: ['{{"intent": "billing"}}'], answer: [{{reply: your refund, latency: 2}}]}}
    expect: {{output: {{$contains: refund}}, checks: [{{that: latency.total == 2.0}}]}}
  - name: two
    turns: [{{expect: {{status: failed}}}}, {{resume: null}}]
    tools: {{t: {{return: [1]}}}}
    mcp: {{s: {{tools: [{{name: t}}]}}}}
    faults: [{{effect: llm, nth: 1, error: timeout}}]
"""


def test_a_scenario_is_the_same_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "a.scenario.yaml"
    file.write_text(SCENARIOS)
    scenarios = load_file(file).scenarios
    assert pickle.loads(pickle.dumps(scenarios)) == scenarios


def test_an_outcome_is_the_same_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "a.scenario.yaml"
    file.write_text(SCENARIOS)
    outcomes = [outcome for one in load_file(file).scenarios for outcome in run_scenario(one)]
    assert outcomes[0].verdict == "passed"
    assert pickle.loads(pickle.dumps(outcomes)) == outcomes
