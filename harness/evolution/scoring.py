"""The score of a genome, from the results of its scenarios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness.evolution.lineage import Score
from harness.evolution.mutator import limit_failures
from harness.scenario.score import suite_fitness

_UNSCRIPTED_CALL: Final = "UnscriptedCall"
"""Error that a genome may cause: with it the agent may make a call that no stub answers."""


def score_of(lines: Iterable[Mapping[str, Any]], fitness_function: str) -> Score:
    """Return the score of a genome from the results of its scenarios.

    With the fitness function `pass_rate`, a scenario scores the share of its repeats that passed.
    """
    scores: dict[str, list[float]] = {}
    weights: dict[str, float] = {}
    failures: list[str] = []
    unjudged: dict[str, None] = {}
    calls, costs = 0, []
    for line in lines:
        calls += line["usage"]["llm_calls"] or 0
        costs.append(line["usage"]["cost"] or 0.0)
        if line["verdict"] == "skipped":
            continue
        judged = line["verdict"] != "error"
        value = float(line["verdict"] == "passed") if fitness_function == "pass_rate" else line["score"]
        scores.setdefault(line["id"], []).append(min(value, 1.0) if judged else 0.0)
        weights[line["id"]] = line["weight"]
        if not judged:
            unjudged[line["id"]] = None
            failures.append(f"{line['scenario']}: {line['cause']}")
        failures += [
            f"{line['scenario']}: {check['name']}: {check['message']}"
            for check in line["checks"]
            if not check["passed"]
        ]
    means = {id_: math.fsum(values) / len(values) for id_, values in scores.items()}
    return Score(
        suite_fitness((weights[id_], mean) for id_, mean in means.items()),
        means,
        limit_failures(failures),
        calls,
        math.fsum(costs),
        tuple(unjudged),
    )


def environment_failure(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return why scenarios could not be judged for a reason other than the genome; "" if there is no such reason."""
    for line in lines:
        error = line["error"] or {}
        of_genome = error.get("type") == _UNSCRIPTED_CALL or line["status"] == "invalid"
        if line["verdict"] == "error" and not of_genome:
            return f"{line['id']}: {line['cause'] or error.get('message') or line['status']}"
    return ""


def unpriced(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the models that were called and have no known price."""
    found = {
        model: None
        for line in lines
        for model, usage in line["usage"]["by_model"].items()
        if usage.get("cost", 0.0) is None
    }
    return list(found)
