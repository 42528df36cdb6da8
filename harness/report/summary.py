"""What the lines of a run add up to: summary.json (docs/results.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.report.coverage import GraphCoverage
from harness.report.encoding import encode
from harness.scenario.score import pass_at_k, pass_hat_k, suite_fitness, wilson

if TYPE_CHECKING:
    import pandas as pd

Row = dict[Any, Any]

FORMAT: Final = "harness-summary/1"
_PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
_RAN: Final = ("completed", "interrupted", "failed", "timeout")
_SLOWEST: Final = 5
_MESSAGE_LENGTH: Final = 500
_REPEATS: Final = (1, 2, 3, 5, 10, 20, 50, 100)
_SCENARIO: Final = ["id", "variant"]
_SUMS: Final[dict[str, tuple[str, Any]]] = {  # figure: (column, how it is added up)
    "runs": ("id", "size"),
    "scenarios": ("scenario", "nunique"),
    "passed": ("passed", "sum"),
    "failed": ("failed", "sum"),
    "errors": ("error", "sum"),
    "skipped": ("skipped", "sum"),
    "llm_calls": ("llm_calls", "sum"),
    "input_tokens": ("input_tokens", "sum"),
    "output_tokens": ("output_tokens", "sum"),
    "cost": ("cost", math.fsum),
    "wall": ("wall", math.fsum),
    "warnings": ("warnings", "sum"),
}


def summarise(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of these lines; their order makes no difference.

    format     "harness-summary/1"
    total      a group, see `_group`; `suites`, `tags`, `dialects`, `variants`: a group by name (a run stands
               in the group of each of its tags, one without a variant in none of `variants`)
    failures   runs that did not pass and were not skipped: {id, variant, repeat, seed, verdict, score,
               checks: [{name, message}] that failed, error: text or null}
    slowest    at most five scenarios, by virtual latency: {id, variant, repeat, latency} of the slowest repeat
    coverage   by manifest, see `GraphCoverage.summary`
    """
    coverage = GraphCoverage()
    rows, failures = [], []
    for line in lines:
        coverage.add(line)
        rows.append(_row(line))
        if line["verdict"] in ("failed", "error"):
            failures.append(_failure(line))
    runs = _table(rows)
    return {
        "format": FORMAT,
        "total": _groups(runs.assign(all="total"), "all").get("total")
        or _group(dict.fromkeys(_SUMS, 0), (), {}),
        "suites": _groups(runs, "suite"),
        "tags": _groups(runs.explode("tags", ignore_index=True), "tags"),
        "dialects": _groups(runs, "dialect"),
        "variants": _groups(runs[runs["variant"] != ""], "variant"),
        "failures": sorted(failures, key=_place),
        "slowest": _slowest(runs),
        "coverage": coverage.summary(),
    }


def _row(line: Mapping[str, Any]) -> dict[str, Any]:
    verdict, usage = line["verdict"], line["usage"]
    return {
        **{name: line[name] for name in ("id", "suite", "dialect", "repeat", "verdict", "weight")},
        "variant": line["variant"] or "",
        "scenario": (line["id"], line["variant"]),
        "tags": sorted(set(line["tags"])),
        "score": line["score"] or 0.0,
        **{name: verdict == name for name in ("passed", "failed", "error", "skipped")},
        "ran": verdict in ("passed", "failed") and line["status"] in _RAN,
        "latency": line["latency"]["total"] or 0.0,
        "wall": line["wall"] or 0.0,
        "warnings": len(line["warnings"]),
        **{name: usage[name] or 0 for name in ("llm_calls", "input_tokens", "output_tokens", "cost")},
    }


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """One row a run; with all its columns also when there is none. Counts of tokens may be of any size."""
    import pandas as pd

    types = dict.fromkeys(("id", "suite", "dialect", "variant", "verdict"), "str")
    types |= {"scenario": "object", "tags": "object", "warnings": "int64"}
    types |= dict.fromkeys(("passed", "failed", "error", "skipped", "ran"), "bool")
    types |= dict.fromkeys(("repeat", "llm_calls", "input_tokens", "output_tokens"), "object")
    types |= dict.fromkeys(("weight", "score", "latency", "wall", "cost"), "float64")
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _groups(runs: pd.DataFrame, by: str) -> dict[str, Any]:
    """A group for each value of a column, sorted; runs without a value are in none."""
    import pandas as pd

    if runs[by].isna().all():
        return {}
    sums = runs.groupby(by).agg(**_SUMS)
    judged = runs[~runs["skipped"]]
    scenarios = judged.groupby([by, *_SCENARIO], as_index=False).agg(
        runs=("passed", "size"),
        passed=("passed", "sum"),
        verdicts=("verdict", "nunique"),
        score=("score", math.fsum),
        weight=("weight", "max"),
    )
    repeats: dict[Any, list[Row]] = {name: table.to_dict("records") for name, table in scenarios.groupby(by)}
    ran = runs[runs["ran"]].groupby(by)["latency"]
    shares = pd.Index(list(_PERCENTILES.values()))
    latency: dict[Any, Row] = ran.quantile(shares).unstack().to_dict("index") if len(ran) else {}
    return {
        str(name): _group(row, repeats.get(name, ()), latency.get(name, {}))
        for name, row in sums.to_dict("index").items()
    }


