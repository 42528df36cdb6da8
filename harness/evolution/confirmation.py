"""Comparison of the winner with the manifest on the held-out scenarios, which alone can confirm that it is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.report.scenario_runs import Run, ScenarioCollector
from harness.report.summary import summarise
from harness.variants.compared_runs import uncompared
from harness.variants.comparison import compare
from harness.variants.document import BASELINE
from harness.variants.score_json import score_json


def confirmation(lines: Sequence[Mapping[str, Any]], winner: str, no_difference: str) -> dict[str, Any]:
    """Compare the winner with the baseline, and return the result as written to evolution.json.

    Args:
        lines: the results of both.
        winner: the winner's name as a variant.
        no_difference: the reason why the two cannot differ; "" if they can.
    """
    collector = ScenarioCollector()
    for line in lines:
        collector.add(line)
    run, names = Run("held out", collector.scenarios), (BASELINE, winner)
    left_out = uncompared(run, names)
    groups = summarise(
        line for line in lines if (line["id"], line["variant"], line["repeat"]) not in left_out
    )["variants"]
    score = compare(run, groups, names, {}, {winner: no_difference})
    variants = [*score_json(score)["variants"], {}]
    before, after = variants[0], variants[1]
    difference = after.get("difference")
    return {
        "scenarios": len({line["id"] for line in lines if line["verdict"] != "skipped"}),
        "baseline": before["fitness"],
        "winner": after.get("fitness"),
        "difference": difference,
        "verdict": difference["verdict"] if difference else None,
        "note": after.get("note"),
        "spent": {"calls": _calls(lines), "cost": sum(line["usage"]["cost"] or 0.0 for line in lines)},
    }


def _calls(lines: Iterable[Mapping[str, Any]]) -> int:
    return sum(line["usage"]["llm_calls"] or 0 for line in lines)
