"""(i) The cost of a superstep with a list of 1,000 and of 100,000 items in the state, compared with one of 10.

In sherma, nodes do not touch the list; in Yagra, each node receives the whole state and writes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import scenarios
from benchmarks.measure import Figure, measure_in_rounds, seconds
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

TARGETS: Mapping[str, float] = {"sherma": 1.5, "yagra": 2.0}
ROUNDS = 5
LENGTHS = (10, 1_000, 100_000)
FEW, MANY = 20, 200

Case = tuple[str, int, int]
"""The dialect, the length of the list, and the number of supersteps."""


def run() -> list[Figure]:
    """Measure runs with checks and digests. The cost of a superstep is the slope between few and many."""
    cases = [(dialect, length, steps) for dialect in TARGETS for length in LENGTHS for steps in (FEW, MANY)]
    took = measure_in_rounds({case: partial(seconds, _prepared_run(*case)) for case in cases}, ROUNDS)

    def superstep(dialect: str, length: int) -> float:
        pairs = zip(took[dialect, length, MANY], took[dialect, length, FEW], strict=True)
        return median((many - few) / (MANY - FEW) for many, few in pairs)

    figures = []
    for dialect, target in TARGETS.items():
        short = superstep(dialect, LENGTHS[0])
        for length in LENGTHS[1:]:
            title = f"a superstep in {dialect} with a list of {length:,} items / of {LENGTHS[0]}"
            figures.append(Figure("i", title, superstep(dialect, length) / short, target=target))
        figures.append(
            Figure("i", f"a superstep in {dialect} with a list of {LENGTHS[0]}", short * 1000, "ms")
        )
    return figures


def _prepared_run(dialect: str, length: int, steps: int) -> Callable[[], object]:
    scenario: dict[str, Any] = {
        "name": f"{length} items, {steps} supersteps",
        "input": {"items": list(range(length)), "last": steps},
        "expect": {"visits": {"step": steps}},
    }
    if dialect == "yagra":
        labels = [*["again"] * (steps - 1), "done"]
        scenario["handlers"] = {
            "step": [{"return": {"__next__": label}, "times": 1} for label in labels],
            "stop": {"return": {}},
        }
    with TemporaryDirectory() as folder:
        file = Path(folder) / "i.scenario.yaml"
        path = scenarios.write(file, f"items_{dialect}.yaml", [scenario], dialect=dialect)
        [loaded] = load_file(path).scenarios
    played = partial(run_scenario, loaded)
    [outcome] = played()
    assert outcome.verdict == "passed", outcome
    return played
