"""(h) 2,000 scenarios in two processes, compared with one, in real time: `pytest -n 2` and `harness run -j 2`.

It needs two idle processors; on a busy machine the ratios are not meaningful.

It measures two sets: this project's scenarios of the five dialects, each four times, with agents of many kinds
(25 ms each); and 2,000 scenarios of one tiny agent (6 ms each), the least favourable case, in which the work
that two processes cannot share counts most. Of 17 s of `pytest` on the latter, 2 s are start and collection,
and 1 s is the end of the report. `pytest -n 2` adds 7 s of processor time: workers start after the controller,
each of them imports and collects everything, and six messages per test go through the controller. So its ratio
there is about 0.7, and has no target. `harness run -j 2` reads the files once, while another process imports
everything; it forks its workers from that process, and sends two messages per run.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure, compiled_once, medians, real_seconds_of_process
from benchmarks.suite import COUNT, PYTEST, measure_with_new_report, write_project
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
    """Measure, and return the figures."""
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
    """Write a project with four copies of the scenarios of the dialects."""
    for copy in range(COPIES):
        for dialect in DIALECTS:
            shutil.copytree(SCENARIOS / dialect, project / f"copy_{copy}" / dialect)
    (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")


def _measured(project: Path, environment: Mapping[str, str]) -> dict[str, Callable[[], float]]:
    return {
        name: partial(measure_with_new_report, real_seconds_of_process, command, project, environment)
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
