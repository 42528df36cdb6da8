"""Format the summary of a run for the terminal: lost scores, warnings, and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.report.encoding import encode
from harness.report.figures import BRIEF, FIGURES, LATENCIES, Figure
from harness.report.formatting import (
    cost_of,
    distinct,
    hanging,
    keep_end,
    percent,
    plural,
    seconds,
    short_name,
    short_words,
    unpriced,
    wrapped,
)
from harness.report.repeats import label
from harness.source.display import clip, printable
from harness.source.document import shown_path

if TYPE_CHECKING:
    from harness.recording.interactions import Traffic
    from harness.scenario.outcome import RecordingResult


_MAX_NAMES: Final = 3
_MAX_LISTED: Final = 20
_MAX_WARNINGS: Final = 10
_MAX_LINES: Final = 6
_MESSAGE_LENGTH: Final = 300
_PARTS: Final = {"nodes": "node", "edges": "edge", "branches": "branch"}


def notes(summary: Mapping[str, Any], width: int | None = None) -> list[str]:
    """Return lines about runs below the full score and warnings, which a passing run might hide."""
    left_out = summary["left_out"]
    lines = [
        *_losses(summary["losses"], left_out["losses"]),
        *_warnings(summary["warnings"], left_out["warnings"]),
    ]
    return wrapped("\n".join(lines), width).split("\n") if lines else []


def failures(summary: Mapping[str, Any], width: int | None = None) -> list[str]:
    """Return a line for each group of failures: runs of a scenario with the same causes, or with one fault."""
    alike: dict[Any, list[Mapping[str, Any]]] = {}
    for entry in summary["failures"]:
        causes = entry["error"], *(check["name"] for check in entry["checks"])
        alike.setdefault(entry["fault"] or (entry["id"], entry["variant"], causes), []).append(entry)
    lines = [_not_passed(same) for same in [*alike.values()][:_MAX_LISTED]]
    more = len(summary["failures"]) + summary["left_out"]["failures"]
    more -= sum(len(same) for same in [*alike.values()][:_MAX_LISTED])
    lines += [f"… and {plural(more, 'more run')} that did not pass"] if more else []
    return wrapped("\n".join(lines), width).split("\n") if lines else []


def _not_passed(same: Sequence[Mapping[str, Any]]) -> str:
    entry = same[0]
    names = {(each["id"], each["variant"]) for each in same}
    causes = [short_name(check["name"]) for check in entry["checks"]]
    cause = _one_line(entry["error"]) if entry["error"] else ", ".join(causes)
    times = f"  × {len(same)}" if len(same) > 1 else ""
    others = f"  and {plural(len(names) - 1, 'more scenario')}" if len(names) > 1 else ""
    run = f"  in {printable(entry['run'])}" if "run" in entry and len(same) == 1 else ""
    name = _name({**entry, "repeat": 0} if times else entry)
    return f"{entry['verdict']}  {name}{times}{others}{run}  {cause or 'could not be judged'}"


def counts(total: Mapping[str, Any]) -> tuple[list[tuple[str, str]], str]:
    """Return (text, verdict) for each verdict that occurred, and a text with the number of runs and scenarios."""
    found = [(f"{total['passed']} passed", "passed")]
    found += [(f"{total['failed']} failed", "failed")] if total["failed"] else []
    found += [(plural(total["errors"], "error"), "error")] if total["errors"] else []
    found += [(f"{total['skipped']} skipped", "skipped")] if total["skipped"] else []
    return found, f"({plural(total['runs'], 'run')} of {plural(total['scenarios'], 'scenario')})"


def figures(summary: Mapping[str, Any], width: int | None = None, *, coverage: bool = False) -> list[str]:
    """Return lines of label and value; `coverage` adds the parts of each graph that no scenario took.

    With a `width`, values are aligned and wrapped; without, for output that is no terminal, nothing is padded.
    """
    facts = [("runs", _runs(summary["runs"]))] if "runs" in summary else []
    facts += [("not whole", summary["reason"])] if summary["reason"] else []
    facts += [
        *_totals(summary["total"], bool(summary.get("scripted"))),
        *_scenarios(summary),
        *_traces(summary.get("traces") or {}),
    ]
    facts += _coverage(summary["coverage"]) if coverage else []
    if width is None:
        return [f"{label}  {value}" for label, value in facts]
    indent = max((len(label) for label, _ in facts), default=0) + 2
    return [
        f"{'' if number else label:<{indent}}{line}".rstrip()
        for label, value in facts
        for number, line in enumerate(hanging(value, max(width - indent, 20)))
    ]


def report_paths(report: Path) -> list[str]:
    """Return lines that name the results folder and its report.html."""
    from harness.report.html.page import PAGE

    return [f"results: {shown_path(report)}", f"report: {shown_path(report / PAGE)}"]


def _runs(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of the runs that were added up."""
    names = [f"{printable(run['name'])} ({run['runs']:,})" for run in runs[:_MAX_NAMES]]
    more = f", … and {len(runs) - _MAX_NAMES} more" if len(runs) > _MAX_NAMES else ""
    return f"of {len(runs)} together: {', '.join(names)}{more}"


