"""(h) 2,000 scenarios in two processes against one, in real time: `pytest -n 2` and `harness run -j 2`.

It needs two free processors; on a busy machine the ratios say little.

Once with the scenarios that this project has of the five dialects, each four times over: agents of many kinds, from
one call to scripts and pauses, 25 ms each. And once with 2,000 of the same tiny agent, 6 ms each, the least
favourable case, where what two processes cannot share counts most. Of 17 s of `pytest` on those, 2 s are start and
collection, 1 s is the end of the report. `pytest -n 2` adds 7 s of processor time: workers start after the
controller, each of them imports and collects everything, and six messages a test go through the controller. So it
comes to about 0.7 there, and has no target. `harness run -j 2` reads the files once, meanwhile has a process import
everything, forks its workers from that, and sends two messages a run.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure, compiled_once, medians, real_seconds_of_process
from benchmarks.suite import COUNT, PYTEST, reported_apart, write_project
from harness.dialects import DIALECTS

TARGET = 0.65
ROUNDS = 3
COPIES = 4
SCENARIOS = Path(__file__).parents[1] / "scenarios"

HARNESS = [sys.executable, "-c", "from harness.cli.main import main; main()", "run", ".", "-q"]
COMMANDS = {
    "pytest": PYTEST,
    "pytest -n 2": [*PYTEST, "-n", "2"],
    "harness run": HARNESS,
    "harness run -j 2": [*HARNESS, "-j", "2"],
}


def run() -> list[Figure]:
    """The ratios of one run."""
    with TemporaryDirectory() as folder, compiled_once() as environment:
        tiny, real = Path(folder, "tiny"), Path(folder, "real")
        write_project(tiny)
        copy_scenarios(real)
        of_tiny = medians(_measured(tiny, environment), ROUNDS)
        of_real = {name: measure() for name, measure in _measured(real, environment).items()}  # 4 min a round
    return [
        *_figures(f"{COPIES} × the scenarios of five dialects", of_real, pytest_target=TARGET),
        *_figures(f"{COUNT} tiny scenarios", of_tiny, pytest_target=None),
    ]


def copy_scenarios(project: Path) -> None:
    """A folder with the scenarios of the dialects, four times over."""
    for copy in range(COPIES):
        for dialect in DIALECTS:
            shutil.copytree(SCENARIOS / dialect, project / f"copy_{copy}" / dialect)
    (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")


def _measured(project: Path, environment: Mapping[str, str]) -> dict[str, Callable[[], float]]:
    return {
        name: partial(reported_apart, real_seconds_of_process, command, project, environment)
        for name, command in COMMANDS.items()
    }


def _figures(of: str, took: Mapping[str, float], *, pytest_target: float | None) -> list[Figure]:
    in_pytest, in_harness = (
        took["pytest -n 2"] / took["pytest"],
        took["harness run -j 2"] / took["harness run"],
    )
    return [
        Figure("h", f"pytest -n 2 / pytest, {of}", in_pytest, target=pytest_target),
        Figure("h", f"harness run -j 2 / harness run, {of}", in_harness, target=TARGET),
        *(Figure("h", f"{name}, {of}", seconds, "s") for name, seconds in took.items()),
    ]