def _group(sums: Row, scenarios: Sequence[Row], latency: Row) -> dict[str, Any]:
    """The figures of one group of runs, from its sums, its scenarios that were judged, and percentiles.

    runs = passed + failed + errors + skipped; `scenarios` counts a scenario once for each variant.
    pass_rate is passed ÷ (runs - skipped), with its 95 % Wilson interval; null when nothing was judged.
    fitness is Σ weight × score ÷ Σ weight over scenarios, a scenario's score being the mean of its repeats,
    so that repeating it does not make it heavier.
    latency has percentiles of the total virtual seconds of runs that were judged; wall is in real seconds.
    pass_at_k and pass_hat_k have, by k, the mean over the scenarios with at least k repeats.
    """
    judged = int(sums["runs"] - sums["skipped"])
    counts = [(int(scenario["runs"]), int(scenario["passed"])) for scenario in scenarios]
    scores = [(scenario["weight"], scenario["score"] / scenario["runs"]) for scenario in scenarios]
    tokens = {kind: int(sums[f"{kind}_tokens"]) for kind in ("input", "output")}
    return {
        **{name: int(sums[name]) for name in ("runs", "scenarios", "passed", "failed", "errors", "skipped")},
        "pass_rate": int(sums["passed"]) / judged if judged else None,
        "pass_rate_interval": list(wilson(int(sums["passed"]), judged)),
        "fitness": suite_fitness(scores) if judged else None,
        "latency": {name: latency.get(share) for name, share in _PERCENTILES.items()},
        "wall": float(sums["wall"]),
        "llm_calls": int(sums["llm_calls"]),
        "tokens": tokens | {"total": sum(tokens.values())},
        "cost": float(sums["cost"]),
        "warnings": int(sums["warnings"]),
        "flaky": [
            _named(scenario) | {"passed": passed, "runs": runs}
            for scenario, (runs, passed) in zip(scenarios, counts, strict=True)
            if scenario["verdicts"] > 1
        ],
        "pass_at_k": _over_repeats(pass_at_k, counts),
        "pass_hat_k": _over_repeats(pass_hat_k, counts),
    }


def _over_repeats(
    formula: Callable[[int, int, int], float], counts: Sequence[tuple[int, int]]
) -> dict[str, float]:
    most = max((runs for runs, _ in counts), default=0)
    shown = dict.fromkeys([k for k in _REPEATS if k < most] + [most] * (most > 0))
    values = {k: [formula(runs, passed, k) for runs, passed in counts if runs >= k] for k in shown}
    return {str(k): math.fsum(of_k) / len(of_k) for k, of_k in values.items()}


def _named(row: Row) -> dict[str, Any]:
    return {"id": row["id"], "variant": row["variant"] or None}


def _failure(line: Mapping[str, Any]) -> dict[str, Any]:
    error = line["error"]
    text = f"{error['type']}: {error['message']}" if error else line.get("reason") or None
    return {
        **{name: line[name] for name in ("id", "variant", "repeat", "seed", "verdict", "score")},
        "checks": [
            {"name": check["name"], "message": check["message"][:_MESSAGE_LENGTH]}
            for check in line["checks"]
            if not check["passed"]
        ],
        "error": text[:_MESSAGE_LENGTH] if text else None,
    }


def _place(failure: Mapping[str, Any]) -> tuple[Any, ...]:
    return failure["id"], failure["variant"] or "", failure["repeat"], encode(failure)


def _slowest(runs: pd.DataFrame) -> list[dict[str, Any]]:
    order = {"latency": False, "id": True, "variant": True, "repeat": True}
    by_latency = runs[runs["ran"]].sort_values(list(order), ascending=list(order.values()))
    slowest = by_latency.drop_duplicates(_SCENARIO).head(_SLOWEST).to_dict("records")
    return [_named(run) | {"repeat": int(run["repeat"]), "latency": float(run["latency"])} for run in slowest]
