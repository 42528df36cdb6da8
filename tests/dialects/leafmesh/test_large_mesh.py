"""A mesh of 200 agents, fan-out 50 and fan-in, with latencies drawn from the seed, is the same on every run; so is a
small one with everything at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scenarios import depot, write, write_mesh
from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from tests.dialects.leafmesh.wave_runs import EXAMPLE, run_mesh

AGENTS = 200
DIGESTS = """
import sys
from pathlib import Path
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from tests.dialects.leafmesh.wave_runs import EXAMPLE, run_mesh

[outcome] = run_scenario(*load_file(Path(sys.argv[1])).scenarios)
print(outcome.verdict, outcome.digest, run_mesh(EXAMPLE).digest)
"""
OFFLINE = ("unshare", "--map-root-user", "--net")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("depot")
    mesh = write_mesh(folder / "mesh.yaml", AGENTS)
    return write(folder / "depot.scenario.yaml", str(mesh), [depot(AGENTS, seed=7)], dialect="leafmesh")


@pytest.fixture(scope="module")
def outcome(suite: Path) -> Outcome:
    """The run in this process, under whatever hash seed it has."""
    [scenario] = load_file(suite).scenarios
    [found] = run_scenario(scenario)
    return found


def test_every_agent_runs_once_and_a_hub_waits_for_the_slowest_of_its_workers(outcome: Outcome) -> None:
    assert outcome.verdict == "passed"
    path = outcome.observed.path
    visits = [node for step in path for node in (step if isinstance(step, list) else [step])]
    assert len(visits) == len(set(visits)) == AGENTS
    took = outcome.observed.latency["nodes"]
    rounds = [[took[name] for name in took if name.startswith(f"worker_{hub}_")] for hub in range(4)]
    assert outcome.observed.latency["total"] == pytest.approx(sum(map(max, rounds)))


def test_digests_are_the_same_under_another_hash_seed_with_the_network_cut(
    suite: Path, outcome: Outcome
) -> None:
    seed = "0" if os.environ.get("PYTHONHASHSEED") == "4242" else "4242"
    can_leave = subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0
    command = [*(OFFLINE if can_leave else ()), sys.executable, "-c", DIGESTS, str(suite)]
    found = subprocess.run(
        command,
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        check=True,
    )
    assert found.stdout.decode() == f"passed {outcome.digest} {run_mesh(EXAMPLE).digest}\n"


def test_another_seed_is_another_run(suite: Path, outcome: Outcome, tmp_path: Path) -> None:
    mesh = suite.parent / "mesh.yaml"
    other = write(tmp_path / "o.scenario.yaml", str(mesh), [depot(AGENTS, seed=8)], dialect="leafmesh")
    [scenario] = load_file(other).scenarios
    [found] = run_scenario(scenario)
    assert found.digest != outcome.digest
