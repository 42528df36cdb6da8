"""`python -m benchmarks.against COMMIT`: what this tree costs beside another commit, as ratios of processor time.

Both run the same work in turn, each in a process of its own with its own `harness` and `benchmarks`, so that what
else the machine does hits both. Where it does too much, `--instructions` counts the instructions of valgrind
instead: they repeat to a tenth of a percent, and know nothing of caches.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import exp, log, sqrt
from pathlib import Path
from shutil import which
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.measure import compiled_once, seconds_of_process
from harness.statistics.ratio_interval import student_quantile

HERE: Final = Path(__file__).parents[1]
WORKS: Final = {
    "a.played": ("triage.yaml", "triage(1)", "sherma", "run_once(scenario, Settings(), seed=0)"),
    "a.judged": ("triage.yaml", "triage(1)", "sherma", "run_scenario(scenario)"),
    "e.played": ("charges.yaml", "charges()", "agentspec", "run_once(scenario, Settings(), seed=0)"),
    "e.judged": ("charges.yaml", "charges()", "agentspec", "run_scenario(scenario)"),
}
"""By name: the manifest, the scenario in `benchmarks.scenarios`, the dialect, and a run of it."""
RUNS: Final = 30
"""Runs of a batch, after ten in which all is imported."""
SUITE: Final = ("c", 10, 50)
"""pytest on so many files of so many scenarios."""
WORK: Final = """
import sys, time
from pathlib import Path
from benchmarks import scenarios
from harness.scenario.load import load_file
from harness.scenario.run import run_once, run_scenario
from harness.settings import Settings

file = scenarios.write(Path(sys.argv[1], "one.scenario.yaml"), {manifest!r}, [scenarios.{made}], {dialect!r})
[scenario] = load_file(file).scenarios
def batch(runs):
    began = time.process_time()
    for _ in range(runs):
        {run}
    return time.process_time() - began

batch(10)
print(min(batch({runs}) for _ in range(int(sys.argv[2]))) if sys.argv[2] != "0" else 0)
"""
COUNTED: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def main() -> None:
    """Measure what the command line names, and print a line for each work."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument(
        "works", nargs="*", metavar="WORK", help=f"{', '.join(WORKS)} or c, a suite (default: all)"
    )
    parser.add_argument("--pairs", type=int, default=40, help="processes of each side (default: 40)")
    parser.add_argument("--instructions", action="store_true", help="count them with valgrind, in one pair")
    given = parser.parse_args()
    works = given.works or [*WORKS, SUITE[0]]
    if unknown := [name for name in works if name not in (*WORKS, SUITE[0])]:
        parser.error(f"no work {unknown[0]!r}; there are {', '.join([*WORKS, SUITE[0]])}")
    if given.instructions and which(COUNTED[0]) is None:
        parser.error("--instructions needs valgrind, which is not installed")
    if given.pairs < 2:
        parser.error("--pairs: at least 2, as one tells nothing of the spread")
    known = ["git", "-C", str(HERE), "rev-parse", "--quiet", "--verify", f"{given.commit}^{{commit}}"]
    if subprocess.run(known, capture_output=True, check=False).returncode:
        parser.error(f"no commit {given.commit!r} here")
    with _checked_out(given.commit) as before, compiled_once() as environment:
        for name in works:
            measure = partial(_cost, name, environment=environment, counted=given.instructions)
            _print(name, measure, before, 1 if given.instructions else given.pairs)


def _print(name: str, measure: Callable[[Path], float], before: Path, pairs: int) -> None:
    for tree in (HERE, before):  # compiles its modules
        measure(tree)
    ratios = []
    for number in range(pairs):
        order = (HERE, before) if number % 2 else (before, HERE)
        took = {tree: measure(tree) for tree in order}
        ratios.append(log(took[HERE] / took[before]))
    mean = fmean(ratios)
    text = f"{name:<10} {exp(mean):.3f} ×"
    if pairs > 1:
        half = student_quantile(0.975, pairs - 1) * stdev(ratios) / sqrt(pairs)
        text += f"  (95 %: {exp(mean - half):.3f} to {exp(mean + half):.3f}, {pairs} pairs)"
    print(text, flush=True)


def _cost(name: str, tree: Path, *, environment: Mapping[str, str], counted: bool) -> float:
    """Return what a work costs in a tree: seconds of processor time, or instructions."""
    cost = _instructions if counted else seconds_of_process
    with TemporaryDirectory() as made:
        folder = Path(made)
        own = {
            **environment,
            "PYTHONPATH": str(tree),
            "PYTHONHASHSEED": "0",
            "HARNESS_REPORT": f"{made}/report",
        }
        if name == SUITE[0]:
            _, files, scenarios = SUITE
            write = f"from benchmarks import suite as s; s.FILES, s.PER_FILE = {files}, {scenarios}"
            write = f"{write}; s.write_project(s.Path('suite'))"
            seconds_of_process([sys.executable, "-c", write], folder, own)
            pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            return cost(pytest, folder / "suite", own)
        manifest, scenario, dialect, run = WORKS[name]
        work = WORK.format(manifest=manifest, made=scenario, dialect=dialect, run=run, runs=RUNS)
        none, one, best = ([sys.executable, "-c", work, made, str(batches)] for batches in (0, 1, 3))
        if counted:
            return cost(one, folder, own) - cost(none, folder, own)
        return float(_output(best, folder, own).split()[-1])


def _instructions(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    told = _output([*COUNTED, *command], folder, environment)
    return float(re.findall(r"I\s+refs:\s+([\d,]+)", told)[-1].replace(",", ""))


def _output(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    run = partial(subprocess.run, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return str(run(command, stderr=subprocess.STDOUT).stdout)


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """Yield a folder with the files of a commit."""
    with TemporaryDirectory() as folder:
        tree = Path(folder, "before")
        git = ["git", "-C", str(HERE)]
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=True)


if __name__ == "__main__":
    main()
