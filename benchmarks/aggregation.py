"""(s) Aggregating 100,000 and 1,000,000 lines of results: time and memory, and their growth.

Lines have a realistic size (about 4,000 bytes) and belong to 10,000 scenarios, with ten and a hundred repeats.
Each run has a different latency, as with live models. They come through a pipe, since they would take 4 GB of
disk.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import scenarios
from benchmarks.measure import Figure
from harness.report.reading import read_lines
from harness.report.results import ResultsWriter
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

COUNTS = (100_000, 1_000_000)
SCENARIOS = 10_000
SUITES = 100
WIDTH = 4_000
TIME_TARGET = 12.0
MEMORY_TARGET = 4.0
MB_TARGET = 300.0


@dataclass(frozen=True)
class _Usage:
    seconds: float
    megabytes: float


def run() -> list[Figure]:
    """Measure, and return the figures: time and memory for the larger number, and both relative to the smaller."""
    with TemporaryDirectory() as folder:
        few, many = (_measure_reading(Path(folder), count) for count in COUNTS)
    title = f"adding up {COUNTS[1]:,} lines"
    return [
        Figure("s", title, many.seconds, "s"),
        Figure("s", f"{title}, per line", many.seconds / COUNTS[1] * 1e6, "µs"),
        Figure("s", f"{title} : {COUNTS[0]:,}, time", many.seconds / few.seconds, "×", TIME_TARGET),
        Figure("s", f"{title} : {COUNTS[0]:,}, memory", many.megabytes / few.megabytes, "×", MEMORY_TARGET),
        Figure("s", f"{title}, memory", many.megabytes, "MB", MB_TARGET),
    ]


def _measure_reading(folder: Path, count: int) -> _Usage:
    """Measure a process that reads that many lines, as `harness summary` does."""
    command = [sys.executable, "-m", "benchmarks.aggregation", "/dev/stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        for batch in batches(lines(folder), count):
            reader.stdin.write(batch)
        reader.stdin.close()
        said = json.loads(reader.stdout.read())
    assert said["runs"] == count
    return _Usage(said["seconds"], said["megabytes"])


def lines(folder: Path) -> Iterator[bytes]:
    """Yield lines of all scenarios, repeat after repeat, without end."""
    line = _line(folder)
    line["state"] = {**(line["state"] or {}), "notes": "x" * max(0, WIDTH - len(json.dumps(line)))}
    template = json.dumps({**line, "id": "ID", "scenario": "NAME", "suite": "SUITE", "varies": True})
    head, rest = template.split(json.dumps(line["latency"]))
    total = line["latency"]["total"]
    repeat = 0
    while True:
        for number in range(SCENARIOS):
            suite = f"suite {number % SUITES}.scenario.yaml"
            named = head.replace('"ID"', f'"{suite}::number {number}"').replace('"SUITE"', f'"{suite}"')
            took = total + (number * 7919 + repeat * 104729) % 1_000_003 / 1e6
            latency = {"total": took, "nodes": dict.fromkeys(line["latency"]["nodes"], took / 2)}
            counted = named.replace('"repeat": 0', f'"repeat": {repeat}')
            yield f"{counted}{json.dumps(latency)}{rest}\n".encode()
        repeat += 1


def batches(made: Iterator[bytes], count: int) -> Iterator[bytes]:
    for begin in range(0, count, 1_000):
        yield b"".join(islice(made, min(1_000, count - begin)))


def _line(folder: Path) -> dict[str, Any]:
    """Run one scenario, and return its line."""
    file = scenarios.write(folder / "one.scenario.yaml", "triage.yaml", [scenarios.triage(1)])
    with ResultsWriter(folder / "report") as writer:
        for outcome in run_scenario(load_file(file).scenarios[0]):
            writer.add(outcome)
    return next(read_lines(folder / "report"))


def _report(path: Path) -> None:
    """Read lines as the command does, and print the time and memory used."""
    from harness.report.runs import summarise_runs
    from harness.workers.garbage import reduce_gc

    reduce_gc()
    before = os.times()
    summary = summarise_runs([path])
    after = os.times()
    print(
        json.dumps(
            {
                "runs": summary["total"]["runs"],
                "seconds": after.user + after.system - before.user - before.system,
                "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    _report(Path(sys.argv[1]))
