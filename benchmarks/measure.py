"""Measurement on a busy machine: the compared functions run in alternation, and medians are compared.

Processor time is measured, in this process and in child processes, so that other load on the machine has little
effect. Only `parallel`, where several processors share the work, measures real time; it needs idle processors.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A measured figure. `unit` is "×", "s" or "ms"; a figure without a `target` is informative."""

    benchmark: str
    title: str
    measured: float
    unit: str = "×"
    target: float | None = None

    @property
    def missed(self) -> bool:
        """True if the figure is above its target."""
        return self.target is not None and self.measured > self.target

    def as_mapping(self) -> dict[str, Any]:
        """Return the figure as JSON data."""
        return {**asdict(self), "missed": self.missed}


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """Return the processor time of one call of `work`, in seconds, as the mean of `times` calls."""
    gc.collect()
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times


@contextmanager
def compiled_once() -> Iterator[Mapping[str, str]]:
    """Yield an environment in which processes find modules compiled, from the second process on, as for users.

    Bytecode goes to a temporary folder, not to the source tree, even if this process writes none.
    """
    with TemporaryDirectory() as folder:
        rest = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        yield {**rest, "PYTHONPYCACHEPREFIX": folder}


def seconds_of_process(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Return the processor time of a command, in seconds, including its start and end.

    Raises:
        RuntimeError: it failed; the text is its output.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(command, folder, environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def real_seconds_of_process(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Return the real time of a command, in seconds; for work that several processors share.

    Raises:
        RuntimeError: it failed; the text is its output.
    """
    began = time.perf_counter()
    _run(command, folder, environment)
    return time.perf_counter() - began


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def measure_in_rounds(functions: Mapping[Any, Callable[[], float]], rounds: int) -> dict[Any, list[float]]:
    """Run the functions in rounds (A B C A B C …) and return their measurements, without the warm-up round."""
    measured: dict[Any, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, measure in functions.items():
            value = measure()
            if number:
                measured[name].append(value)
    return measured


def medians(functions: Mapping[Any, Callable[[], float]], rounds: int) -> dict[Any, float]:
    """Run the functions in rounds and return the median of each."""
    return {name: median(values) for name, values in measure_in_rounds(functions, rounds).items()}
