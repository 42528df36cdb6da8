"""(t) The gate on a run of 10,000 scenarios, ten repeats each, against another; and the coverage of its intervals.

A 95 % interval should contain the true change in 93 to 97 % of runs. The figure is the largest deviation from
95, in percentage points, over several kinds of scenarios. For kinds in which a few scenarios break, which a
sample may miss, it is the largest shortfall, for information.
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
from harness.statistics.relative_change import PairedValues, relative_change

COUNT, REPEATS = 10_000, 10
ROUNDS = 3
BOOTSTRAP_TARGET_S, GATE_TARGET_S = 2.0, 30.0
BOOTSTRAP_TARGET_MB, GATE_TARGET_MB = 100.0, 400.0
TRIALS = 2_000
OFF_TARGET = 2.5
"""Two points, plus half a point of sampling error for this number of trials."""
RULES = Rules(no_new_failures=True, max_fitness_drop=0.01, max_latency_increase=0.1, max_tokens_increase=0.1)

Draw = Callable[[random.Random, int], list[PairedValues]]


def run() -> list[Figure]:
    """Measure the bootstrap, the whole gate and the coverage of the intervals."""
    many = _passing(0.0, REPEATS)(random.Random(0), COUNT)
    took = [seconds(lambda: relative_change(many)) for _ in range(ROUNDS)]
    what = f"{COUNT:,} scenarios × {REPEATS}"
    figures = [
        Figure("t", f"the bootstrap of {what}", median(took), "s", BOOTSTRAP_TARGET_S),
        Figure(
            "t",
            f"the bootstrap of {what}, memory",
            _peak(lambda: relative_change(many)),
            "MB",
            BOOTSTRAP_TARGET_MB,
        ),
        *_gate(what),
    ]
    for title, (draw, change) in KINDS.items():
        off = max(abs(_coverage(draw, change, n) - 95) for n in (10, 20, 30))
        figures.append(Figure("t", f"intervals of 10, 20, 30 scenarios: {title}", off, "points", OFF_TARGET))
    for title, (draw, change) in BREAKING.items():
        short = max(0.0, *(95 - _coverage(draw, change, n) for n in (10, 20, 30)))
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
    """Write a run with the line of one scenario repeated under other names and with random figures."""
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
    """Return the peak memory of `work`, in MB."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _coverage(draw: Draw, change: float, n: int) -> float:
    """Return the percentage of runs of `n` scenarios whose interval contains the true change."""
    source, held = random.Random(n), 0
    for _ in range(TRIALS):
        found = relative_change(draw(source, n))
        held += found.low - 1e-9 <= change <= found.high + 1e-9
    return 100 * held / TRIALS


def _passing(drop: float, repeats: int, share: float = 1.0, *, alpha: float = 9) -> Draw:
    """Return a generator of scenarios that pass 90 % of runs on average; `drop` lowers this for a `share` of them."""

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
    """Return a generator of scenarios with skewed latency, between scenarios and between repeats."""

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
    """Return a generator of scenarios that always pass; after the change a `share` of them always fails."""

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
