"""(m) A LeafMesh mesh of 200 agents that wait for each other, 50 at a time, compared with one of 400."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import scenarios
from benchmarks.measure import Figure, medians, seconds
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.run import run_scenario

AGENTS = 200
SEED = 7
TARGET = 1.35
ROUNDS = 9


def run() -> list[Figure]:
    """Measure, and return the figures. Checks and digest are included; graphs are built beforehand."""
    with TemporaryDirectory() as folder:
        small, large = (_scenario(Path(folder), agents) for agents in (AGENTS, 2 * AGENTS))
        [first], [second], [other] = run_scenario(small), run_scenario(small), run_scenario(large)
        for outcome in (first, other):
            assert outcome.verdict == "passed", outcome
        assert first.digest == second.digest
        took = medians(
            {each.name: partial(seconds, partial(run_scenario, each)) for each in (small, large)}, ROUNDS
        )
    of_one = took[small.name] / AGENTS
    mesh = f"a mesh of {AGENTS} agents, fan-out {scenarios.WIDTH} and fan-in"
    return [
        Figure(
            "m",
            f"the cost of an agent among {2 * AGENTS}, to that among {AGENTS}",
            took[large.name] / 2 / AGENTS / of_one,
            target=TARGET,
        ),
        Figure("m", f"{mesh}, run, checks and digest", took[small.name], "s"),
        Figure("m", "the same, in virtual time", first.observed.latency["total"], "s"),
    ]


def _scenario(folder: Path, agents: int) -> Scenario:
    manifest = scenarios.write_mesh(folder / f"mesh_{agents}.yaml", agents)
    path = scenarios.write(
        folder / f"m_{agents}.scenario.yaml",
        str(manifest),
        [scenarios.depot(agents, SEED)],
        dialect="leafmesh",
    )
    [scenario] = load_file(path).scenarios
    return scenario
