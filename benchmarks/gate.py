"""(t) Judging a run of 10,000 scenarios, ten times each, against another; and how often its intervals hold.

An interval of 95 % is to hold the true change in 93 to 97 % of runs: the figure is how far it is off, in
percentage points, in the worst of some kinds of scenarios. Where some break that a sample may not have, it is how
far the interval is short of it, for information.
"""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import scenarios
from benchmarks.measure import Figure, seconds
from harness.gate.judge import judge
from harness.gate.policy import Policy, Rules
from harness.report.reading import RESULTS
from harness.report.results import ResultsWriter
from harness.report.summary import Summary
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from harness.statistics.paired_bootstrap import PairedValues, paired_bootstrap

COUNT, REPEATS = 10_000, 10
ROUNDS = 3
BOOTSTRAP_TARGET_S, GATE_TARGET_S = 2.0, 30.0
BOOTSTRAP_TARGET_MB, GATE_TARGET_MB = 100.0, 400.0
TRIALS = 2_000
OFF_TARGET = 2.5
"""Two points, and half a point that so many trials are off by themselves."""
RULES = Rules(no_new_failures=True, max_fitness_drop=0.01, max_latency_increase=0.1, max_tokens_increase=0.1)

Draw = Callable[[random.Random, int], list[PairedValues]]


def run() -> list[Figure]:
    """What the bootstrap and the whole gate take, and what the intervals are worth."""
    many = _passing(0.0, REPEATS)(random.Random(0), COUNT)
    took = [seconds(lambda: paired_bootstrap(many)) for _ in range(ROUNDS)]
    what = f"{COUNT:,} scenarios × {REPEATS}"
    figures = [
        Figure("t", f"the bootstrap of {what}", median(took), "s", BOOTSTRAP_TARGET_S),
        Figure(
            "t",
            f"the bootstrap of {what}, memory",
            _peak(lambda: paired_bootstrap(many)),
            "MB",
            BOOTSTRAP_TARGET_MB,
        ),
        *_gate(what),
    ]
    for title, (draw, change) in KINDS.items():
        off = max(abs(_held(draw, change, n) - 95) for n in (10, 20, 30))
        figures.append(Figure("t", f"intervals of 10, 20, 30 scenarios: {title}", off, "points", OFF_TARGET))
    for title, (draw, change) in BREAKING.items():
        short = max(0.0, *(95 - _held(draw, change, n) for n in (10, 20, 30)))
        figures.append(Figure("t", f"intervals of 10, 20, 30 scenarios, short: {title}", short, "points"))
    return figures


def _gate(what: str) -> list[Figure]:
    with TemporaryDirectory() as folder:
        before, after = (_write(Path(folder, name), seed) for seed, name in enumerate(("before", "after")))
        judged = lambda: judge(after, Policy(RULES), before)  # noqa: E731
        took, peak = seconds(judged), _peak(judged)
    return [
        Figure("t", f"harness gate of {what} against as many", took, "s", GATE_TARGET_S),
        Figure("t", f"harness gate of {what}, memory", peak, "MB", GATE_TARGET_MB),
    ]


def _write(folder: Path, seed: int) -> Path:
    """A run with the lines of one scenario, each with a name and figures of its own."""
    folder.mkdir()
    file = scenarios.write(folder / "one.scenario.yaml", "triage.yaml", [scenarios.triage(1)])
    with ResultsWriter(folder) as writer:
        for outcome in run_scenario(load_file(file).scenarios[0]):
            writer.add(outcome)
    line, draw, sums = (
        json.loads((folder / RESULTS).read_text(encoding="utf-8")),
        random.Random(seed),
        Summary(),
    )
    with (folder / RESULTS).open("w", encoding="utf-8") as results:
        for number in range(COUNT * REPEATS):
            name = f"number {number // REPEATS}"
            line |= {
                "scenario": name,
                "id": f"one.scenario.yaml::{name}",
                "repeat": number % REPEATS,
                "varies": True,
            }
            line["score"], line["latency"]["total"] = draw.random(), draw.lognormvariate(0, 1)
            line["trace"] = None
            sums.add(line)
            results.write(json.dumps(line) + "\n")
    (folder / "summary.json").write_text(json.dumps(sums.as_json()), encoding="utf-8")
    return folder


def _peak(work: Callable[[], object]) -> float:
    """The most memory that it takes at once, in MB."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _held(draw: Draw, change: float, n: int) -> float:
    """In how many of a hundred runs of `n` scenarios the interval holds the true change."""
    source, held = random.Random(n), 0
    for _ in range(TRIALS):
        found = paired_bootstrap(draw(source, n), resamples=1_000)
        held += found.low - 1e-9 <= change <= found.high + 1e-9
    return 100 * held / TRIALS


def _passing(drop: float, repeats: int, share: float = 1.0, *, alpha: float = 9) -> Draw:
    """Scenarios that pass nine times in ten in the mean; a `share` of them passes less often by `drop` afterwards."""

    def drawn(source: random.Random, n: int) -> list[PairedValues]:
        found = []
        for _ in range(n):
            chance = source.betavariate(alpha, 1)
            later = chance * (1 - drop) if source.random() < share else chance
            pairs = [
                (float(source.random() < chance), float(source.random() < later)) for _ in range(repeats)
            ]
            found.append(PairedValues(pairs))
        return found

    return drawn


def _slow(increase: float, spread: float, repeats: int) -> Draw:
    """Scenarios whose latency is skewed, between scenarios and between repeats."""

    def drawn(source: random.Random, n: int) -> list[PairedValues]:
        bases = [source.lognormvariate(0, spread) for _ in range(n)]
        return [
            PairedValues(
                [
                    (
                        base * source.lognormvariate(0, 0.3),
                        base * (1 + increase) * source.lognormvariate(0, 0.3),
                    )
                    for _ in range(repeats)
                ]
            )
            for base in bases
        ]

    return drawn


def _breaking(share: float) -> Draw:
    """Scenarios that always pass; a `share` of them always fails afterwards."""

    def drawn(source: random.Random, n: int) -> list[PairedValues]:
        return [PairedValues([(1.0, float(source.random() >= share))]) for _ in range(n)]

    return drawn


KINDS: dict[str, tuple[Draw, float]] = {
    "0/1, no change, 3 repeats": (_passing(0.0, 3), 0.0),
    "0/1, no change, 10 repeats": (_passing(0.0, 10), 0.0),
    "0/1, passing less often, no change": (_passing(0.0, 5, alpha=2), 0.0),
    "0/1, all 20 % worse": (_passing(0.2, 5), -0.2),
    "0/1, half of them 50 % worse": (_passing(0.5, 5, 0.5), -0.25),
    "latency, 20 % more": (_slow(0.2, 0.5, 3), 0.2),
    "latency, 20 % more, of much faster and slower scenarios": (_slow(0.2, 1.0, 3), 0.2),
}
BREAKING: dict[str, tuple[Draw, float]] = {
    "0/1, one in ten breaks, 1 repeat": (_passing(1.0, 1, 0.1), -0.1),
    "0/1, one in ten breaks, 5 repeats": (_passing(1.0, 5, 0.1), -0.1),
    "always passing, one in ten breaks": (_breaking(0.1), -0.1),
}
