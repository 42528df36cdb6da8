"""(a) A five-node graph, run by the harness, compared with the same graph on bare LangGraph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import bare, scenarios
from benchmarks.measure import Figure, medians, seconds
from harness.scenario.load import load_file
from harness.scenario.run import run_once, run_scenario
from harness.settings import Settings

TARGET = 1.4
ROUNDS = 15
RUNS = 40


def run() -> list[Figure]:
    """Measure, and return the figures. Both sides create an event loop per run; graphs are built beforehand."""
    with TemporaryDirectory() as folder:
        path = scenarios.write(Path(folder) / "a.scenario.yaml", "triage.yaml", [scenarios.triage(1)])
        [scenario] = load_file(path).scenarios
    graph = bare.triage()
    by_hand = partial(bare.run_triage, graph, scenarios.TEXT, scenarios.REPLIES)
    played = partial(run_once, scenario, Settings(), seed=0)
    judged = partial(run_scenario, scenario)
    [outcome] = judged()
    assert outcome.verdict == "passed", outcome
    assert by_hand()["status"] == "closed"
    works: dict[str, Callable[[], object]] = {"bare": by_hand, "played": played, "judged": judged}
    took = medians({name: partial(seconds, work, RUNS) for name, work in works.items()}, ROUNDS)
    return [
        Figure("a", "five nodes, run / bare LangGraph", took["played"] / took["bare"], target=TARGET),
        Figure("a", "five nodes, run, checks and digest / bare LangGraph", took["judged"] / took["bare"]),
        Figure("a", "bare LangGraph, a run", took["bare"] * 1000, "ms"),
    ]
