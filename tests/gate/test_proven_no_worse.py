"""Rules that prove something: a run that is no worse than its baseline, and a history that does not fall."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import FormatError
from harness.gate.judge import Verdict, judge
from harness.gate.policy import read_policy
from harness.gate.rules import drift_p
from harness.gate.text import lines
from harness.report.history.file import HistoryWriter
from harness.report.results import ResultsWriter
from tests.gate.runs import RunSpec, outcomes_of, write_run


def verdict(folder: Path, before: dict[str, RunSpec], after: dict[str, RunSpec], rules: str) -> Verdict:
    policy = folder / "gate.yaml"
    policy.write_text(f"gate: {{{rules}}}\n", encoding="utf-8")
    baseline = write_run(folder / "before", before)
    return judge(write_run(folder / "after", after), read_policy(policy, folder), baseline)


def many(n: int, score: float = 1.0) -> dict[str, RunSpec]:
    return {f"s{at}": RunSpec(score=score, varies=True) for at in range(n)}


def test_an_unchanged_run_of_many_scenarios_is_proven_no_worse(tmp_path: Path) -> None:
    found = verdict(tmp_path, many(150), many(150), "proven_no_worse: {fitness: 0.02, cost: 0.03}")

    assert found.passed
    assert [(ruling.rule, ruling.bound) for ruling in found.rulings] == [
        ("proven_no_worse", {"fitness": 0.02}),
        ("proven_no_worse", {"cost": 0.03}),
    ]


def test_few_scenarios_prove_nothing_and_the_number_that_would_do_is_named(tmp_path: Path) -> None:
    found = verdict(tmp_path, many(20), many(20), "proven_no_worse: {fitness: 0.02}")

    [ruling] = found.rulings
    assert not ruling.passed
    assert ruling.note == "not enough evidence: about 99 scenarios like these would do"
    assert "fitness proven at most 2 % worse  (not enough evidence" in "\n".join(lines(found))
    enough = verdict(tmp_path, many(99), many(99), "proven_no_worse: {fitness: 0.02}")
    assert enough.passed


def test_a_run_that_is_worse_than_the_margin_lacks_no_evidence(tmp_path: Path) -> None:
    [ruling] = verdict(tmp_path, many(20), many(20, 0.9), "proven_no_worse: {fitness: 0.02}").rulings

    assert (ruling.passed, ruling.note) == (False, "")
    assert len(ruling.scenarios) == 20


def test_runs_that_cannot_differ_are_compared_exactly(tmp_path: Path) -> None:
    scripted = {name: replace(spec, varies=False) for name, spec in many(3).items()}
    [ruling] = verdict(tmp_path, scripted, scripted, "proven_no_worse: {fitness: 0.02}").rulings

    assert (ruling.passed, ruling.interval) == (True, None)


def test_a_rule_that_proves_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="proven_no_worse names no figure"):
        verdict(tmp_path, many(3), many(3), "proven_no_worse: {}")


def test_an_unchanged_history_rarely_falls_at_any_of_its_looks() -> None:
    draw = random.Random(1)
    alarms = sum(drift_p([draw.choice((0.7, 0.8, 0.9)) for _ in range(60)]) <= 0.05 for _ in range(200))
    assert alarms / 200 <= 0.05


def test_a_history_that_falls_is_found() -> None:
    draw = random.Random(1)
    values = [draw.gauss(0.9, 0.02) for _ in range(20)]
    assert drift_p(values) > 0.05
    assert drift_p([*values, *(draw.gauss(0.8, 0.02) for _ in range(20))]) <= 0.05


def test_the_gate_looks_at_the_runs_of_the_history_that_ends_with_the_judged_one(tmp_path: Path) -> None:
    history, policy = tmp_path / "history.jsonl", tmp_path / "gate.yaml"
    policy.write_text("gate: {no_drift: true}\n", encoding="utf-8")
    rules = read_policy(policy, tmp_path)
    for score in [1.0, 0.9, 0.95] * 5 + [0.5, 0.4] * 8:
        with ResultsWriter(tmp_path / "run", history=HistoryWriter(history, tmp_path)) as writer:
            for outcome in outcomes_of({"x": RunSpec(score=score, varies=True)}):
                writer.add(outcome)
    found = judge(tmp_path / "run", rules, history=history)

    [ruling] = [each for each in found.rulings if each.rule == "no_drift"]
    assert not ruling.passed
    assert ruling.note.startswith("31 runs of ")
    other = write_run(tmp_path / "other", {"x": RunSpec(score=0.7)})
    with pytest.raises(FormatError, match="the run is not the last whole one of"):
        judge(other, rules, history=history)
    with pytest.raises(FormatError, match="no history is configured"):
        judge(tmp_path / "run", rules)
