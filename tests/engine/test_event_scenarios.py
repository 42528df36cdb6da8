"""Scenarios of a dialect on the event scheduler: checks, turns, people and coverage work without special code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.scenario.outcome import Observation, Outcome
from harness.scenario.run import run_scenario
from tests.engine.events_dialect import known
from tests.scenario.observed import checked


@pytest.fixture(autouse=True)
def events_dialect(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with known(monkeypatch):
        yield


MANIFEST = """\
events: 1
start: draft
nodes:
  draft: {takes: 1, writes: {long: true}, to: [spell, facts, {shorten: long}]}
  spell: {takes: 2, to: publish}
  facts: {effect: look_up, tries: 2, to: publish}
  shorten: {takes: 9}
  publish: {wait_for: spell AND facts AND boss?, to: boss}
  boss: {asks: Is it good?, to: print}
  print: {}
"""

SCENARIOS = """\
harness: 1
manifest: agent.yaml
defaults:
  tools: {look_up: [{return: fine, latency: 4}]}
scenarios:
  - name: a person is asked while the rest goes on
    human: {boss: [{reply: yes, latency: 3}]}
    expect:
      path: [draft, spell, facts, shorten, publish, boss, print]
      visits: {publish: 1}
      routes: [{from: facts, to: publish}, {from: boss, to: print}]
      latency: {total: 10, nodes: {facts: 4, boss: 0}}
      calls: [{tool: look_up, node: facts}, {human: boss}]
      checks: [{that: 'latency.total == 10.0'}]

  - name: names of a nested list may have started in any order
    human: {boss: [yes]}
    expect: {path: [draft, [shorten, facts, spell], publish, [boss], print]}

  - name: nobody answers, and a turn resumes it
    turns:
      - input: {}
        expect: {status: interrupted, path: [draft, spell, facts, shorten, publish, boss], interrupt: [Is it good?]}
      - resume: "yes"
        expect: {status: completed, path: [print], latency: {total: 0}}

  - name: a failure is tried again, then ends its branch and the run
    tools: {look_up: [{error: {kind: exception, message: gone}, times: 2}]}
    expect:
      status: failed
      path: [draft, spell, facts, shorten, facts]
      never: [publish]
      error: {node: facts, message: gone}
      checks: [{that: 'latency.total == 10.0'}]

  - name: what no stub answers ends the run at once
    tools: {look_up: [{args: {by: nobody}, return: 1, times: any}]}
    expect: {status: failed, error: {type: UnscriptedCall, node: facts}, checks: [{that: 'latency.total == 1.0'}]}
"""


@pytest.fixture
def outcomes(tmp_path: Path) -> list[Outcome]:
    (tmp_path / "agent.yaml").write_text(MANIFEST)
    file = tmp_path / "agent.scenario.yaml"
    file.write_text(SCENARIOS)
    return [outcome for scenario in load_file(file).scenarios for outcome in run_scenario(scenario)]


def test_every_scenario_passes(outcomes: list[Outcome]) -> None:
    failed = {o.scenario: [c.message for c in o.checks if not c.passed] for o in outcomes if not o.passed}
    assert failed == {}
    assert len(outcomes) == 5


def test_coverage_lists_what_was_taken_and_what_is_possible(outcomes: list[Outcome]) -> None:
    first = outcomes[0]
    assert set(first.shape["nodes"]) == {"draft", "spell", "facts", "shorten", "publish", "boss", "print"}
    assert first.coverage["nodes"] == first.shape["nodes"]
    assert first.coverage["branches"] == first.shape["branches"] == ["draft -> shorten [long]"]


@pytest.mark.parametrize(
    ("expected", "score"),
    [
        (["a", "b", "c", "d"], 1.0),
        (["a", ["c", "b"], "d"], 1.0),
        ([["b", "a"], ["c", "d"]], 1.0),
        (["a", "c", "b", "d"], 0.75),
        ([["a", "c"], "b", "d"], 0.75),
        (["a", ["b", "c", "d", "d"]], 0.8),
    ],
)
def test_a_path_without_supersteps_is_compared_start_by_start(expected: list[Any], score: float) -> None:
    observed = Observation(path=["a", "b", "c", "d"], has_supersteps=False)
    assert checked("path", expected, observed).score == score
