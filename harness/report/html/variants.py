"""The comparison of variants with the baseline for the page: verdicts, intervals, the Pareto front (score.json)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from harness.errors import FormatError, Problem, Span
from harness.report.formatting import answers, dollars, p_value, plural, score, seconds, with_interval
from harness.report.html.template import Scale, labels
from harness.report.reading import Amount, Count, Share, decoding_problem
from harness.report.repeats import Key
from harness.source.display import clip
from harness.source.document import shown_path

Signed = Annotated[float, Meta(ge=-1e15, le=1e15)]


class Difference(TypedDict):
    """The difference in fitness to the baseline."""

    fitness: Signed
    low: Signed | None
    high: Signed | None
    p: float
    verdict: Literal["better", "worse", "no evidence"] | None
    scenarios: NotRequired[Count]
    needed: NotRequired[Count | None]


class Variant(TypedDict):
    """The results of a variant, with percentiles of virtual seconds. `stopped` says why it did not run through."""

    name: str
    runs: Count
    pass_rate: Share | None
    fitness: Share | None
    latency: dict[str, Amount | None]
    tokens: Count
    cost: Amount | None
    difference: Difference | None
    answers: NotRequired[dict[str, Count]]
    note: NotRequired[str | None]
    stopped: NotRequired[str | None]


class ScenarioChange(TypedDict):
    """A scenario with another score or verdict than with the baseline, and the checks that caused it."""

    id: str
    variant: str
    before: Share
    after: Share
    verdicts: NotRequired[tuple[str, str]]
    checks: NotRequired[list[str]]


class Score(TypedDict):
    """The score of variants, the baseline first."""

    format: Literal["harness-score/1"]
    baseline: str
    variants: Annotated[list[Variant], Meta(min_length=1)]
    changed: list[ScenarioChange]
    pareto: list[str]


def read_score(file: Path) -> Score:
    """Read a score.json.

    Raises:
        FormatError: it cannot be read (`score-damaged`).
    """
    try:
        raw = file.read_bytes()
    except OSError as error:
        message = f"cannot read the score {shown_path(file)}: {error.strerror or error}"
        raise FormatError(Problem("score-damaged", message)) from None
    try:
        return msgspec.json.decode(raw, type=Score)
    except (ValueError, RecursionError) as error:
        found = decoding_problem(raw, error, "harness-score/1")
        text = f"not {found.expected or 'a score'}: {found.text}"
        place = Span(shown_path(file), found.line, found.column)
        hint = found.hint or "run `harness score` again"
        raise FormatError(Problem("score-damaged", text, place, hint)) from None


_MAX_CHANGED: Final = 200
"""The most scenarios in the table that is shown without the script."""
_MAX_CHECKS: Final = 4
_MAX_CHECK: Final = 160
_MAX_NAMED: Final = 3
_INTERVAL: Final = 200
"""Width of a drawn interval, in pixels; 0 is in its middle."""
_WIDTH, _HEIGHT, _EDGE = 460, 250, 24
_STATES: Final = {"better": "better", "worse": "worse", "no evidence": "even"}


class Scoring(NamedTuple):
    """A score of variants in the forms of the page.

    view     for the template: {headline, baseline, scale, variants, plots, front, changed, most}
    script   for the script: {names, baseline, checks: {variant: {scenario: text}}}; a text names the checks that made
             a scenario better or worse
    changed  (id, variant) of the scenarios that changed, for the variant and for the baseline
    """

    view: dict[str, Any]
    script: dict[str, Any]
    changed: frozenset[Key]


def read_scoring(file: Path) -> Scoring:
    """Read a score.json.

    Raises:
        FormatError: it cannot be read (`score-damaged`).
    """
    found = read_score(file)
    changed = {
        (each["id"], name) for each in found["changed"] for name in (each["variant"], found["baseline"])
    }
    return Scoring(_view(found), _script_data(found), frozenset(changed))


def _view(found: Score) -> dict[str, Any]:
    reach = _reach(found["variants"])
    changed: dict[str, list[ScenarioChange]] = {}
    for each in found["changed"]:
        changed.setdefault(each["variant"], []).append(each)
    return {
        "headline": headline(found),
        "baseline": found["baseline"],
        "scale": f"{reach:.3f}",
        "variants": [
            _variant(each, found, changed.get(each["name"], []), reach) for each in found["variants"]
        ],
        "plots": _plots(found),
        "front": found["pareto"],
        "changed": _changed_rows(found),
        "most": _MAX_CHANGED,
    }


def headline(found: Score) -> str:
    """Return the result in a sentence: "terse is better than baseline by 0.100; no evidence on small"."""
    names: dict[str, list[str]] = {}
    for each in found["variants"]:
        verdict = (each["difference"] and each["difference"]["verdict"]) or "no verdict"
        if each["name"] != found["baseline"]:
            names.setdefault("stopped" if each.get("stopped") else verdict, []).append(each["name"])
    if not names:
        return f"There is no variant other than {found['baseline']}"
    parts = []
    for verdict in ("better", "worse"):
        if verdict in names:
            some = names[verdict]
            by = f" by {_gain(found, some[0])}" if len(some) == 1 else ""
            parts.append(
                f"{_listed(some)} {'is' if len(some) == 1 else 'are'} {verdict} than {found['baseline']}{by}"
            )
    if "better" not in names:
        parts.insert(0, f"No variant is shown to be better than {found['baseline']}")
    if "no evidence" in names:
        parts.append(f"no evidence on {_listed(names['no evidence'])}")
    if "stopped" in names:
        some = names["stopped"]
        parts.append(f"{_listed(some)} {'was' if len(some) == 1 else 'were'} stopped, beaten by another")
    if "no verdict" in names:
        parts.append(f"no verdict on {_listed(names['no verdict'])}")
    return "; ".join(parts)


def _gain(found: Score, name: str) -> str:
    [difference] = [each["difference"] for each in found["variants"] if each["name"] == name]
    return score(abs(difference["fitness"] if difference else 0.0))


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MAX_NAMED:
        return plural(len(names), "variant")
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _reach(variants: Iterable[Variant]) -> float:
    """Return the largest absolute value of the differences and their interval bounds."""
    ends = [
        abs(value)
        for each in variants
        if each["difference"]
        for value in (each["difference"]["fitness"], each["difference"]["low"], each["difference"]["high"])
        if value is not None
    ]
    return max(ends, default=0.0) or 1.0


def _variant(each: Variant, found: Score, changed: Sequence[ScenarioChange], reach: float) -> dict[str, Any]:
    is_baseline = each["name"] == found["baseline"]
    difference = each["difference"]
    verdict = None if difference is None else difference["verdict"]
    words = "the baseline" if is_baseline else "no verdict"
    if verdict is not None:
        words = f"{verdict} than {found['baseline']}" if verdict != "no evidence" else "no evidence"
    return {
        "name": each["name"],
        "verdict": words,
        "state": _STATES.get(verdict or "", ""),
        "p": "" if verdict is None or difference is None else f"p {p_value(difference['p'])}",
        "note": each.get("note") or "",
        "stopped": each.get("stopped") or "",
        "interval": None if difference is None else _interval(difference, reach),
        "group": {**each, "tokens": {"total": each["tokens"]}},
        "runs": each["runs"],
        "answers": answers(each.get("answers", {})),
        "front": each["name"] in found["pareto"],
        "changes": _changes(changed),
        "checks": _checks(changed),
        "is_baseline": is_baseline,
    }


def _interval(difference: Mapping[str, Any], reach: float) -> dict[str, Any]:
    """Return {at, low, high: positions on the common scale, text}. `low` and `high` are None without an interval."""
    scale = Scale(-reach, reach, 6, _INTERVAL - 6)
    low, high = difference["low"], difference["high"]
    at, text = scale(difference["fitness"]), with_interval(difference["fitness"], low, high)
    if low is None or high is None:
        return {"at": at, "low": None, "high": None, "text": f"{text}, no interval"}
    return {"at": at, "low": scale(low), "high": scale(high), "text": text}


def _changes(changed: Sequence[ScenarioChange]) -> list[str]:
    """Return the numbers of scenarios that are better and worse, as texts."""
    better = sum(each["after"] > each["before"] for each in changed)
    worse = sum(each["after"] < each["before"] for each in changed)
    rest = len(changed) - better - worse
    return [
        f"{mark} {count} {word}"
        for mark, count, word in (
            ("▲", better, "better"),
            ("▼", worse, "worse"),
            ("=", rest, "another verdict"),
        )
        if count
    ]


def _checks(changed: Sequence[ScenarioChange]) -> str:
    """Return the checks that changed with their counts, the most frequent first: "output 5, path 3"."""
    counts = Counter(
        name for each in changed for name in {text.partition(":")[0] for text in each.get("checks", ())}
    )
    parts = [f"{name} {count}" for name, count in counts.most_common(_MAX_CHECKS)]
    more = len(counts) - len(parts)
    return ", ".join([*parts, *([f"{more} more"] if more else [])])


def _plots(found: Score) -> list[dict[str, Any]]:
    """Return plots of fitness over latency, and over cost if anything had a cost."""
    measured = [each for each in found["variants"] if each["fitness"] is not None and not each.get("stopped")]
    aims: list[tuple[str, Callable[[Variant], float | None], Callable[[float], str]]] = [
        ("latency (p50)", lambda each: each["latency"].get("p50"), seconds),
        ("cost", lambda each: each["cost"], dollars),
    ]
    found_plots = []
    for name, of, unit in aims:
        values = [(each, value) for each in measured if (value := of(each)) is not None]
        if len(values) > 1 and (name != "cost" or any(value for _, value in values)):
            found_plots.append(_plot(name, values, unit, found["pareto"]))
    return found_plots


def _plot(
    name: str, values: Sequence[tuple[Variant, float]], unit: Callable[[float], str], front: Sequence[str]
) -> dict[str, Any]:
    across = Scale.of([value for _, value in values], _EDGE + 40, _WIDTH - _EDGE)
    up = Scale.of([each["fitness"] or 0.0 for each, _ in values], _HEIGHT - 44, _EDGE)
    points = [(across(value), up(each["fitness"] or 0.0), each["name"]) for each, value in values]
    beside = labels([(x, y, text[:30]) for x, y, text in points], _WIDTH, _HEIGHT)
    said = [
        f"{each['name']}: fitness {score(each['fitness'])}, {name} {unit(value)}"
        + (", on the front" if each["name"] in front else "")
        for each, value in values
    ]
    return {
        "title": f"Fitness and {name}",
        "across": f"{name} →",
        "said": "; ".join(said),
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _EDGE + 26,
        "bottom": _HEIGHT - 30,
        "points": [
            {"x": x, "y": y, "name": text[:30], "front": text in front, "label": label}
            for (x, y, text), label in zip(points, beside, strict=True)
        ],
        "ticks_across": [(across(value), unit(value)) for value in across.ends],
        "ticks_up": [(up(value), score(value)) for value in up.ends],
    }


def _changed_rows(found: Score) -> list[dict[str, Any]]:
    """Return the scenarios that changed, with a cell for each variant: {id, cells: {variant: ScenarioChange}}."""
    rows: dict[str, dict[str, ScenarioChange]] = {}
    for each in found["changed"]:
        rows.setdefault(each["id"], {})[each["variant"]] = each
    return [{"id": name, "cells": cells} for name, cells in rows.items()]


def _script_data(found: Score) -> dict[str, Any]:
    checks: dict[str, dict[str, str]] = {}
    for each in found["changed"]:
        texts = each.get("checks", [])
        if texts:
            more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
            first = " ".join(texts[0].split())
            checks.setdefault(each["variant"], {})[each["id"]] = clip(first, _MAX_CHECK) + more
    return {
        "names": [each["name"] for each in found["variants"]],
        "baseline": found["baseline"],
        "checks": checks,
    }
