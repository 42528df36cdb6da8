"""Comparison of the winner with the manifest on the held-out scenarios, which alone can confirm that it is better."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from harness.report.scenario_runs import Run, ScenarioCollector
from harness.report.summary import summarise
from harness.variants.comparison import compare, uncompared
from harness.variants.document import BASELINE
from harness.variants.table import score_json


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
        "spent": {
            "calls": sum(line["usage"]["llm_calls"] or 0 for line in lines),
            "cost": sum(line["usage"]["cost"] or 0.0 for line in lines),
        },
    }


MIN_HELD_OUT: Final = 6
"""With fewer scenarios nothing is significant: six that all differ in one direction have p = 2 ÷ 2⁶ = 0.031."""

Item = TypeVar("Item")


def split(items: Sequence[Item], share: float, seed: int) -> tuple[list[Item], list[Item]]:
    """Split scenarios at random into those to search with (training) and those held out, `share` of them.

    At least one remains for training.
    """
    count = len(items)
    held = min(round(count * share), count - 1) if count else 0
    if share > 0 and count > 1:
        held = max(held, 1)
    drawn = set(random.Random(f"{seed}/holdout").sample(range(count), held))
    training = [item for at, item in enumerate(items) if at not in drawn]
    return training, [item for at, item in enumerate(items) if at in drawn]


def why_too_few(count: int, held: int, share: float) -> str:
    """Return the reason why too few scenarios are held out to confirm any winner; "" if there are enough."""
    if share == 0:
        return "no scenario is held out (--holdout 0): no winner will be called better"
    if held >= MIN_HELD_OUT:
        return ""
    needed = next(n for n in range(count, 10_000) if max(1, min(round(n * share), n - 1)) >= MIN_HELD_OUT)
    return (
        f"{held} of {count} scenarios are held out, and fewer than {MIN_HELD_OUT} never show that a winner is "
        f"better: it takes {needed} scenarios with --holdout {share:g}, or a larger --holdout"
    )
