"""(t) The gate on a run of 10,000 scenarios, ten repeats each, against another."""

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
from harness.statistics.paired_difference import paired_difference
from harness.statistics.ratio_interval import PairedValues

COUNT, REPEATS = 10_000, 10
ROUNDS = 3
DIFFERENCE_TARGET_S, GATE_TARGET_S = 2.0, 30.0
DIFFERENCE_TARGET_MB, GATE_TARGET_MB = 100.0, 400.0
RULES = Rules(no_new_failures=True, max_fitness_drop=0.01, max_latency_increase=0.1, max_tokens_increase=0.1)


def run() -> list[Figure]:
    """Measure the comparison of scores, and the whole gate."""
    source = random.Random(0)
    many = [PairedValues([(source.random(), source.random()) for _ in range(REPEATS)]) for _ in range(COUNT)]
    compared = lambda: paired_difference(many)  # noqa: E731
    took = [seconds(compared) for _ in range(ROUNDS)]
    what = f"{COUNT:,} scenarios × {REPEATS}"
    return [
        Figure("t", f"the difference of {what}", median(took), "s", DIFFERENCE_TARGET_S),
        Figure("t", f"the difference of {what}, memory", _peak(compared), "MB", DIFFERENCE_TARGET_MB),
        *_gate(what),
    ]


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
