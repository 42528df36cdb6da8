"""(r) Writing report.html for 10,000 runs with traces, and its overhead for a run of one scenario."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import scenarios
from benchmarks.measure import Figure, measure_in_rounds, seconds
from harness.report.html.page import page
from harness.report.reading import RESULTS
from harness.report.results import ResultsWriter
from harness.report.summary import summary_of
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

COUNT = 10_000
ROUNDS = 3
TARGET_S = 3.0
ONE_TARGET_S = 0.05
MB_TARGET = 30.0


def run() -> list[Figure]:
    """Measure, and return the figures: the processor time of both, and the size of the large page."""
    with TemporaryDirectory() as folder:
        one, many = Path(folder, "one"), Path(folder, "many")
        _write(one)
        shutil.copytree(one, many)
        _multiply(many)
        pages = {run: partial(page, run, summary_of(run)) for run in (one, many)}
        size = len(pages[many]()) / 1e6
        took = measure_in_rounds({run: partial(seconds, work) for run, work in pages.items()}, ROUNDS)
    return [
        Figure("r", f"report.html of {COUNT:,} runs", median(took[many]), "s", TARGET_S),
        Figure("r", f"report.html of {COUNT:,} runs, its size", size, "MB", MB_TARGET),
        Figure("r", "report.html of one run", median(took[one]), "s", ONE_TARGET_S),
    ]


def _write(folder: Path) -> None:
    """Write the results of one scenario."""
    folder.mkdir()
    file = scenarios.write(folder / "one.scenario.yaml", "triage.yaml", [scenarios.triage(1)])
    with ResultsWriter(folder) as writer:
        for outcome in run_scenario(load_file(file).scenarios[0]):
            writer.add(outcome)


def _multiply(folder: Path) -> None:
    """Copy the line of results under many names."""
    line = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    lines = [{**line, "scenario": f"number {n}", "id": f"{line['suite']}::number {n}"} for n in range(COUNT)]
    (folder / RESULTS).write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
