"""Rules on the figures of one run, without a baseline."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import fsum
from pathlib import Path
from typing import Any, Final

from harness.gate.rule import TOLERANCE, Amount, Count, GateRule, MinCoverage, NothingToJudge, Share, plain
from harness.gate.ruling import AffectedScenario, Part, Ruling
from harness.report.figures import LATENCIES, Figure
from harness.report.formatting import dollars, p_value, percent, plural, seconds, some_of, unpriced
from harness.report.history.file import read_history
from harness.report.history.record import RunRecord
from harness.report.repeats import NOT_PASSED
from harness.report.scenario_runs import Repeat, ScenarioRuns
from harness.source.document import shown_path
from harness.statistics.betting import Bets

_MAX_MISSING: Final = 10


def min_pass_rate(part: Part, bound: float) -> Ruling:
    """Judge the share of runs that passed; repeats that cannot differ count once."""
    rate = _figure_of(part, "pass_rate")
    blamed = [_by_verdict(part, each) for each in part.scenarios if each.verdict in NOT_PASSED]
    return Ruling("min_pass_rate", part.scope, rate, bound, rate >= bound - TOLERANCE, scenarios=blamed)


def min_fitness(part: Part, bound: float) -> Ruling:
    """Judge the weighted mean of the scores."""
    fitness = _figure_of(part, "fitness")
    lost = [each for each in part.scenarios if each.verdict != "skipped" and each.score < 1]
    lost.sort(key=lambda scenario: -scenario.weight * (1 - scenario.score))
    return Ruling(
        "min_fitness", part.scope, fitness, bound, fitness >= bound - TOLERANCE,
        scenarios=[_by_figure(part, each, lambda repeats: _mean(_values_of(repeats, "score"))) for each in lost],
    )  # fmt: skip


def max_latency(percentile: Figure, part: Part, bound: float) -> Ruling:
    """Judge a percentile of the virtual latency."""
    rule = f"max_{percentile.label}_latency"
    value = percentile.of(part.group)
    if value is None:
        return Ruling(rule, part.scope, None, bound, False, note="no run finished")
    slow = [(_slowest(each.repeats.values()) or 0.0, each) for each in part.scenarios]
    slow = sorted((found for found in slow if found[0] > bound), key=lambda found: -found[0])
    return Ruling(
        rule, part.scope, value, bound, value <= bound + TOLERANCE,
        scenarios=[_by_figure(part, each, _slowest) for _, each in slow],
    )  # fmt: skip


def _slowest(repeats: Iterable[Repeat]) -> float | None:
    return max(_values_of(repeats, "latency"), default=None)


def max_cost(part: Part, bound: float) -> Ruling:
    """Judge the cost of all model calls. If a price is not known, the cost may exceed any bound."""
    value = float(part.group["cost"])
    if value <= bound + TOLERANCE and (text := unpriced(part.group)):
        raise NothingToJudge(f"what the run costs is not known: {text}", "add it to [tool.harness.prices]")
    return _sum("max_cost", "cost", value, part, bound)


def max_tokens(part: Part, bound: float) -> Ruling:
    """Judge the input and output tokens of all model calls."""
    return _sum("max_tokens", "tokens", part.group["tokens"]["total"], part, bound)


def _sum(rule: str, figure: str, value: float, part: Part, bound: float) -> Ruling:
    def total(repeats: Iterable[Repeat]) -> float:
        return fsum(_values_of(repeats, figure))

    calls, tokens = part.group["llm_calls"], part.group["tokens"]["total"]
    note = f"{plural(calls, 'call')} of models, none of which reports tokens" if calls and not tokens else ""
    largest = sorted(part.scenarios, key=lambda scenario: -total(scenario.repeats.values()))
    blamed = [_by_figure(part, each, total) for each in largest if total(each.repeats.values())]
    return Ruling(rule, part.scope, value, bound, value <= bound + TOLERANCE, scenarios=blamed, note=note)


def max_flaky(part: Part, bound: int) -> Ruling:
    """Judge the number of scenarios whose repeats have different verdicts."""
    flaky = [each for each in part.scenarios if len({repeat.verdict for repeat in each.repeats.values()}) > 1]
    repeated = any(len(each.repeats) > 1 for each in part.scenarios)
    return Ruling(
        "max_flaky", part.scope, len(flaky), bound, len(flaky) <= bound,
        scenarios=[_by_figure(part, each, _passed) for each in flaky],
        note="" if repeated else "no scenario ran more than once",
    )  # fmt: skip


def max_errors(part: Part, bound: int) -> Ruling:
    """Judge the number of scenarios that could not be judged."""
    errors = [each for each in part.scenarios if each.verdict == "error"]
    blamed = [_by_verdict(part, scenario) for scenario in errors]
    return Ruling("max_errors", part.scope, len(errors), bound, len(errors) <= bound, scenarios=blamed)


def min_coverage(part: Part, bound: MinCoverage) -> Ruling:
    """Judge the smallest coverage of any graph, in nodes, edges and branches. Graphs without any are skipped."""
    if not part.coverage:
        raise NothingToJudge("no graph ran that could be covered")
    worst: dict[str, float | None] = {}
    details = []
    for kind, least in bound.bounds.items():
        graphs = {manifest: parts[kind] for manifest, parts in part.coverage.items() if parts[kind]["all"]}
        shares = {manifest: counts["taken"] / counts["all"] for manifest, counts in graphs.items()}
        worst[kind] = min(shares.values(), default=None)
        short = sorted((share, manifest) for manifest, share in shares.items() if share < least - TOLERANCE)
        details += [_short_of(part, kind, manifest, share, graphs[manifest]) for share, manifest in short]
    nothing = [kind for kind, share in worst.items() if share is None]
    note = f"no graph has {' or '.join(nothing)}" if nothing else ""
    return Ruling("min_coverage", part.scope, worst, bound.bounds, not details, note=note, details=details)


def _short_of(part: Part, kind: str, manifest: str, share: float, counts: dict[str, Any]) -> str:
    then = part.baseline.coverage.get(manifest) if part.baseline else None
    before = f"{percent(then[kind][0] / then[kind][1])} → " if then and then[kind][1] else ""
    missing = [_step(item) for item in counts["missing"]]
    return f"{manifest}: {before}{percent(share)} of its {kind}; not {some_of(missing, _MAX_MISSING)}"


def _step(item: Any) -> str:
    return " → ".join(map(str, item)) if isinstance(item, list) else str(item)


def _figure_of(part: Part, figure: str) -> float:
    value = part.group[figure]
    if value is None:
        raise NothingToJudge("no scenario was judged: all were skipped")
    return float(value)


def _by_verdict(part: Part, scenario: ScenarioRuns) -> AffectedScenario:
    pair = part.pairs_by_key.get(scenario.key)
    return AffectedScenario.of(scenario, pair, pair.before.verdict if pair else None, scenario.verdict)


def _by_figure(part: Part, scenario: ScenarioRuns, of: Callable[[Iterable[Repeat]], Any]) -> AffectedScenario:
    pair = part.pairs_by_key.get(scenario.key)
    before = of(pair.before.repeats.values()) if pair else None
    return AffectedScenario.of(scenario, pair, before, of(scenario.repeats.values()))


def _values_of(repeats: Iterable[Repeat], figure: str) -> list[float]:
    values = (getattr(repeat, figure) for repeat in repeats)
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _passed(repeats: Iterable[Repeat]) -> str:
    verdicts = [repeat.verdict for repeat in repeats]
    return f"{verdicts.count('passed')} of {len(verdicts)} passed"


_SEED: Final = 0
_DIGITS: Final = 6
"""Decimals of the scores in a history."""


def no_drift(part: Part, confidence: float, history: Path | None) -> Ruling:
    """Judge the fitness of the scenarios of this part over the whole runs of the history that have all of them.

    Raises:
        NothingToJudge: there is no history, or the run is not the last one of it.
    """
    if history is None:
        raise NothingToJudge("no history is configured", "`history` in [tool.harness] names one")
    scores = {each.label: each.score for each in part.scenarios if each.verdict != "skipped"}
    runs = [run for run in read_history(history) if run.complete and scores.keys() <= run.scenarios.keys()]
    if not scores or not runs or not _is_run(runs[-1], scores):
        where = f"the run is not the last whole one of {shown_path(history)}"
        raise NothingToJudge(where, "`harness run --history FILE` appends it")
    values = [fsum(run.scenarios[label].score for label in scores) / len(scores) for run in runs]
    p = drift_p(values)
    alpha = round(1 - confidence, 9)
    note = f"{plural(len(values), 'run')} of {shown_path(history)}"
    return Ruling("no_drift", part.scope, p, alpha, p > alpha, note=note)


def _is_run(record: RunRecord, scores: dict[str, float]) -> bool:
    return all(abs(record.scenarios[label].score - score) < 10**-_DIGITS for label, score in scores.items())


def drift_p(values: Sequence[float]) -> float:
    """Return the p-value of values that fall, which may be looked at after each of them.

    >>> drift_p([0.8, 0.9] * 10) <= 0.05, drift_p([0.9 - 0.01 * number for number in range(20)]) <= 0.05
    (False, True)
    """
    draw, bets = random.Random(_SEED), Bets()
    rounded = [round(each, _DIGITS) for each in values]
    for number in range(2, len(rounded) + 1):
        so_far = rounded[:number]
        below, equal = sum(each < so_far[-1] for each in so_far), so_far.count(so_far[-1])
        bets.add(1 - 2 * (below + draw.random() * equal) / number)
    return bets.p


def _is_lowest_share(bound: float, _scenarios: int) -> str:
    return "no share is below 0" if bound == 0 else ""


def _is_count_of_all(bound: int, scenarios: int) -> str:
    there = f"there {'is' if scenarios == 1 else 'are'} {plural(scenarios, 'scenario')}"
    return there if bound >= scenarios else ""


def _of_graphs(shares: Mapping[str, float | None]) -> str:
    return ", ".join(f"{percent(share)} of {kind}" for kind, share in shares.items())


RUN_RULES: Final = (
    GateRule(
        "min_pass_rate", Share, "The least pass rate: 0.95 for 95 %.", plain(min_pass_rate),
        shown=percent, cannot_fail=_is_lowest_share,
    ),
    GateRule(
        "min_fitness", Share, "The least fitness.", plain(min_fitness),
        shown="{:.3f}".format, of_scenario=lambda value, _: f"{value:.2f}", cannot_fail=_is_lowest_share,
    ),
    *(
        GateRule(
            f"max_{each.label}_latency", Amount,
            f"The largest {each.label} of the latency of a run, in virtual seconds.",
            plain(partial(max_latency, each)), shown=seconds, figure=lambda _: "latency", is_time=True,
        )
        for each in LATENCIES
    ),
    GateRule(
        "max_cost", Amount, "The largest cost of all runs together, in US dollars.", plain(max_cost),
        shown=dollars, figure=lambda _: "cost",
    ),
    GateRule(
        "max_tokens", Amount, "The most tokens that all runs together send and receive.", plain(max_tokens),
        figure=lambda _: "tokens",
    ),
    GateRule(
        "max_flaky", Count, "The most scenarios whose repeats have different verdicts.", plain(max_flaky),
        counted="flaky scenario", cannot_fail=_is_count_of_all,
    ),
    GateRule(
        "max_errors", Count, "The most scenarios that could not be judged; 0 unless given.", plain(max_errors),
        counted="error", cannot_fail=_is_count_of_all,
    ),
    GateRule(
        "min_coverage", MinCoverage, "The least shares of each graph that all scenarios together cover.",
        plain(min_coverage),
        found=lambda ruling: _of_graphs(ruling.actual),
        wanted=lambda ruling: f"at least {_of_graphs(ruling.bound)}",
        cannot_fail=lambda bound, _: "" if any(bound.values()) else "no share is below 0",
    ),
    GateRule(
        "no_drift", bool, "True: the fitness has not fallen over the runs of the history.",
        lambda part, _, terms: [no_drift(part, terms.confidence, terms.history)],
        is_switch=True,
        found=lambda ruling: f"p {p_value(ruling.actual)}",
        wanted=lambda ruling: f"above {ruling.bound:g}",
    ),
)  # fmt: skip
"""The rules on one run."""
