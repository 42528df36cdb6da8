"""(c) pytest on 2,000 scenarios, compared with a minimal implementation.

The minimum is pytest with a collector that parses the same files and makes an empty item for each scenario,
plus 2,000 runs of the graph on bare LangGraph in a separate process. The cost of traces, which are kept by
default, is a separate figure.

Each run has its own report folder. On ext4, a new file costs four times as much while thousands of others have
been deleted within the last minute, and a run deletes the files of the previous one: measurements would affect
each other.
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
    """Measure, and return the figures."""
    with TemporaryDirectory() as folder, compiled_once() as environment:
        ours, least = Path(folder, "ours"), Path(folder, "least")
        for project in (ours, least):
            write_project(project)
        (least / "conftest.py").write_text(COLLECTOR, encoding="utf-8")
        here = Path(__file__).parent.parent
        took = medians(
            {
                "harness": partial(measure_with_new_report, seconds_of_process, PYTEST, ours, environment),
                "untraced": partial(
                    measure_with_new_report,
                    seconds_of_process,
                    [*PYTEST, "--traces", "none"],
                    ours,
                    environment,
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


def measure_with_new_report(
    measured: Callable[[Sequence[str], Path, Mapping[str, str]], float],
    command: Sequence[str],
    project: Path,
    environment: Mapping[str, str],
) -> float:
    """Measure a command whose report is written to a new folder beside the project."""
    report = mkdtemp(prefix="report-", dir=project.parent)
    return measured(command, project, {**environment, "HARNESS_REPORT": report})


def write_project(project: Path) -> None:
    """Write a project with the scenario files, for pytest and `harness run`."""
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for file in range(FILES):
        numbers = range(file * PER_FILE, (file + 1) * PER_FILE)
        path = project / f"triage_{file:02}.scenario.yaml"
        scenarios.write(path, "triage.yaml", [scenarios.triage(number) for number in numbers])
