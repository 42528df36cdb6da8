"""(c) pytest on 2,000 scenarios, against the least that could do it.

The least: pytest with a collector that parses the same files and makes an item of each scenario that does
nothing, and beside it 2,000 runs of the graph on bare LangGraph, in a process of their own. What the traces
of the runs cost, which are kept unless one says otherwise, is a figure of its own.

Each run has a report folder of its own. A new file costs four times as much on ext4 while thousands of others have
been deleted within the last minute, as a run deletes those of the one before: contestants would pay for each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from benchmarks import scenarios
from benchmarks.measure import Figure, compiled_once, medians, seconds_of_process

TARGET = 1.7
TRACES_TARGET = 1.15
ROUNDS = 3
FILES, PER_FILE = 40, 50
COUNT = FILES * PER_FILE

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
BARE_RUNS = [sys.executable, "-c", f"from benchmarks.bare import run_triage_often; run_triage_often({COUNT})"]

COLLECTOR = """
import pytest
import yaml


def pytest_collect_file(file_path, parent):
    if file_path.name.endswith(".scenario.yaml"):
        return Scenarios.from_parent(parent, path=file_path)


class Scenarios(pytest.File):
    def collect(self):
        document = yaml.load(self.path.read_text("utf-8"), Loader=yaml.CSafeLoader)
        for scenario in document["scenarios"]:
            yield Nothing.from_parent(self, name=scenario["name"])


class Nothing(pytest.Item):
    def runtest(self):
        pass
"""


def run() -> list[Figure]:
    """The ratio of one run."""
    with TemporaryDirectory() as folder, compiled_once() as environment:
        ours, least = Path(folder, "ours"), Path(folder, "least")
        for project in (ours, least):
            write_project(project)
        (least / "conftest.py").write_text(COLLECTOR, encoding="utf-8")
        here = Path(__file__).parent.parent
        took = medians(
            {
                "harness": partial(reported_apart, seconds_of_process, PYTEST, ours, environment),
                "untraced": partial(
                    reported_apart, seconds_of_process, [*PYTEST, "--traces", "none"], ours, environment
                ),
                "collector": partial(seconds_of_process, [*PYTEST, "-p", "no:harness"], least, environment),
                "bare": partial(seconds_of_process, BARE_RUNS, here, environment),
            },
            ROUNDS,
        )
    ratio = took["harness"] / (took["collector"] + took["bare"])
    return [
        Figure("c", f"pytest on {COUNT} scenarios / bare collector + bare LangGraph", ratio, target=TARGET),
        Figure("c", "with traces / without", took["harness"] / took["untraced"], target=TRACES_TARGET),
        Figure("c", f"pytest on {COUNT} scenarios", took["harness"], "s"),
        Figure("c", "bare collector", took["collector"], "s"),
        Figure("c", f"{COUNT} runs on bare LangGraph", took["bare"], "s"),
    ]


def reported_apart(
    measured: Callable[[Sequence[str], Path, Mapping[str, str]], float],
    command: Sequence[str],
    project: Path,
    environment: Mapping[str, str],
) -> float:
    """What a command takes whose report goes to a new folder beside the project."""
    report = mkdtemp(prefix="report-", dir=project.parent)
    return measured(command, project, {**environment, "HARNESS_REPORT": report})


def write_project(project: Path) -> None:
    """A folder with the scenario files, for pytest and `harness run`."""
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for file in range(FILES):
        numbers = range(file * PER_FILE, (file + 1) * PER_FILE)
        path = project / f"triage_{file:02}.scenario.yaml"
        scenarios.write(path, "triage.yaml", [scenarios.triage(number) for number in numbers])
