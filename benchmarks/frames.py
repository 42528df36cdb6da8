"""(p) The data frame of 100,000 runs, compared with decoding their lines with msgspec: time and memory.

Lines are those of (s). Time is compared with decoding each line and forgetting it, memory with keeping them all.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.aggregation import batches, lines
from benchmarks.measure import Figure

COUNT = 100_000
ROUNDS = 3
TARGET = 2.0


def run() -> list[Figure]:
    """Measure, and return the figures."""
    with TemporaryDirectory() as name:
        file = Path(name, "results.jsonl")
        with file.open("wb") as written:
            for batch in batches(lines(Path(name)), COUNT):
                written.write(batch)
        rounds = [{what: _measure(what, file) for what in WORK} for _ in range(ROUNDS)]
    seconds = {what: median(each[what][0] for each in rounds) for what in WORK}
    megabytes = {what: median(each[what][1] for each in rounds) for what in WORK}
    memory = megabytes["frame"] / megabytes["keep"]
    title = f"a frame of {COUNT:,} runs"
    return [
        Figure("p", title, seconds["frame"], "s"),
        Figure("p", f"{title} : decoding their lines", seconds["frame"] / seconds["decode"], "×", TARGET),
        Figure("p", f"{title} : their decoded lines, memory", memory, "×", TARGET),
        Figure("p", f"{title}, memory", megabytes["frame"], "MB"),
    ]


def _measure(what: str, file: Path) -> tuple[float, float]:
    """Return the processor time, and the memory in MB, of a process that does this."""
    command = [sys.executable, "-m", "benchmarks.frames", what, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = json.loads(done.stdout)
    return seconds, megabytes


def _decoded(file: Path) -> Iterator[object]:
    from msgspec.json import Decoder

    from harness.report.reading import Line

    with file.open("rb") as opened:
        yield from map(Decoder(Line).decode, opened)


def _frame(file: Path) -> object:
    import harness

    return harness.load_results(file).frame()


WORK: dict[str, Callable[[Path], object]] = {
    "decode": lambda file: sum(1 for _ in _decoded(file)),
    "keep": lambda file: [*_decoded(file)],
    "frame": _frame,
}


def _report(what: str, file: Path) -> None:
    """Do it twice: with a few lines, which loads the libraries, and with all, and print the difference."""
    few = file.with_name("few.jsonl")
    with file.open("rb") as opened:
        few.write_bytes(b"".join(islice(opened, 10)))
    WORK[what](few)
    before, memory = os.times(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    WORK[what](file)
    after, largest = os.times(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = after.user + after.system - before.user - before.system
    print(json.dumps([took, (largest - memory) / 1024]))


if __name__ == "__main__":
    _report(sys.argv[1], Path(sys.argv[2]))
