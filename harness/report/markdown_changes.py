"""Paragraphs of summary.md about changes since an earlier run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.report.formatting import percent, plural
from harness.report.headline_figures import FIGURES
from harness.report.markdown import name_of
from harness.report.markdown_text import code, escape, listed

if TYPE_CHECKING:
    from harness.report.compare.comparison import Change, Comparison

_MAX_NAMES: Final = 25
_WORDS: Final = {
    "worse": "got worse",
    "gone": "gone",
    "new": "new",
    "changed": "did something else",
    "better": "got better",
}


def since_last_whole(summary: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    """List new failures; of a complete run also those that are fixed, and the change of the pass rate.

    `before` is the summary of the last complete run; without one the result is empty.
    """
    if before is None:
        return []
    failing, failed = (
        {(each["id"], each["variant"]): {**each, "repeat": 0} for each in of["failures"]}
        for of in (summary, before)
    )
    new = [name_of(failing[key]) for key in failing if key not in failed]
    lines = [f"{plural(len(new), 'new failure')}{': ' if new else ''}{listed(new)}"]
    if summary["complete"]:
        mended = [name_of(failed[key]) for key in failed if key not in failing]
        lines += [f"{len(mended)} no longer failing: {listed(mended)}"] if mended else []
        rates = [percent(of["total"]["pass_rate"]) for of in (before, summary)]
        lines += [f"pass rate {' → '.join(rates)}"] if rates[0] != rates[1] else []
    return ["### Since the last whole run", "\n".join(f"- {line}" for line in lines)]


def since_baseline(comparison: Comparison) -> list[str]:
    """List the scenarios that differ from those of a baseline, and the figures that changed."""
    lines = [f"- {line}" for line in _scenarios(comparison)]
    figures = [*_figures(comparison)]
    table = "\n".join(["| | baseline | this run |\n|---|--:|--:|", *figures])
    return [
        f"### Against {code(comparison.before.run.name)}",
        "\n".join(lines or ["- every scenario did the same"]),
        *([table] if figures else []),
    ]


def _scenarios(comparison: Comparison) -> Iterator[str]:
    if why := comparison.before.run.incomplete:
        yield f"the baseline is not a whole run: {escape(why)}"
    for kind, words in _WORDS.items():
        changes = comparison.of(kind)
        if kind == "gone" and comparison.after.run.incomplete:
            words = "not in this run, which is not whole"
        if changes:
            count = f"**{len(changes)} {words}**" if kind in ("worse", "gone") else f"{len(changes)} {words}"
            yield f"{count}: {listed(map(_change, changes), _MAX_NAMES)}"


def _change(change: Change) -> str:
    name, before, after = code(change.scenario.label), change.before, change.after
    if before is None or after is None:
        verdict = (after or before or change.scenario).verdict
        return name if verdict == "passed" else f"{name} ({verdict})"
    if before.verdict != after.verdict:
        return f"{name} ({before.verdict} → {after.verdict})"
    if round(before.score, 2) != round(after.score, 2):
        return f"{name} (score {before.score:.2f} → {after.score:.2f})"
    return name


def _figures(comparison: Comparison) -> Iterator[str]:
    """Yield a table row for each figure whose formatted value changed."""
    for figure in FIGURES:
        values = [figure.of(side.total) for side in (comparison.before, comparison.after)]
        before, after = ("–" if value is None else figure.text(value) for value in values)
        if before != after:
            yield f"| {figure.label} | {before} | {after} |"