def _losses(losses: Sequence[Mapping[str, Any]], left_out: int) -> Iterator[str]:
    if not losses:
        return
    yield f"{plural(len(losses) + left_out, 'run')} passed below the full score:"
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for loss in losses:
        alike.setdefault(encode({**loss, "repeat": 0}), []).append(loss)
    groups = list(alike.values())
    for same in groups[:_MAX_LISTED]:
        loss, times = same[0], f"  × {len(same)}" if len(same) > 1 else ""
        yield f"  {_name({**loss, 'repeat': 0} if times else loss)}  score {loss['score']:.2f}{times}"
        for check in loss["checks"]:
            first, *others = printable(short_words(check["message"]), keep_newlines=True).splitlines() or [""]
            yield f"    {short_name(check['name'])}: {first or 'does not hold'}"
            yield from (f"    {line}" for line in others[:_MAX_LINES])
        if loss["latency_penalty"]:
            yield f"    latency: over the bound of `latency.total`, penalty {loss['latency_penalty']:.2f}"
    if len(groups) > _MAX_LISTED:
        yield f"  … and {len(groups) - _MAX_LISTED} more"
    if left_out:
        yield f"  {left_out:,} of them are not listed in summary.json either"
    yield ""


def _warnings(warnings: Sequence[Mapping[str, Any]], left_out: int) -> Iterator[str]:
    if not warnings:
        return
    times = sum(warning["times"] for warning in warnings) + left_out
    yield plural(times, "warning") + (f", {len(warnings)} different:" if times > len(warnings) else ":")
    for warning in warnings[:_MAX_WARNINGS]:
        yield f"  {_one_line(warning['text'])}"
        count = "" if warning["scenarios"] == 1 else f"{plural(warning['scenarios'], 'scenario')}, such as "
        yield f"    {count}{printable(warning['names'][0])}"
    if len(warnings) > _MAX_WARNINGS:
        yield f"  … and {len(warnings) - _MAX_WARNINGS} more, in summary.json"
    if left_out:
        yield f"  {left_out:,} of them are not listed in summary.json either"
    yield ""


def _one_line(text: str) -> str:
    return printable(clip(" ".join(short_words(text).split()), _MESSAGE_LENGTH))


_FEW_RUNS: Final = 10
"""Below this number of distinct runs, the interval of a pass rate says nothing."""


