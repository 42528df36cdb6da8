"""The full comparison of one scenario: checks, figures, paths, and both conversations line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from harness.report.compare.explanation import Explanation
from harness.report.compare.text import Line, entry_lines
from harness.report.compare.text_diff import diff_lines
from harness.report.conversation import Row, folded, rows
from harness.report.formatting import plural, seconds
from harness.report.steps import path_text
from harness.report.trace_reader import RunTrace
from harness.source.display import printable

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


def _conversations(before: RunTrace, after: RunTrace, *, unfolded: bool) -> Iterator[Line]:
    """Yield the diff of both conversations, `-` for the earlier and `+` for the later, with little context."""
    one, other = ([*rows(trace.events, trace.head.get("kinds", {}))] for trace in (before, after))
    steps = _steps([row[1:] for row in one], [row[1:] for row in other])
    for number, (kind, start, end, at, to) in enumerate(steps):
        if kind == "equal":
            head = other[at : at + _CONTEXT] if number else []
            tail = other[max(to - _CONTEXT, at + len(head)) : to] if number < len(steps) - 1 else []
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


def _steps(one: Sequence[object], other: Sequence[object]) -> list[tuple[str, int, int, int, int]]:
    if len(one) * len(other) > _MAX_COMPARED:  # comparing line by line would take too long
        return [("replace", 0, len(one), 0, len(other))]
    return [*SequenceMatcher(None, one, other, autojunk=False).get_opcodes()]
