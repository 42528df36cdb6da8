"""(h) 2,000 scenarios in two processes against one, in real time: `pytest -n 2` and `harness run -j 2`.

It needs two free processors. On a busy machine the ratio says little; the processor time beside it says how much work
two processes add.

`pytest -n 2` can come to about 0.7, and misses its target. Of 20.7 s of a busy processor, the serial run spent 3.0 s
on start, collection and end, 17.7 s on the runs. With two workers 4.4 s are not shared: workers start after the
controller (1.0 + 1.0 s), each of them collects everything (1.3 s), and the controller alone writes the end of the
report (1.1 s). Shared are 21.0 s: LangGraph is imported twice, and six messages a test go through the controller.
`harness run -j 2` reads the files once, meanwhile has a process import everything, forks its workers from that, and
sends two messages a run.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Figure, compiled_once, medians, real_seconds_of_process, seconds_of_process
from benchmarks.suite import COUNT, PYTEST, reported_apart, write_project

TARGET = 0.65
ROUNDS = 3

HARNESS = [sys.executable, "-c", "from harness.cli.main import main; main()", "run", ".", "-q"]


def run() -> list[Figure]:
    """The ratios of one run."""
    with TemporaryDirectory() as folder, compiled_once() as environment:
        project = Path(folder, "project")
        write_project(project)
        commands = {
            "pytest": PYTEST,
            "pytest -n 2": [*PYTEST, "-n", "2"],
            "harness run": HARNESS,
            "harness run -j 2": [*HARNESS, "-j", "2"],
        }
        real = {
            name: partial(reported_apart, real_seconds_of_process, command, project, environment)
            for name, command in commands.items()
        }
        work = {
            f"work of {name}": partial(
                reported_apart, seconds_of_process, commands[name], project, environment
            )
            for name in ("pytest", "pytest -n 2")
        }
        took = medians({**real, **work}, ROUNDS)
    return [
        Figure(
            "h",
            f"pytest -n 2 / pytest, {COUNT} scenarios",
            took["pytest -n 2"] / took["pytest"],
            target=TARGET,
        ),
        Figure(
            "h",
            f"harness run -j 2 / harness run, {COUNT} scenarios",
            took["harness run -j 2"] / took["harness run"],
            target=TARGET,
        ),
        *(Figure("h", name, took[name], "s") for name in real),
        Figure("h", "pytest, processor time", took["work of pytest"], "s"),
        Figure("h", "pytest -n 2, processor time of all processes", took["work of pytest -n 2"], "s"),
    ]
