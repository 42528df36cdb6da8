"""Comparison of variants with the baseline, from the results of a run. Source: docs/variants.md, "Scoring"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.report.scenario_runs import read_run
from harness.report.summary import Summary
from harness.variants.comparison import VariantScore, compare
from tests.gate.runs import RunSpec, write_lines


def scored(folder: Path, before: RunSpec, after: RunSpec) -> VariantScore:
    """Return the score of the only variant, from a run of one scenario."""
    folders = [write_lines(folder / str(each.variant), {"one": each}) for each in (before, after)]
    results = folder / "results.jsonl"
    results.write_text("".join((each / "results.jsonl").read_text() for each in folders))
    summary = Summary()
    run = read_run(results, [summary.add])
    return compare(run, summary.as_json()["variants"], ["now", "new"], {}, {"now": "", "new": ""}).variants[1]


@pytest.mark.parametrize(
    ("more", "verdict", "scores"),
    [
        ({}, "no evidence", (0.0, 1.0)),
        ({"varies": True}, "better", (0.0, 1.0)),
        ({}, "better", (0.0, [0.9] * 19 + [1.0])),
    ],
    ids=["scripted", "asked anew", "with seeds that matter"],
)
def test_repeats_that_could_not_differ_count_once(
    tmp_path: Path, more: dict[str, Any], verdict: str, scores: tuple[Any, Any]
) -> None:
    before = RunSpec(variant="now", repeats=20, score=scores[0], **more)
    found = scored(tmp_path, before, RunSpec(variant="new", repeats=20, score=scores[1], **more))
    assert found.verdict == verdict
    assert found.needed is None


def test_a_scenario_that_weighs_nothing_is_evidence_of_nothing(tmp_path: Path) -> None:
    found = scored(
        tmp_path, RunSpec(variant="now", weight=0, score=0.0), RunSpec(variant="new", weight=0, score=1.0)
    )
    assert (found.difference, found.why) == (None, "no scenario was judged for it and for the baseline")
