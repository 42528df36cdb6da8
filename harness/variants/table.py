"""The score as text: a line per variant with figures and verdict, changed scenarios, and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from harness.report.figures import FIGURES, LATENCIES
from harness.report.formatting import answers, keep_ends, p_value, plural, with_interval, wrapped
from harness.source.display import clip, printable
from harness.variants.comparison import ScenarioChange, Score, VariantScore

_MAX_CHANGED: Final = 10
_MAX_LINES: Final = 6
_MAX_LINE_LENGTH: Final = 160
_NOT_JUDGED: Final = "not judged"
"""The column with the number of runs that could not be judged, if there are any."""
_HEADS: Final = (
    "variant",
    "runs",
    _NOT_JUDGED,
    *(figure.label for figure in FIGURES),
    "difference",
    "verdict",
)
_OF_MODELS: Final = {figure.label: figure.text(0) for figure in FIGURES if figure.more != "better"}
"""Columns that say nothing if only stubs answered, and all their figures are these."""
_NO_FIGURE: Final = "–"
_GAP: Final = "  "
_MIN_NAME: Final = 14
"""The least columns of a terminal for the name of a variant."""


def table(score: Score, width: int | None = None) -> Iterator[str]:
    """Yield the lines of the score. They fit the width of a terminal; None neither cuts nor wraps them."""
    rows = [_HEADS, *(_row(each, each.name == score.baseline) for each in score.variants)]
    columns = [column for column in zip(*rows, strict=True) if _says_something(column, score)]
    yield from _fitted(columns[0], columns[1:], width)
    text = "\n".join(["", *_remarks_and_changes(score)])
    yield from wrapped(text, width).split("\n")


def _says_something(column: Sequence[str], score: Score) -> bool:
    head, *figures = column
    if head == _NOT_JUDGED:
        return any(each.not_judged for each in score.variants)
    scripted = all(each.answers.keys() <= {"scripted"} for each in score.variants)
    return not scripted or any(figure != _OF_MODELS.get(head) for figure in figures)


def _fitted(names: Sequence[str], columns: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """Yield the lines of a table. What does not fit the width beside shortened names follows as further tables."""
    widths = [len(_GAP) + max(map(len, column)) for column in columns]
    name, shown = max(map(len, names)), len(columns)
    if width is not None:
        least = min(name, _MIN_NAME)
        while shown > 1 and least + sum(widths[:shown]) > width:
            shown -= 1
        name = min(name, max(width - sum(widths[:shown]), least))
    for at, each in enumerate(names):
        cells = [
            column[at].ljust(room - len(_GAP))
            if column[0] == _HEADS[-1]
            else column[at].rjust(room - len(_GAP))
            for column, room in zip(columns[:shown], widths, strict=False)
        ]
        yield _GAP.join([keep_ends(each, name).ljust(name), *cells]).rstrip()
    if columns[shown:]:
        yield ""
        yield from _fitted(names, columns[shown:], width)


def _remarks_and_changes(score: Score) -> Iterator[str]:
    for each in score.variants:
        yield f"{printable(each.name)}: {answers(each.answers)}"
        yield from (f"  {line}" for line in _remarks(each))
    for each in score.variants[1:]:
        yield from _change_lines(each.name, [found for found in score.changed if found.variant == each.name])
    yield ""
    front = ", ".join(printable(name) for name in score.pareto) or "none"
    yield f"on the Pareto front of fitness, latency (p50) and cost: {front}"


def _remarks(scored: VariantScore) -> Iterator[str]:
    """Yield what the verdict rests on."""
    if scored.stopped is not None:
        yield printable(str(scored.stopped))
    if scored.left_out:
        scenarios = plural(scored.left_out, "scenario")
        yield f"{scenarios} left out of all figures: neither variant could be judged, or nothing answered a call"
    if scored.undone_by is not None:
        change = "it breaks" if scored.verdict == "better" else "it mends"
        yield f"{plural(scored.undone_by, 'more scenario')} that {change} would undo this"
    if scored.why:
        yield scored.why
    if scored.risk is not None:
        before, after = f"{scored.risk.before:.3f}", f"{scored.risk.after:.3f}"
        yield (
            f"riskier, for the same mean: its scores have a standard deviation of {after}, the baseline's "
            f"{before} (p {p_value(scored.risk.p)})"
        )


def _row(scored: VariantScore, is_baseline: bool) -> tuple[str, ...]:
    group, difference = scored.group, scored.difference
    between = _NO_FIGURE
    if difference is not None and scored.interval is not None and scored.verdict is not None:
        between = with_interval(difference.estimate, *scored.interval)
    verdict = "the baseline" if is_baseline else scored.verdict or _NO_FIGURE
    return (
        printable(scored.name),
        str(scored.runs),
        str(scored.not_judged),
        *(figure.text(figure.of(group)) for figure in FIGURES),
        between,
        verdict + (f" (p {p_value(scored.corrected)})" if scored.corrected is not None else ""),
    )


def _change_lines(name: str, changed: Sequence[ScenarioChange]) -> Iterator[str]:
    if not changed:
        return
    yield ""
    yield f"{plural(len(changed), 'scenario')} with another score as {printable(name)}:"
    for each in changed[:_MAX_CHANGED]:
        before, after = each.verdicts
        verdicts = "" if before == after else f"  ({before} → {after})"
        yield f"  {each.before:.3f} → {each.after:.3f}  {printable(each.id)}{verdicts}"
        for check in each.checks[:2]:
            yield from (f"    {line}" for line in _message_lines(check))
    if len(changed) > _MAX_CHANGED:
        yield f"  … and {len(changed) - _MAX_CHANGED} more, see report.html"


def _message_lines(check: str) -> Iterator[str]:
    """Yield the message of a check line by line, shortened."""
    name, _, said = printable(check, keep_newlines=True).rstrip().partition(": ")
    lines = (
        [f"{name}:", *(f"  {line}" for line in said.split("\n"))]
        if "\n" in said
        else [f"{name}: {said}" if said else name]
    )
    yield from (clip(line, _MAX_LINE_LENGTH) for line in lines[:_MAX_LINES])
    if len(lines) > _MAX_LINES:
        yield f"… {plural(len(lines) - _MAX_LINES, 'more line')}"


FORMAT: Final = "harness-score/1"


def score_json(score: Score) -> dict[str, Any]:
    """Return the score as JSON data."""
    return {
        "format": FORMAT,
        "baseline": score.baseline,
        "variants": [_variant(each) for each in score.variants],
        "changed": [asdict(each) for each in score.changed],
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
        "latency": {each.path[1]: each.of(group) for each in LATENCIES},
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
    needed = scored.needed
    if difference is None:
        return None
    return {
        "fitness": difference.estimate,
        "low": _finite(low),
        "high": _finite(high),
        "p": difference.p if scored.corrected is None else scored.corrected,
        "verdict": scored.verdict,
        "scenarios": difference.scenarios,
        "needed": needed.scenarios if needed else 0 if scored.verdict in ("better", "worse") else None,
        "needed_repeats": needed.repeats if needed else None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
