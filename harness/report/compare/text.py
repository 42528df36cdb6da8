"""The comparison of two runs for a terminal (totals, then the scenarios, the worst first, with explanations) and as
JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from harness.report.compare.comparison import Change, Comparison, Side, figures_of
from harness.report.compare.explanation import CheckChange, Explanation
from harness.report.compare.first_difference import Difference, first_difference
from harness.report.compare.text_diff import diff_lines, steps
from harness.report.conversation import Row, folded, rows
from harness.report.encoding import encode
from harness.report.figures import FIGURES
from harness.report.formatting import cost, path_text, plural, seconds, short_name
from harness.report.scenario_runs import ScenarioRuns
from harness.report.traces import RunTrace
from harness.source.display import clip, printable

_MAX_CHECKS: Final = 5
_MAX_LINES: Final = 12
_MAX_LENGTH: Final = 300
_MAX_ALIKE: Final = 5

Line = tuple[str, str]
"""A line of text and its style: "" or bold, dim, worse, better, before, after, words."""

_WORDS: Final = {
    "worse": "worse",
    "gone": "gone",
    "new": "new",
    "changed": "changed, with the same verdict and score",
    "better": "better",
}
_KIND_STYLES: Final = {"worse": "worse", "gone": "worse", "better": "better"}
_STYLES: Final = {"~": "words", "-": "before", "+": "after"}


def heading(comparison: Comparison) -> Iterator[Line]:
    """Yield the names of the runs, warnings about incomplete ones, the counts of scenarios by kind, and totals."""
    before, after = comparison.before, comparison.after
    yield f"{printable(before.run.name)} -> {printable(after.run.name)}", "bold"
    yield from _notes(before, after)
    counts = comparison.counts
    counted = [f"{count} {kind}" for kind, count in counts.items() if kind != "same"]
    yield f"{plural(sum(counts.values()), 'scenario')}: {' · '.join(counted)} · {counts['same']} the same", ""
    for figure in FIGURES:
        old, new = figure.of(before.total), figure.of(after.total)
        shown = [figure.text(value) for value in (old, new)]
        if shown[0] != shown[1] and None not in (before.path, after.path):
            worse = old is not None and new is not None and not figure.is_better(old, new)
            yield f"{figure.label:<9}  {shown[0]} -> {shown[1]}", "worse" if worse else "better"


def _notes(before: Side, after: Side) -> Iterator[Line]:
    for name, side in (("earlier", before), ("later", after)):
        if side.path is None:
            yield (
                f"the {name} run is a baseline file: only its figures are known, not what its runs did",
                "dim",
            )
        if side.run.incomplete:
            yield f"the {name} run is not whole: {printable(clip(side.run.incomplete, _MAX_LENGTH))}", "worse"
        for file in side.run.unread:
            yield f"the {name} run could not read {printable(file)}", "worse"


def section(kind: str, count: int, comparison: Comparison) -> Iterator[Line]:
    """Yield the heading of the scenarios of a kind."""
    words = _WORDS[kind]
    if kind == "gone" and comparison.after.run.incomplete:
        words = "not in the later run, which is not whole"
    elif kind == "new" and comparison.before.run.incomplete:
        words = "not in the earlier run, which is not whole"
    yield "", ""
    yield f"{words}: {plural(count, 'scenario')}", "bold"


def entry_lines(found: Explanation, alike: Sequence[Change] = ()) -> Iterator[Line]:
    """Yield a change with its explanation. `alike` are other changes with the same first difference."""
    change = found.change
    yield f"  {printable(change.scenario.label)}", ""
    yield f"    {_figures(change)}", _KIND_STYLES.get(change.kind, "")
    for check in found.checks[:_MAX_CHECKS]:
        yield from _check(check)
    if len(found.checks) > _MAX_CHECKS:
        yield f"    … and {plural(len(found.checks) - _MAX_CHECKS, 'more check')}", "dim"
    if change.before is None or change.after is None:
        if change.twin:
            state = "gone" if change.kind == "new" else "new"
            yield f"    did the same as {printable(change.twin)}, which is {state}: was it renamed?", "dim"
        if change.scenario.cause and change.after is not None:
            yield f"    {printable(change.scenario.cause)}", ""
        return
    if None in found.lines:
        yield from _failed(change.after)
    yield from ((f"    {printable(note)}", "dim") for note in [*_repeats(change), *found.notes])
    if found.difference is not None:
        yield from _difference_lines(found.difference, found.where)
    elif found.unknown:
        yield f"    {printable(found.unknown)}", "dim"
    if alike:
        yield f"    the same first difference: {plural(len(alike), 'more scenario')}", "dim"
        yield from ((f"      {printable(each.scenario.label)}", "dim") for each in alike[:_MAX_ALIKE])
        if len(alike) > _MAX_ALIKE:
            yield f"      … and {len(alike) - _MAX_ALIKE} more", "dim"


def _failed(scenario: ScenarioRuns) -> Iterator[Line]:
    """Yield the failed checks of a scenario whose earlier checks are unknown."""
    for name, message in [*scenario.failed.items()][:_MAX_CHECKS]:
        first = (printable(message, keep_newlines=True).splitlines() or ["does not hold"])[0]
        yield f"    {short_name(name)}: {first}", ""


def _figures(change: Change) -> str:
    """Describe the verdict, the score and the figures that changed, as before -> after."""
    if change.before is None or change.after is None:
        figures = figures_of(change.scenario)
        return f"{figures['verdict']}  score {figures['score']:.2f}  {seconds(figures['latency'])}"
    sides = figures_of(change.before), figures_of(change.after)

    def said(label: str, text: Callable[[Any], str], key: str = "", *, always: bool = False) -> str:
        before, after = (text(side[key] if key else side) for side in sides)
        if before == after:
            return f"{label}{before}" if always else ""
        return f"{label}{before} -> {after}"

    found = [said("", str, "verdict", always=True)]
    if any(side["runs"] > 1 for side in sides):
        found.append(said("passed ", "{0[passed]} of {0[runs]}".format, always=True))
    found.append(said("score ", "{:.2f}".format, "score"))
    if all(side["latency"] is not None for side in sides):
        found.append(said("latency ", seconds, "latency"))
    found.append(said("tokens ", "{:,}".format, "tokens"))
    found.append(said("cost ", lambda value: "no price" if value is None else cost(value), "cost"))
    return "  ".join(filter(None, found))


def _check(check: CheckChange) -> Iterator[Line]:
    name = short_name(check.name)
    if check.after is None:
        yield f"    {name}: not checked any more", ""
        return
    if check.has_new_expectation:
        state = "is new" if check.before is None else "expects something else"
        yield f"    {name}: {state}", "dim"
        if check.before is not None:
            yield f"      - {_value(check.before['expected'])}", "before"
        yield f"      + {_value(check.after['expected'])}", "after"
    if check.after["passed"]:
        if check.before is not None and not check.before["passed"]:
            yield f"    {name}: holds now", "better"
        return
    first, *others = printable(
        clip(check.after["message"], _MAX_LENGTH), keep_newlines=True
    ).splitlines() or ["does not hold"]
    yield f"    {name}: {first}", ""
    yield from ((f"      {line}", "") for line in others[:_MAX_LINES])


def _value(value: Any) -> str:
    return printable(clip(value if isinstance(value, str) else encode(value), _MAX_LENGTH))


def _repeats(change: Change) -> list[str]:
    notes = []
    if change.paired > 1:
        which = ", ".join(map(str, change.repeats[:10])) + (", …" if len(change.repeats) > 10 else "")
        notes.append(
            f"{len(change.repeats)} of {plural(change.paired, 'repeat')} differ"
            + (f": {which}" if which else "")
        )
    if change.unpaired:
        notes.append(f"not compared, since only one of the runs has it: {plural(change.unpaired, 'repeat')}")
    return notes


def _difference_lines(difference: Difference, where: str) -> Iterator[Line]:
    """Yield the location and time of the first difference, and the first lines of its diff."""
    moments = [seconds(at) if at is not None else "–" for at in (difference.before, difference.after)]
    when = moments[0] if moments[0] == moments[1] else f"{moments[0]} before, {moments[1]} now"
    place = f"  {where}" if where else ""
    yield f"    first difference at {when}: {printable(difference.what)}{printable(place)}", ""
    lines = [*_parts(difference)]
    yield from lines[:_MAX_LINES]
    left = max(len(lines) - _MAX_LINES, 0)
    if left or difference.more:
        more = [plural(left, "more line")] if left else []
        more += [plural(difference.more, "more place")] if difference.more else []
        yield f"      … and {' and '.join(more)}", "dim"
    if difference.slower and difference.kind != "time":
        yield f"    before that, {printable(difference.slower)}", "dim"


def _parts(difference: Difference) -> Iterator[Line]:
    for part in difference.parts:
        if part.place:
            yield f"      {printable(clip(part.place, 100))}:", "dim"
        for line in part.lines:
            yield f"      {printable(line)}".rstrip(), _STYLES.get(line[:1], "dim")


def as_json(comparison: Comparison, explained: Iterable[Explanation], left_out: int) -> dict[str, Any]:
    """Return the comparison as JSON data. `left_out` is the number of changes without an explanation."""
    sides = {"before": comparison.before, "after": comparison.after}
    return {
        "format": "harness-compare/1",
        **{name: _side(side) for name, side in sides.items()},
        "counts": comparison.counts,
        "changes": [_change(found) for found in explained],
        "left_out": left_out,
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.run.name,
        "complete": not side.run.incomplete,
        "reason": side.run.incomplete or None,
        "unread": side.run.unread,
        "total": None if side.path is None else side.total,
    }


def _change(found: Explanation) -> Mapping[str, Any]:
    change = found.change
    sides = {"before": change.before, "after": change.after}
    return {
        "kind": change.kind,
        "id": change.scenario.id,
        "variant": change.scenario.variant,
        "twin": change.twin or None,
        **{name: None if side is None else figures_of(side) for name, side in sides.items()},
        "repeats": {"compared": change.paired, "different": [*change.repeats], "unpaired": change.unpaired},
        "repeat": next((line["repeat"] for line in found.lines if line is not None), None),
        "checks": [check.as_json() for check in found.checks],
        "difference": None
        if found.difference is None
        else found.difference.as_json() | {"where": found.where or None},
        "unknown": found.unknown or None,
        "notes": [*found.notes],
    }


_CONTEXT: Final = 2
_MAX_COMPARED: Final = 10_000_000
_MARGIN: Final = 10


def whole_lines(found: Explanation, traces: Sequence[RunTrace], *, unfolded: bool = False) -> Iterator[Line]:
    """Yield everything that differs in a scenario.

    `traces` are those of the explained repeat; they are compared if both runs have one. `unfolded` shows long texts
    in full.
    """
    yield from entry_lines(found)
    before, after = found.lines
    if before is not None and after is not None and before["path"] != after["path"]:
        yield "", ""
        yield f"- path  {printable(path_text(before['path']))}", "before"
        yield f"+ path  {printable(path_text(after['path']))}", "after"
    if found.difference is not None and len(traces) == 2:
        yield "", ""
        yield from _conversations(*traces, unfolded=unfolded)


def trace_lines(before: RunTrace, after: RunTrace, *, unfolded: bool = False) -> Iterator[Line]:
    """Yield the first difference of two traces, and the diff of their conversations."""
    yield " -> ".join(printable(str(trace.head.get("id"))) for trace in (before, after)), "bold"
    for name, trace in (("earlier", before), ("later", after)):
        yield from ((f"  the {name} lacks {printable(text)}", "dim") for text in trace.missing)
    difference = first_difference(before.events, after.events)
    if difference is None:
        yield "the same in both traces", ""
        return
    yield from _difference_lines(difference, "")
    yield "", ""
    yield from _conversations(before, after, unfolded=unfolded)


def _conversations(before: RunTrace, after: RunTrace, *, unfolded: bool) -> Iterator[Line]:
    """Yield the diff of both conversations, `-` for the earlier and `+` for the later, with little context."""
    one, other = ([*rows(trace.events, trace.head.get("kinds", {}))] for trace in (before, after))
    found = steps([row[1:] for row in one], [row[1:] for row in other], _MAX_COMPARED)
    for number, (kind, start, end, at, to) in enumerate(found):
        if kind == "equal":
            head = other[at : at + _CONTEXT] if number else []
            tail = other[max(to - _CONTEXT, at + len(head)) : to] if number < len(found) - 1 else []
            yield from (line for row in head for line in _row(" ", row, unfolded))
            if left := to - at - len(head) - len(tail):
                yield f"{'':{_MARGIN}}  … {plural(left, 'line')} alike", "dim"
            yield from (line for row in tail for line in _row(" ", row, unfolded))
            continue
        paired = _paired(one[start:end], other[at:to])
        for old, new in zip(one[start : start + paired], other[at : at + paired], strict=True):
            yield from _changed(old, new, unfolded)
        yield from (line for row in one[start + paired : end] for line in _row("-", row, unfolded))
        yield from (line for row in other[at + paired : to] for line in _row("+", row, unfolded))


def _paired(one: Sequence[Row], other: Sequence[Row]) -> int:
    """Return the number of leading rows that are equal apart from their texts."""
    alike = (old.label and old[1:4] == new[1:4] for old, new in zip(one, other, strict=False))
    return next((at for at, same in enumerate(alike) if not same), min(len(one), len(other)))


def _changed(old: Row, new: Row, unfolded: bool) -> Iterator[Line]:
    lines = diff_lines(old.text, new.text)
    if len(lines) == 1 and lines[0].startswith("~ "):
        yield from _row("~", new._replace(text=lines[0][2:]), unfolded)
        return
    yield from _row("-", old, unfolded)
    yield from _row("+", new, unfolded)


def _row(sign: str, row: Row, unfolded: bool) -> Iterator[Line]:
    style = {"-": "before", "+": "after", "~": "words"}.get(sign, "dim")
    text = row.text.rstrip() if unfolded else folded(row.text.rstrip())
    margin = f"{seconds(row.at):>{_MARGIN}}  "
    lead = "  " * row.depth + (f"{printable(row.label)}: " if row.label.strip() else "")
    for line in printable(text, keep_newlines=True).split("\n"):
        yield f"{sign} {margin}{lead}{line}".rstrip(), style
        margin, lead = " " * len(margin), " " * len(lead)