def _totals(total: Mapping[str, Any], scripted: bool) -> Iterator[tuple[str, str]]:
    """Yield the figures that say something: not what is 0 because stubs report nothing else."""
    if total["pass_rate"] is None:
        return
    low, high = total["pass_rate_interval"]
    few = total["distinct_runs"] - total["skipped"] < _FEW_RUNS
    interval = "" if few else f"  (95 % interval {percent(low)} to {percent(high)})"
    yield "pass rate", f"{percent(total['pass_rate'])}{interval}"
    yield "fitness", f"{total['fitness']:.3f}"
    if text := distinct(total):
        yield "distinct", text
    repeats = max(map(int, total["pass_at_k"]), default=1)
    if repeats > 1:
        at, hat = total["pass_at_k"][str(repeats)], total["pass_hat_k"][str(repeats)]
        yield "repeats", f"pass@{repeats} {percent(at)} · pass^{repeats} {percent(hat)}"
    latency = total["latency"]
    if latency["max"] is not None and (latency["max"] or not scripted):
        shown = "".join(f"{figure.label} {figure.text(figure.of(total))} · " for figure in LATENCIES)
        yield "latency", f"{shown}max {seconds(latency['max'])}  (virtual)"
    tokens, price = total["tokens"], f"cost {cost_of(total)}"
    if tokens["total"] or not scripted:
        shows_cost = total["cost"] or unpriced(total) or not scripted
        used = [f"{tokens['input']:,} in", f"{tokens['output']:,} out", *([price] if shows_cost else [])]
        yield "tokens", " · ".join(used)
    yield "real time", seconds(total["wall"])


