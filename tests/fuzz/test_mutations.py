"""Mutated manifests and scenario files give an error with its place, or run; never a traceback or a hang.

Seeds count from 0. `HARNESS_FUZZ` sets their number, 10 by default; `make fuzz` sets more.
"""

import os
import random
import re
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from tests.fuzz.mutations import mutated

SCENARIOS = Path(__file__).parents[2] / "scenarios"
CASES = int(os.environ.get("HARNESS_FUZZ", "10"))
CHUNKS = -(-CASES // 25)  # one test per 25 seeds, so that xdist can distribute them
LOCATED = re.compile(r":\d+:\d+$")


@contextmanager
def at_most(seconds: Any) -> Any:
    def stop(*_: Any) -> None:
        raise AssertionError(f"hangs: still busy after {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


@pytest.fixture(scope="module", params=["sherma", "agentspec", "yagra", "loki", "leafmesh"])
def suite(request: Any, tmp_path_factory: Any) -> Any:
    folder = tmp_path_factory.mktemp(request.param)
    shutil.copytree(SCENARIOS / request.param, folder, dirs_exist_ok=True)
    for file in folder.rglob("*.*"):
        file.chmod(0o644)
    return folder


def cases(chunk: Any) -> Any:
    return range(chunk, CASES, CHUNKS)


def check_run(scenario: Any, seed: Any) -> None:
    """Run a scenario and assert that an invalid manifest is reported with its place."""
    for outcome in run_scenario(scenario):
        error = outcome.observed.error
        assert (error or {}).get("code") != "harness-broke", f"seed {seed}: {error}"
        if outcome.observed.status == "invalid":
            assert error is not None
            assert error["where"] is not None, f"seed {seed}: {error['message']}"
            assert LOCATED.search(error["where"]), f"seed {seed}: {error}"


def loaded(file: Any, seed: Any) -> Any:
    """Return the scenarios of a file, or none if it is invalid; assert that each problem has a place."""
    try:
        return load_file(file).scenarios
    except FormatError as error:
        problems = error.problems
    assert all(problem.span is not None for problem in problems), f"seed {seed}: {problems}"
    return ()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_manifests_are_refused_with_a_place_or_run(suite: Any, chunk: Any) -> None:
    scenarios = [s for file in sorted(suite.glob("[!_]*.scenario.yaml")) for s in load_file(file).scenarios]
    for seed in cases(chunk):
        draw = random.Random(seed)
        scenario = draw.choice(scenarios)
        manifest = draw.choice(scenario.manifests)
        original = manifest.read_bytes()
        manifest.write_bytes(mutated(original.decode(), draw, json=manifest.suffix == ".json"))
        try:
            with at_most(120):
                check_run(scenario, seed)
        finally:
            manifest.write_bytes(original)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_scenario_files_are_refused_with_a_place_or_run(suite: Any, chunk: Any) -> None:
    files = sorted(suite.glob("[!_]*.scenario.yaml"))
    for seed in cases(chunk):
        draw = random.Random(seed)
        target = suite / f"_mutated_{chunk}.scenario.yaml"
        target.write_bytes(mutated(draw.choice(files).read_text(encoding="utf-8"), draw))
        with at_most(120):
            for scenario in loaded(target, seed)[:5]:
                check_run(scenario, seed)
