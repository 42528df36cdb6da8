"""The winner against the manifest on the scenarios that were held out: the only ones that may call it better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.report.scenario_runs import Run, ScenarioCollector
from harness.report.summary import summarise
from harness.variants.comparison import compare
from harness.variants.document import BASELINE


def confirmation(lines: Sequence[Mapping[str, Any]], winner: str, alike: str) -> dict[str, Any]:
    """What the runs of the baseline and of the winner, a variant of this name, came to, as evolution.json has it.

    `alike` says why they cannot differ, "" where they can.
    """
    collector = ScenarioCollector()
    for line in lines:
        collector.add(line)
    groups = summarise(lines)["variants"]
    score = compare(
        Run("held out", collector.scenarios),
        groups,
        (BASELINE, winner),
        {},
        {winner: alike},
    )
    variants = [*score.as_json()["variants"], {}]
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
