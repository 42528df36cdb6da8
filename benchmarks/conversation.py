"""(b) The cost of a step in a conversation of 1,000 messages, compared with one of 10."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import bare, scenarios
from benchmarks.measure import Figure, measure_in_rounds, seconds
from harness.scenario.load import load_file
from harness.scenario.run import run_once
from harness.settings import Settings

TARGET = 1.2
ROUNDS = 15
RUNS = 5
LENGTHS = (10, 1000)
FEW, MANY = 2, 20

Case = tuple[str, int, int]
"""`harness` or `bare`, the number of messages at the start, and the number of rounds."""


def run() -> list[Figure]:
    """Measure, and return the figures. The cost of a step is the slope between few rounds and many."""
    took = measure_in_rounds({case: partial(seconds, work, RUNS) for case, work in _cases().items()}, ROUNDS)

    def step(who: str, length: int) -> float:
        many, few = took[who, length, MANY], took[who, length, FEW]
        return median((a - b) / (MANY - FEW) for a, b in zip(many, few, strict=True))

    def whole(who: str, length: int) -> float:
        return median(took[who, length, MANY])

    short, long = LENGTHS
    ratio = step("harness", long) / step("harness", short)
    return [
        Figure("b", f"a step with {long} messages / with {short}", ratio, target=TARGET),
        Figure("b", "the same on bare LangGraph (add_messages)", step("bare", long) / step("bare", short)),
        Figure(
            "b",
            f"a whole run with {long} messages / with {short}",
            whole("harness", long) / whole("harness", short),
        ),
        Figure("b", f"a step with {short} messages", step("harness", short) * 1000, "ms"),
        Figure("b", f"a step with {short} messages on bare LangGraph", step("bare", short) * 1000, "ms"),
    ]


def _cases() -> dict[Case, Callable[[], object]]:
    graph = bare.chat()
    cases: dict[Case, Callable[[], object]] = {}
    for length in LENGTHS:
        for count in (MANY, FEW):
            cases["harness", length, count] = _prepared_run(length, count)
            replies = scenarios.rounds(count)
            cases["bare", length, count] = partial(bare.run_chat, graph, scenarios.history(length), replies)
    return cases


def _prepared_run(length: int, count: int) -> Callable[[], object]:
    with TemporaryDirectory() as folder:
        path = scenarios.write(Path(folder) / "b.scenario.yaml", "chat.yaml", [scenarios.chat(length, count)])
        [scenario] = load_file(path).scenarios
    played = partial(run_once, scenario, Settings(), seed=0)
    assert played().observed.visits == {"talk": count}, played().observed.error
    return played
