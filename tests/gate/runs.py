"""Runs as the real writer leaves them, from a few words about each scenario."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.report.encoding import encode
from harness.report.reading import RESULTS
from harness.report.results import ResultsWriter, record
from harness.report.summary import summarise
from harness.scenario.outcome import CheckResult, Observation, Outcome


@dataclass(frozen=True)
class Said:
    """What a scenario did in each of its repeats. `failed` has the checks that did not hold."""

    verdict: str | Sequence[str] = "passed"
    score: float | Sequence[float] | None = None
    latency: float | Sequence[float] = 1.0
    tokens: int | Sequence[int] = 100
    cost: float | Sequence[float | None] | None = 0.01
    failed: Mapping[str, str] = field(default_factory=dict)
    repeats: int = 1
    weight: float = 1.0
    varies: bool = False
    suite: str = "a.scenario.yaml"
    manifest: str = "triage.yaml"
    tags: Sequence[str] = ()
    variant: str | None = None
    taken: Sequence[str] = ("classify", "answer")
    nodes: Sequence[str] = ("classify", "answer")


def write_run(
    folder: Path, scenarios: Mapping[str, Said], *, incomplete: str = "", backwards: bool = False
) -> Path:
    """The folder of a run with these scenarios, by name."""
    outcomes = _outcomes(scenarios)
    with ResultsWriter(folder) as writer:
        for outcome in reversed(outcomes) if backwards else outcomes:
            writer.add(outcome)
        writer.finish(incomplete)
    return folder


def write_lines(folder: Path, scenarios: Mapping[str, Said], *, order: random.Random | None = None) -> Path:
    """The same with what is read of it only: a property writes hundreds of runs."""
    folder.mkdir(exist_ok=True)
    lines = [record(outcome).line for outcome in _outcomes(scenarios)]
    if order is not None:
        order.shuffle(lines)
    (folder / RESULTS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    summary = summarise(map(json.loads, lines))
    (folder / "summary.json").write_text(encode(summary), encoding="utf-8")
    return folder


def _outcomes(scenarios: Mapping[str, Said]) -> list[Outcome]:
    return [
        _outcome(name, said, repeat) for name, said in scenarios.items() for repeat in range(said.repeats)
    ]


def _outcome(name: str, said: Said, repeat: int) -> Outcome:
    def of_repeat(value: Any) -> Any:
        return value[repeat] if isinstance(value, list | tuple) else value

    verdict, score, cost = of_repeat(said.verdict), of_repeat(said.score), of_repeat(said.cost)
    tokens = of_repeat(said.tokens)
    counts = {"llm_calls": 1, "input_tokens": tokens, "output_tokens": 0, "cost": cost}
    observed = Observation(
        status="skipped" if verdict == "skipped" else "invalid" if verdict == "error" else "completed",
        path=list(said.taken),
        latency={"total": of_repeat(said.latency), "nodes": {}},
        usage={**counts, "cost": cost or 0.0, "by_model": {"gpt-4o": counts}},
    )
    checks = [
        CheckResult(name=check, passed=False, score=0.0, weight=1.0, expected=1, actual=2, message=message)
        for check, message in said.failed.items()
        if verdict != "passed" or (score is not None and score < 1)
    ]
    return Outcome(
        suite=said.suite,
        scenario=name,
        manifest=said.manifest,
        dialect="sherma",
        agent="triage",
        observed=observed,
        verdict=verdict,
        score=score if score is not None else float(verdict == "passed"),
        weight=said.weight,
        checks=checks,
        variant=said.variant,
        tags=list(said.tags),
        repeat=repeat,
        seed=repeat,
        varies=said.varies,
        coverage={"nodes": list(said.taken), "edges": [], "branches": []},
        shape={"nodes": list(said.nodes), "edges": [], "branches": []},
    )
