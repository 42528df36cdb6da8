"""(f) A Yagra fan-out over 1,000 items of 1 s each, compared with the same on bare LangGraph with items of 0 s."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import bare, scenarios
from benchmarks.measure import Figure, medians, seconds
from harness.scenario.load import load_file
from harness.scenario.run import run_once, run_scenario
from harness.settings import Settings

TARGET = 3.0
TARGET_S = 1.0
ROUNDS = 9
RUNS = 2


def collect(state: dict[str, Any]) -> dict[str, Any]:
    """Make the list, as the handler of the first node."""
    return {"parcels": list(range(state["count"]))}


async def weigh(state: dict[str, Any]) -> dict[str, Any]:
    """Handle one item. It takes 1 s, which is virtual in the harness."""
    await asyncio.sleep(1)
    return {"weights": [bare.weight(state["parcel"])]}


def add_up(state: dict[str, Any]) -> dict[str, Any]:
    """Handle the node after the mapped one; [] adds nothing to the list."""
    return {"total": sum(state["weights"]), "weights": []}


def run() -> list[Figure]:
    """Measure, and return the figures. Both sides create an event loop per run; graphs are built beforehand."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "f.scenario.yaml"
        path = scenarios.write(file, "parcels.yaml", [scenarios.parcels(__name__)], dialect="yagra")
        [scenario] = load_file(path).scenarios
    by_hand = partial(bare.run_parcels, bare.parcels(), scenarios.PARCELS)
    played = partial(run_once, scenario, Settings(), seed=0)
    judged = partial(run_scenario, scenario)
    [first], [second] = judged(), judged()
    assert first.verdict == "passed", first
    assert first.digest == second.digest
    weights = by_hand()["weights"]
    assert first.observed.state["weights"] == weights == [bare.weight(n) for n in range(scenarios.PARCELS)]
    works: dict[str, Callable[[], object]] = {"bare": by_hand, "played": played, "judged": judged}
    took = medians({name: partial(seconds, work, RUNS) for name, work in works.items()}, ROUNDS)
    items = f"a fan-out over {scenarios.PARCELS} items of 1 s"
    return [
        Figure("f", f"{items}, in virtual time", first.observed.latency["total"], "s", TARGET_S),
        Figure("f", f"{items}, run / bare LangGraph", took["played"] / took["bare"], target=TARGET),
        Figure("f", "the same, run, checks and digest / bare LangGraph", took["judged"] / took["bare"]),
        Figure("f", "the same, run, checks and digest", took["judged"], "s"),
        Figure("f", "bare LangGraph, a run of the fan-out (items take no time)", took["bare"], "s"),
    ]
