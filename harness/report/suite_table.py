"""A table for the terminal of the suites of a run, or of its other groups, those with failures first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.report.formatting import plural, score, seconds
from harness.report.wrap import keep_end
from harness.source.display import printable

_MAX_SUITES: Final = 10
_GAP: Final = "  "
_HEAD: Final = ("passed", "fitness", "p95")
_SUFFIX: Final = ".scenario.yaml"
_MIN_WIDTH: Final = 12
"""Minimum columns for the name of a group."""


def suite_table(suites: Mapping[str, Mapping[str, Any]], width: int | None = None) -> list[str]:
    """Return a line for each suite, in the form of `group_table`; nothing if there is only one suite."""
    return group_table("suite", suites, width, _MAX_SUITES) if len(suites) > 1 else []


def group_table(
    word: str, groups: Mapping[str, Mapping[str, Any]], width: int | None = None, most: int | None = None
) -> list[str]:
    """Return a line for each group of runs, followed by an empty line.

    Args:
        word: the noun for one group, such as "suite".
        groups: the figures of each group, by name.
        width: the columns to align values in; None pads nothing, for output that is no terminal.
        most: the most groups to list; None lists all.
    """
    ordered = sorted(groups.items(), key=worst_first)
    shown = ordered[:most]
    rows = [_row(name, group) for name, group in shown]
    lines = [_plain_row(row) for row in rows] if width is None else _columns([(word, *_HEAD), *rows], width)
    return [*lines, *_left_out(word, [group for _, group in ordered[len(shown) :]]), ""]


def worst_first(named: tuple[str, Mapping[str, Any]]) -> tuple[bool, float, str]:
    """Sort key for (name, figures): groups with failures first, then by fitness, the lowest first."""
    name, group = named
    return not _not_passed(group), 1.0 if group["fitness"] is None else group["fitness"], name


def _not_passed(group: Mapping[str, Any]) -> int:
    return int(group["failed"] + group["errors"])


def _row(name: str, group: Mapping[str, Any]) -> tuple[str, ...]:
    passed = f"{group['passed']}/{group['runs'] - group['skipped']}"
    return printable(name), passed, score(group["fitness"]), seconds(group["latency"]["p95"])


def _plain_row(row: tuple[str, ...]) -> str:
    name, passed, fitness, p95 = row
    return _GAP.join((name, f"{passed} passed", f"fitness {fitness}", f"p95 {p95}"))


def _columns(rows: list[tuple[str, ...]], width: int) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    figures = sum(widths[1:]) + len(_GAP) * len(widths[1:])
    if widths[0] > width - figures:
        rows = [(row[0].removesuffix(_SUFFIX), *row[1:]) for row in rows]
        widths[0] = max(map(len, next(zip(*rows, strict=True))))
    widths[0] = max(min(widths[0], width - figures), _MIN_WIDTH)
    return [
        _GAP.join(
            [keep_end(row[0], widths[0]).ljust(widths[0])]
            + [value.rjust(column) for value, column in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    ]


def _left_out(word: str, groups: list[Mapping[str, Any]]) -> list[str]:
    if not groups:
        return []
    failing = sum(_not_passed(group) > 0 for group in groups)
    rest = f"{failing} of them with failures" if failing else "none with failures"
    return [f"… and {plural(len(groups), f'more {word}')}, {rest}"]
