"""Runs written by the real writer from a few words about each scenario."""

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
class RunSpec:
    """The results of a scenario, constant or one value per repeat. `failed` has the failed checks."""

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
    folder: Path, scenarios: Mapping[str, RunSpec], *, incomplete: str = "", backwards: bool = False
) -> Path:
    """Write a run with these scenarios, by name, and return its folder."""
    outcomes = outcomes_of(scenarios)
    with ResultsWriter(folder) as writer:
        for outcome in reversed(outcomes) if backwards else outcomes:
            writer.add(outcome)
        writer.finish(incomplete)
    return folder


def write_lines(
    folder: Path, scenarios: Mapping[str, RunSpec], *, order: random.Random | None = None
) -> Path:
    """Write only the fields that are read, for properties that write hundreds of runs."""
    folder.mkdir(exist_ok=True)
    lines = [record(outcome).line for outcome in outcomes_of(scenarios)]
    if order is not None:
        order.shuffle(lines)
    (folder / RESULTS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    summary = summarise(map(json.loads, lines))
    (folder / "summary.json").write_text(encode(summary), encoding="utf-8")
    return folder


def outcomes_of(scenarios: Mapping[str, RunSpec]) -> list[Outcome]:
    """Return the outcome of each repeat of these scenarios."""
    return [
        _outcome(name, spec, repeat) for name, spec in scenarios.items() for repeat in range(spec.repeats)
    ]


def _outcome(name: str, spec: RunSpec, repeat: int) -> Outcome:
    def of_repeat(value: Any) -> Any:
        return value[repeat] if isinstance(value, list | tuple) else value

    verdict, score, cost = of_repeat(spec.verdict), of_repeat(spec.score), of_repeat(spec.cost)
    tokens = of_repeat(spec.tokens)
    counts = {"llm_calls": 1, "input_tokens": tokens, "output_tokens": 0, "cost": cost}
    observed = Observation(
        status="skipped" if verdict == "skipped" else "invalid" if verdict == "error" else "completed",
        path=list(spec.taken),
        latency={"total": of_repeat(spec.latency), "nodes": {}},
        usage={**counts, "cost": cost or 0.0, "by_model": {"gpt-4o": counts}},
    )
    checks = [
        CheckResult(name=check, passed=False, score=0.0, weight=1.0, expected=1, actual=2, message=message)
        for check, message in spec.failed.items()
        if verdict != "passed" or (score is not None and score < 1)
    ]
    return Outcome(
        suite=spec.suite,
        scenario=name,
        manifest=spec.manifest,
        dialect="sherma",
        agent="triage",
        observed=observed,
        verdict=verdict,
        score=score if score is not None else float(verdict == "passed"),
        weight=spec.weight,
        checks=checks,
        variant=spec.variant,
        tags=list(spec.tags),
        repeat=repeat,
        seed=repeat,
        varies=spec.varies,
        coverage={"nodes": list(spec.taken), "edges": [], "branches": []},
        shape={"nodes": list(spec.nodes), "edges": [], "branches": []},
    )
