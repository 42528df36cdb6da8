"""Measuring on a machine that is busy with other things: contestants take turns, medians are compared.

Processor time is read, here and in child processes, so that what others do on the machine counts little. Only where
several processors share the work (`parallel`) real time is; its figures mean something on free processors only.
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
    """One measured figure. `unit` is "×", "s" or "ms"; without a `target` it is for information."""

    benchmark: str
    title: str
    measured: float
    unit: str = "×"
    target: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the figure is above its target."""
        return self.target is not None and self.measured > self.target

    def as_mapping(self) -> dict[str, Any]:
        """The figure as JSON data."""
        return {**asdict(self), "missed": self.missed}


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """The processor time of one call of `work`, in seconds, as the mean of several."""
    gc.collect()
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times


@contextmanager
def compiled_once() -> Iterator[Mapping[str, str]]:
    """An environment for processes that find modules compiled, from the second one on, as users' do.

    Whether this process writes bytecode makes no difference, and the tree gets none.
    """
    with TemporaryDirectory() as folder:
        rest = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        yield {**rest, "PYTHONPYCACHEPREFIX": folder}


def seconds_of_process(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """The processor time of a command that must succeed, in seconds, its start and end included.

    Raises:
        RuntimeError: it failed; the text is what it said.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(command, folder, environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def real_seconds_of_process(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """The real time of a command that must succeed, in seconds: for what several processors do at once.

    Raises:
        RuntimeError: it failed; the text is what it said.
    """
    began = time.perf_counter()
    _run(command, folder, environment)
    return time.perf_counter() - began


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def in_turn(contestants: Mapping[Any, Callable[[], float]], rounds: int) -> dict[Any, list[float]]:
    """What each contestant measured, in rounds: A B C A B C …; one more round before is not counted."""
    measured: dict[Any, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, measure in contestants.items():
            value = measure()
            if number:
                measured[name].append(value)
    return measured


def medians(contestants: Mapping[Any, Callable[[], float]], rounds: int) -> dict[Any, float]:
    """The median of what each contestant measured, taking turns."""
    return {name: median(values) for name, values in in_turn(contestants, rounds).items()}