def _traces(traces: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a line if traces are missing."""
    if traces.get("left_out"):
        yield "traces", f"{traces['left_out']} left out: {printable(traces['why'])}"


def _scenarios(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield flaky scenarios and the slowest ones."""
    flaky = summary["total"]["flaky"]
    for i, entry in enumerate(flaky[:_MAX_NAMES]):
        yield "" if i else "flaky", f"{_name(entry)}  ({entry['passed']} of {entry['runs']} passed)"
    more = len(flaky[_MAX_NAMES:]) + summary.get("left_out", {}).get("flaky", 0)
    if more:
        yield "", f"… and {more} more"
    slow = [entry for entry in summary["slowest"][:_MAX_NAMES] if entry["latency"] > 0]
    for i, entry in enumerate(slow if summary["total"]["runs"] > 1 else []):
        yield (
            "" if i else "slowest",
            f"{seconds(entry['latency'])}  {printable(label(entry['id'], entry['variant']))}",
        )


def _name(entry: Mapping[str, Any]) -> str:
    """Return the id of a run, with its variant and repeat if it has them."""
    repeat = f" [repeat {entry['repeat']}]" if entry.get("repeat") else ""
    return printable(label(entry["id"], entry["variant"]) + repeat)


def _coverage(graphs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for i, (manifest, parts) in enumerate(graphs.items()):
        shares = " · ".join(f"{part} {found['taken']}/{found['all']}" for part, found in parts.items())
        yield "" if i else "coverage", f"{printable(manifest)}  {shares}"
        for part, noun in _PARTS.items():
            yield from (("", f"  not taken: {noun} {_item(missing)}") for missing in parts[part]["missing"])
        for part, noun in _PARTS.items():
            yield from (("", f"  dynamic: {noun} {_item(found)}") for found in parts[part].get("dynamic", ()))


def _item(item: Any) -> str:
    return " → ".join(map(short_name, item)) if isinstance(item, list) else printable(short_words(str(item)))


_MAX_SUITES: Final = 10
_GAP: Final = "  "
_ALWAYS: Final = ("pass rate", "fitness")
"""The figures that are shown even if they are 0 in all groups."""
_FIRST_TO_GO: Final = tuple(
    each.label for each in reversed(FIGURES) if not each.is_brief and each.label not in _ALWAYS
)
"""The columns that a narrow terminal leaves out, if they leave less than half of it to the names."""
_SUFFIX: Final = ".scenario.yaml"
_MIN_WIDTH: Final = 12
"""Minimum columns for the name of a group."""


def suite_table(suites: Mapping[str, Mapping[str, Any]], width: int | None = None) -> list[str]:
    """Return a line for each suite, in the form of `group_table`; nothing if there is only one suite."""
    return group_table("suite", suites, width, _MAX_SUITES) if len(suites) > 1 else []


def group_table(
    word: str,
    groups: Mapping[str, Mapping[str, Any]],
    width: int | None = None,
    most: int | None = None,
    figures: Sequence[Figure] = BRIEF,
) -> list[str]:
    """Return a line for each group of runs, followed by an empty line.

    Args:
        word: the noun for one group, such as "suite".
        groups: the figures of each group, by name.
        width: the columns to align values in; None pads nothing, for output that is no terminal.
        most: the most groups to list; None lists all.
        figures: the columns after the counts; latency, tokens and cost are left out if all are 0.
    """
    ordered = sorted(groups.items(), key=worst_first)
    shown = ordered[:most]
    columns = [
        each for each in figures if each.label in _ALWAYS or any(each.of(group) for group in groups.values())
    ]
    head = (word, "passed", *(each.label for each in columns))
    table = [head, *(_row(name, group, columns) for name, group in shown)]
    lines = [_plain_row(head, row) for row in table[1:]] if width is None else _fitting(table, width)
    return [*lines, *_left_out(word, [group for _, group in ordered[len(shown) :]]), ""]


def worst_first(named: tuple[str, Mapping[str, Any]]) -> tuple[bool, float, str]:
    """Sort key for (name, figures): groups with failures first, then by fitness, the lowest first."""
    name, group = named
    return not _failing(group), 1.0 if group["fitness"] is None else group["fitness"], name


def _failing(group: Mapping[str, Any]) -> int:
    return int(group["failed"] + group["errors"])


def _row(name: str, group: Mapping[str, Any], columns: Sequence[Figure]) -> tuple[str, ...]:
    values = [(each, each.of(group)) for each in columns]
    texts = (each.text(value) for each, value in values)
    return printable(name), f"{group['passed']}/{group['runs'] - group['skipped']}", *texts


def _plain_row(head: tuple[str, ...], row: tuple[str, ...]) -> str:
    name, passed, *figures = row
    labelled = (f"{label} {text}" for label, text in zip(head[2:], figures, strict=True))
    return _GAP.join((name, f"{passed} passed", *labelled))


def _fitting(table: list[tuple[str, ...]], width: int) -> list[str]:
    """Return the lines of a table. A last line names the columns that a narrow terminal leaves out."""
    gone: list[str] = []
    for name in _FIRST_TO_GO:
        names, *rest = [max(map(len, column)) for column in zip(*table, strict=True)]
        if name in table[0] and width - sum(rest) - len(_GAP) * len(rest) < min(names, width // 2):
            at = table[0].index(name)
            table = [(*row[:at], *row[at + 1 :]) for row in table]
            gone.insert(0, name)
    note = [f"(a wider terminal, or --csv, has {', '.join(gone)}, too)"] if gone else []
    return [*_columns(table, width), *note]


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
    failing = sum(_failing(group) > 0 for group in groups)
    rest = f"{failing} of them with failures" if failing else "none with failures"
    return [f"… and {plural(len(groups), f'more {word}')}, {rest}"]


def recorded_lines(recorded: Sequence[RecordingResult], *, quiet: bool) -> Iterator[str]:
    """Yield a line for all cassettes, and unless `quiet` one for each; nothing if nothing was to be recorded."""
    if not recorded:
        return
    whole = recorded[0].traffic
    for each in recorded[1:]:
        whole += each.traffic
    files = sum(len(each.files) for each in recorded)
    yield ""
    in_vain = whole and not files
    yield f"{'nothing recorded' if in_vain else 'recorded'}: {_described(whole)}; {plural(files, 'file')} written"
    for each in () if quiet else recorded:
        yield f"  {shown_path(each.folder)}  {_cassette(each)}"


def _cassette(one: RecordingResult) -> str:
    asked = _described(one.traffic)
    if one.problem:
        return f"is not written: {one.problem.splitlines()[0]} ({asked})"
    left = f"; {one.unused} recorded before and not used now, which --rewrite drops" if one.unused else ""
    if not one.traffic:
        return f"nothing was missing{left}"
    return f"{asked} → {', '.join(one.files) or 'the same as before, nothing is written'}{left}"


def _described(traffic: Traffic) -> str:
    if not traffic:
        return "nothing asked"
    parts = [plural(traffic.requests, "request")] if traffic.requests else []
    parts += [plural(traffic.people, "question") + " to a person"] if traffic.people else []
    tokens = f"{traffic.input_tokens:,} tokens in, {traffic.output_tokens:,} out"
    return ", ".join([*parts, *([tokens] if traffic.input_tokens or traffic.output_tokens else [])])
