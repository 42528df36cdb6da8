"""A mesh of 200 agents, fan-out 50 and fan-in, with latencies drawn from the seed, is the same on every run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scenarios import depot, write, write_mesh
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

AGENTS = 200
DIGEST = """
import sys
from pathlib import Path
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

[outcome] = run_scenario(*load_file(Path(sys.argv[1])).scenarios)
print(outcome.verdict, outcome.digest)
"""
OFFLINE = ("unshare", "--map-root-user", "--net")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("depot")
    mesh = write_mesh(folder / "mesh.yaml", AGENTS)
    return write(folder / "depot.scenario.yaml", str(mesh), [depot(AGENTS, seed=7)], dialect="leafmesh")


def started(suite: Path, hash_seed: str, prefix: tuple[str, ...]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", DIGEST, str(suite)], env=environment, stdout=subprocess.PIPE
    )


def test_every_agent_runs_once_and_a_hub_waits_for_the_slowest_of_its_workers(suite: Path) -> None:
    [scenario] = load_file(suite).scenarios
    [outcome] = run_scenario(scenario)
    assert outcome.verdict == "passed"
    ran = [node for step in outcome.observed.path for node in (step if isinstance(step, list) else [step])]
    assert len(ran) == len(set(ran)) == AGENTS
    took = outcome.observed.latency["nodes"]
    rounds = [[took[name] for name in took if name.startswith(f"worker_{hub}_")] for hub in range(4)]
    assert outcome.observed.latency["total"] == pytest.approx(sum(map(max, rounds)))


def test_the_digest_is_the_same_under_other_hash_seeds_with_the_network_cut(suite: Path) -> None:
    can_leave = subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0
    runs = [started(suite, seed, OFFLINE if can_leave else ()) for seed in ("0", "4242")]
    [scenario] = load_file(suite).scenarios
    [here] = run_scenario(scenario)
    assert {run.communicate()[0].decode() for run in runs} == {f"passed {here.digest}\n"}


def test_another_seed_is_another_run(suite: Path, tmp_path: Path) -> None:
    mesh = suite.parent / "mesh.yaml"
    other = write(tmp_path / "o.scenario.yaml", str(mesh), [depot(AGENTS, seed=8)], dialect="leafmesh")
    [[first], [second]] = (
        [outcome for s in load_file(f).scenarios for outcome in run_scenario(s)] for f in (suite, other)
    )
    assert first.digest != second.digest
