"""Rules that compare with the baseline, scenario by scenario and repeat by repeat.

Scenarios that passed in the baseline may fail now, or be gone. A figure may get worse by the share that the rule
allows. If runs may differ, the change must also be significant: its interval (`harness.statistics.ratio_interval`)
has to lie on the worse side of zero. If none can differ, as with scripted answers, the change itself decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from harness.gate.rule import TOLERANCE, GateRule, NothingToJudge, ProvenNoWorse, Share, Terms, number, plain
from harness.gate.ruling import AffectedScenario, Part, Ruling
from harness.report.formatting import cost, plural, seconds, some_of
from harness.report.repeats import NOT_PASSED
from harness.report.scenario_runs import Pair, ScenarioRuns
from harness.source.display import nearest
from harness.statistics.paired_difference import ALPHA
from harness.statistics.pass_counts import PassCounts, fewer_passes_p, significantly_fewer
from harness.statistics.ratio_interval import Change, PairedValues, relative_change


@dataclass(frozen=True)
class ComparedFigure:
    """A figure of a `Repeat`.

    text     formats it
    sign     1 if more is worse, -1 if less is worse
    weighed  True to weight it by the scenario's weight
    largest  the largest value that it can have
    """

    figure: str
    text: Callable[[float], str]
    sign: int = 1
    weighed: bool = False
    largest: float = math.inf


_FITNESS: Final = ComparedFigure("score", "{:.2f}".format, -1, weighed=True, largest=1.0)
_LATENCY: Final = ComparedFigure("latency", seconds)
_COST: Final = ComparedFigure("cost", cost)
_TOKENS: Final = ComparedFigure("tokens", number)
_PROVABLE: Final = {"fitness": _FITNESS, "latency": _LATENCY, "cost": _COST}
"""The figures of `proven_no_worse`."""


@dataclass(frozen=True)
class _Compared:
    """A figure in both runs: how much worse it is now, with its interval if it varies, and the scenarios."""

    worse: float
    interval: tuple[float, float] | None
    change: Change
    affected: Sequence[AffectedScenario]
    note: str


def _judge_change(
    rule: str, compared: ComparedFigure, part: Part, bound: float, terms: Terms
) -> Sequence[Ruling]:
    """Judge how much worse a figure is than in the baseline.

    Raises:
        NothingToJudge: no scenario was judged in both runs, or a cost is not known.
    """
    found = _compare(part, compared, terms.confidence)
    holds = found.worse <= bound + TOLERANCE or (
        found.interval is not None and found.interval[0] <= TOLERANCE
    )
    return [
        Ruling(
            rule, part.scope, found.worse, bound, holds, found.interval,
            scenarios=found.affected, note=found.note,
        )
    ]  # fmt: skip


def _proven_no_worse(part: Part, shares: ProvenNoWorse, terms: Terms) -> Iterator[Ruling]:
    """Yield the ruling for each figure: its interval has to exclude that it is worse by more than its bound.

    A run that varies too much to say so fails. If none can differ, the change itself decides.

    Raises:
        NothingToJudge: no scenario was judged in both runs, or a cost is not known.
    """
    for figure, bound in shares.bounds.items():
        found = _compare(part, _PROVABLE[figure], terms.confidence)
        most = found.worse if found.interval is None else found.interval[1]
        proven, note = most <= bound + TOLERANCE, found.note
        if not proven and found.worse <= bound + TOLERANCE:
            needed = found.change.ratio.scenarios_for(bound - found.worse, terms.confidence)
            would = f": about {plural(needed, 'scenario')} like these would do" if needed else ""
            note = "; ".join([f"not enough evidence{would}", *([note] if note else [])])
        yield Ruling(
            "proven_no_worse", part.scope, found.worse, {figure: bound}, proven, found.interval,
            scenarios=found.affected, note=note,
        )  # fmt: skip


def _compare(part: Part, compared: ComparedFigure, confidence: float) -> _Compared:
    assert part.pairing is not None
    found = sorted(
        ((pair, _values(pair, compared)) for pair in part.pairing.pairs), key=lambda one: one[0].after.key
    )
    pairs = [(pair, values) for pair, values in found if values]
    if not pairs:
        raise NothingToJudge("no run of the baseline was run again, and finished in both")
    scenarios = [
        PairedValues(values, pair.after.weight if compared.weighed else 1.0) for pair, values in pairs
    ]
    change = relative_change(scenarios, confidence=confidence, largest=compared.largest)
    interval = None
    if any(_can_differ(pair, values) for pair, values in pairs):
        low, high = sorted(compared.sign * end for end in (change.low, change.high))
        interval = low, high
    worse = 0.0 if change.estimate == 0 else compared.sign * change.estimate
    affected = _affected(pairs, scenarios, compared.sign)
    return _Compared(worse, interval, change, affected, _note(worse, part))


def _values(pair: Pair, compared: ComparedFigure) -> list[tuple[float, float]]:
    """Return the figure of each repeat in both runs; repeats that were not judged have no latency.

    Repeats that vary and are not as many before as after, as in a baseline of several runs, count with their means.
    """
    if pair.unpaired and (pair.before.varies or pair.after.varies):
        values = [(_mean(pair.before, compared.figure), _mean(pair.after, compared.figure))]
    else:
        values = [
            (getattr(before, compared.figure), getattr(after, compared.figure))
            for before, after in pair.repeats
        ]
    if compared.figure == "cost" and any(None in both for both in values):
        message = f"what '{pair.after.label}' costs is not known: a model has no price"
        raise NothingToJudge(message, "add it to [tool.harness.prices]; a baseline needs it too")
    return [(before, after) for before, after in values if before is not None and after is not None]


def _mean(scenario: ScenarioRuns, figure: str) -> float | None:
    """Return the mean of a figure over the judged repeats; None if there are none, or a cost is not known."""
    values = [getattr(repeat, figure) for repeat in scenario.repeats.values() if repeat.verdict != "skipped"]
    known = [value for value in values if value is not None]
    if not known or (figure == "cost" and len(known) < len(values)):
        return None
    return math.fsum(known) / len(known)


def _can_differ(pair: Pair, values: Sequence[tuple[float, float]]) -> bool:
    """True if another run of the scenario may have other values."""
    return (
        pair.before.varies
        or pair.after.varies
        or any(len(set(of_run)) > 1 for of_run in zip(*values, strict=True))
    )


def _affected(
    pairs: Sequence[tuple[Pair, Sequence[tuple[float, float]]]], scenarios: Sequence[PairedValues], sign: int
) -> list[AffectedScenario]:
    """Return the scenarios that got worse, those that contribute most to the change first."""
    found: list[tuple[float, AffectedScenario]] = []
    for (pair, values), paired in zip(pairs, scenarios, strict=True):
        before, after = (math.fsum(of_run) / len(values) for of_run in zip(*values, strict=True))
        worse = paired.weight * sign * (after - before)
        if worse > TOLERANCE:
            found.append((worse, AffectedScenario.of(pair.after, pair, before, after)))
    return [affected for _, affected in sorted(found, key=lambda each: (-each[0], each[1].label))]


def _note(worse: float, part: Part) -> str:
    assert part.pairing is not None
    unpaired = sum(
        pair.unpaired for pair in part.pairing.pairs if not (pair.before.varies or pair.after.varies)
    )
    notes = ["there was none before"] if math.isinf(worse) else []
    notes += [f"{plural(unpaired, 'repeat')} in only one of the runs"] if unpaired else []
    return "; ".join(notes)


def _worse_text(ruling: Ruling) -> str:
    worse = ruling.actual
    text = "unchanged" if worse == 0 else f"{_share(abs(worse))} {'worse' if worse > 0 else 'better'}"
    if ruling.interval is None:
        return text
    ends = " to ".join(_share(end, signed=True) for end in ruling.interval)
    return f"{text} (interval {ends})"


def _share(share: float, *, signed: bool = False) -> str:
    if math.isinf(share):
        return "-∞" if share < 0 else "∞"
    return f"{share * 100:{'+' if signed else ''}.3g} %"


def _proven_text(ruling: Ruling) -> str:
    return ", ".join(
        f"{figure} proven at most {_share(share)} worse" for figure, share in ruling.bound.items()
    )


def _is_whole(bound: float) -> str:
    return "nothing drops by more than 100 %" if bound >= 1 else ""


def _change(name: str, figure: str, where: str, compared: ComparedFigure) -> GateRule:
    return GateRule(
        name, Share, f"The largest share by which the {figure} may be {where} the baseline's.",
        partial(_judge_change, name, compared),
        needs_baseline=True,
        found=_worse_text,
        wanted=lambda ruling: f"at most {_share(ruling.bound)} worse",
        of_scenario=lambda value, _: compared.text(value),
        figure=lambda _: compared.figure,
        cannot_fail=lambda bound, _: _is_whole(bound) if compared is _FITNESS else "",
    )  # fmt: skip


CHANGE_RULES: Final = (
    _change("max_fitness_drop", "fitness", "below", _FITNESS),
    _change("max_latency_increase", "latency", "above", _LATENCY),
    _change("max_cost_increase", "cost", "above", _COST),
    _change("max_tokens_increase", "tokens", "above", _TOKENS),
    GateRule(
        "proven_no_worse", ProvenNoWorse,
        "Shares by which figures may be worse than the baseline's; the run has to prove it.",
        _proven_no_worse,
        needs_baseline=True,
        found=_worse_text,
        wanted=_proven_text,
        of_scenario=lambda value, ruling: _PROVABLE[next(iter(ruling.bound))].text(value),
        figure=lambda bound: _PROVABLE[next(iter(bound))].figure,
        cannot_fail=lambda bound, _: _is_whole(bound.get("fitness", 0)),
    ),
)  # fmt: skip
"""The rules that compare figures with those of a baseline."""


_MAX_COMPARED: Final = 10_000
"""Maximum number of pairs of names compared for suggestions, which takes a few seconds."""
_MAX_NAMES: Final = 3


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
        before, after = (
            _passed_text(counts.passed_before, counts.before),
            _passed_text(counts.passed_after, counts.after),
        )
        blamed.append(AffectedScenario.of(pair.after, pair, before, after))
    blamed.sort(key=lambda each: each.label)
    if gone_counts:
        blamed += [each for each in removed(part) if each.before == "passed"]
    note = _remarks([each for at, each in enumerate(varying) if at not in fewer])
    return Ruling("no_new_failures", part.scope, len(blamed), 0, not blamed, scenarios=blamed, note=note)


def _varies(pair: Pair) -> bool:
    return pair.before.varies or pair.after.varies


def _counts(pair: Pair) -> PassCounts:
    return PassCounts(*_passes(pair.before), *_passes(pair.after))


def _passes(scenario: ScenarioRuns) -> tuple[int, int]:
    verdicts = [repeat.verdict for repeat in scenario.repeats.values() if repeat.verdict != "skipped"]
    return verdicts.count("passed"), len(verdicts)


def _remarks(rest: Sequence[tuple[Pair, PassCounts]]) -> str:
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


def _passed_text(passed: int, runs: int) -> str:
    return f"{passed} of {runs} passed"


def _any_or_none(ruling: Ruling) -> str:
    return "any" if ruling.bound is True else "none"


REMOVED_RULES: Final = (
    GateRule(
        "no_new_failures", bool, "True: no scenario that passed in the baseline fails, errors, or is removed.",
        lambda part, _, terms: [no_new_failures(part, terms.confidence, gone_counts=not terms.allow_removed)],
        needs_baseline=True, is_switch=True, counted="new failure", wanted=_any_or_none,
    ),
    GateRule(
        "allow_removed", bool, "True: scenarios of the baseline may be missing; false unless given.",
        plain(allow_removed), needs_baseline=True, counted="removed scenario", wanted=_any_or_none,
    ),
)  # fmt: skip
