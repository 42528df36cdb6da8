"""(e) An Agent Spec flow, run by the harness, compared with the same flow on bare LangGraph."""

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

TARGET = 1.35
ROUNDS = 15
RUNS = 40


def run() -> list[Figure]:
    """Measure, and return the figures. Both sides create an event loop per run; graphs are built beforehand."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "e.scenario.yaml"
        path = scenarios.write(file, "charges.yaml", [scenarios.charges()], dialect="agentspec")
        [scenario] = load_file(path).scenarios
    by_node, shortest = (
        partial(bare.run_charges, graph, scenarios.QUESTION, [scenarios.KIND])
        for graph in (bare.charges(), bare.charges_in_two_nodes())
    )
    played = partial(run_once, scenario, Settings(), seed=0)
    judged = partial(run_scenario, scenario)
    [outcome] = judged()
    assert outcome.verdict == "passed", outcome
    assert by_node()["charges"] == shortest()["charges"] == scenarios.CHARGES
    works: dict[str, Callable[[], object]] = {
        "bare": by_node,
        "shortest": shortest,
        "played": played,
        "judged": judged,
    }
    took = medians({name: partial(seconds, work, RUNS) for name, work in works.items()}, ROUNDS)
    return [
        Figure("e", "an Agent Spec flow, run / bare LangGraph", took["played"] / took["bare"], target=TARGET),
        Figure("e", "the same, run, checks and digest / bare LangGraph", took["judged"] / took["bare"]),
        Figure(
            "e",
            "the same, run / bare LangGraph with two nodes and an edge that chooses",
            took["played"] / took["shortest"],
        ),
        Figure("e", "bare LangGraph, a run of the flow", took["bare"] * 1000, "ms"),
    ]
