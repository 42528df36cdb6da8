"""The score in the format "harness-score/1" (docs/variants.md, "Exit codes and score.json")."""

from __future__ import annotations

import math
from typing import Any, Final

from harness.variants.comparison import Score, VariantScore

FORMAT: Final = "harness-score/1"


def score_json(score: Score) -> dict[str, Any]:
    """Return the score as JSON data."""
    return {
        "format": FORMAT,
        "baseline": score.baseline,
        "variants": [_variant(each) for each in score.variants],
        "changed": [
            {
                "id": each.id,
                "variant": each.variant,
                "before": each.before,
                "after": each.after,
                "verdicts": list(each.verdicts),
                "checks": list(each.checks),
            }
            for each in score.changed
        ],
        "pareto": list(score.pareto),
    }


def _variant(scored: VariantScore) -> dict[str, Any]:
    group = scored.group
    return {
        "name": scored.name,
        "runs": scored.runs,
        "distinct_runs": group["distinct_runs"],
        "pass_rate": group["pass_rate"],
        "fitness": group["fitness"],
        "latency": {"p50": group["latency"]["p50"], "p95": group["latency"]["p95"]},
        "tokens": group["tokens"]["total"],
        "cost": group["cost"],
        "not_judged": scored.not_judged,
        "left_out": scored.left_out,
        "answers": dict(scored.answers),
        "difference": _difference(scored),
        "confidence": None if scored.difference is None else 1 - scored.level,
        "undone_by": scored.undone_by,
        "risk": None if scored.risk is None else scored.risk._asdict(),
        "note": scored.why or None,
        "stopped": None if scored.stopped is None else str(scored.stopped),
        "race": None if scored.stopped is None else scored.stopped._asdict(),
    }


def _difference(scored: VariantScore) -> dict[str, Any] | None:
    difference, (low, high) = scored.difference, scored.interval or (math.inf, math.inf)
    if difference is None:
        return None
    return {
        "fitness": difference.estimate,
        "low": _finite(low),
        "high": _finite(high),
        "p": difference.p if scored.corrected is None else scored.corrected,
        "verdict": scored.verdict,
        "scenarios": difference.scenarios,
        "needed": _more_scenarios(scored),
        "needed_repeats": scored.needed.repeats if scored.needed else None,
    }


def _more_scenarios(scored: VariantScore) -> int | None:
    """Return the number of new scenarios that the verdict needs; 0 if there is a verdict."""
    if scored.needed is not None:
        return scored.needed.scenarios
    return 0 if scored.verdict in ("better", "worse") else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
