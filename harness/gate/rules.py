"""Rules on the figures of a run and on its changed verdicts; `harness.gate.changes` has the others.

Each rule is a function of the part that it applies to and its bound. A rule that has nothing to look at raises
`NothingToJudge` rather than hold trivially.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import fsum
from pathlib import Path
from typing import Any, Final

from harness.gate.policy import MinCoverage
from harness.gate.ruling import AffectedScenario, Part, Ruling
from harness.report.formatting import percent, plural, some_of, unpriced
from harness.report.history.file import read_history
from harness.report.history.record import RunRecord
from harness.report.repeats import NOT_PASSED
from harness.report.scenario_runs import Pair, Repeat, ScenarioRuns
from harness.source.display import nearest
from harness.source.document import shown_path
from harness.statistics.betting import Bets
from harness.statistics.paired_difference import ALPHA
from harness.statistics.pass_counts import PassCounts, fewer_passes_p, significantly_fewer

TOLERANCE: Final = 1e-9
"""Tolerance for rounding errors in sums."""
_MAX_MISSING: Final = 10
_MAX_COMPARED: Final = 10_000
"""Maximum number of pairs of names compared for suggestions, which takes a few seconds."""
Rule = Callable[[Part, Any], Ruling]


class NothingToJudge(Exception):
    """Raised by a rule that has nothing to look at. `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)


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


def max_latency(percentile: str, part: Part, bound: float) -> Ruling:
    """Judge a percentile of the virtual latency."""
    rule = f"max_{percentile}_latency"
    value = part.group["latency"][percentile]
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


def allow_removed(part: Part, bound: bool) -> Ruling:
    """Judge the removed scenarios of the baseline: missing, or newly skipped."""
    gone = removed(part)
    return Ruling("allow_removed", part.scope, len(gone), bound, bound or not gone, scenarios=gone)


def removed(part: Part) -> list[AffectedScenario]:
    """Return the scenarios of the baseline that are missing, or newly skipped."""
    assert part.pairing is not None
    skipped = {pair.after.key for pair in part.pairing.pairs if pair.after.verdict == "skipped"}
    found, added = [], part.pairing.added
    if len(added) * len(part.pairing.gone) > _MAX_COMPARED:
        added = ()
    for each in part.pairing.gone:
        after = "skipped" if each.key in skipped else "missing"
        renamed = "" if after == "skipped" else _perhaps_renamed(each, added)
        found.append(
            AffectedScenario(each.id, each.variant, each.verdict, after, [renamed] if renamed else [])
        )
    return found


def _perhaps_renamed(gone: ScenarioRuns, added: Sequence[ScenarioRuns]) -> str:
    """Return a remark naming the new scenario of the same file whose name is most similar; "" if there is none."""
    found = nearest(
        gone.id, (each.id for each in added if each.suite == gone.suite and each.variant == gone.variant)
    )
    return f"perhaps renamed: '{found.removeprefix(f'{gone.suite}::')}' is new in this file" if found else ""


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


_RULES: Final[tuple[Rule, ...]] = (
    min_pass_rate, min_fitness, max_cost, max_tokens, max_flaky, max_errors, min_coverage, allow_removed,
)  # fmt: skip
RUN_RULES: Final[dict[str, Rule]] = {
    **{rule.__name__: rule for rule in _RULES},
    **{f"max_{name}_latency": partial(max_latency, name) for name in ("p50", "p95")},
}


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


_MAX_NAMES: Final = 3


def no_new_failures(part: Part, confidence: float, *, gone_counts: bool = True) -> Ruling:
    """Judge the scenarios that passed in the baseline and do not now, including removed ones if `gone_counts`."""
    assert part.pairing is not None
    counted = ((pair, _counts(pair)) for pair in part.pairing.pairs if _varies(pair))
    varying = [(pair, counts) for pair, counts in counted if counts.before and counts.after]
    fewer = significantly_fewer([counts for _, counts in varying], 1 - confidence)
    broken = [
        each
        for each in part.pairing.pairs
        if each.before.verdict == "passed" and each.after.verdict in NOT_PASSED and not _varies(each)
    ]
    blamed = [AffectedScenario.of(each.after, each, "passed", each.after.verdict) for each in broken]
    for at in fewer:
        pair, counts = varying[at]
        before, after = _text(counts.passed_before, counts.before), _text(counts.passed_after, counts.after)
        blamed.append(AffectedScenario.of(pair.after, pair, before, after))
    blamed.sort(key=lambda each: each.label)
    if gone_counts:
        blamed += [each for each in removed(part) if each.before == "passed"]
    note = _note([each for at, each in enumerate(varying) if at not in fewer])
    return Ruling("no_new_failures", part.scope, len(blamed), 0, not blamed, scenarios=blamed, note=note)


def _varies(pair: Pair) -> bool:
    return pair.before.varies or pair.after.varies


def _counts(pair: Pair) -> PassCounts:
    return PassCounts(*_passes(pair.before), *_passes(pair.after))


def _passes(scenario: ScenarioRuns) -> tuple[int, int]:
    verdicts = [repeat.verdict for repeat in scenario.repeats.values() if repeat.verdict != "skipped"]
    return verdicts.count("passed"), len(verdicts)


def _note(rest: Sequence[tuple[Pair, PassCounts]]) -> str:
    """Return a remark on scenarios whose failures chance explains."""
    flaky = [pair for pair, counts in rest if counts.is_flaky]
    lower = [(pair, counts) for pair, counts in rest if not counts.is_flaky and counts.change < 0]
    notes = [_named(flaky, "flaky in both runs")] if flaky else []
    if lower:
        notes.append(_named([pair for pair, _ in lower], "failing more often, no more than chance explains"))
        fewest = min(min(counts.before, counts.after) for _, counts in lower)
        if fewer_passes_p(fewest, fewest, 0, fewest) > ALPHA / 2:
            notes.append(f"{plural(fewest, 'repeat')} cannot show more of a single scenario: --repeat 5")
    return "; ".join(notes)


def _named(pairs: Sequence[Pair], what: str) -> str:
    names = some_of([pair.after.label for pair in pairs], _MAX_NAMES)
    return f"{plural(len(pairs), 'scenario')} {what}: {names}"


def _text(passed: int, runs: int) -> str:
    return f"{passed} of {runs} passed"
