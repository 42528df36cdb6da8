"""Write summary.md: a run on one page, for people, pull request comments and `$GITHUB_STEP_SUMMARY`.

Failures come first, so that they remain when a long page is cut. Names and texts of a run are escaped, so that they
are neither markup nor links nor mentions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from harness.report.figures import BRIEF, FIGURES, LATENCIES
from harness.report.formatting import cost_of, distinct, percent, plural, score, seconds
from harness.report.group import PARTS
from harness.report.summary_text import worst_first
from harness.source.display import clip, printable

if TYPE_CHECKING:
    from harness.report.compare.comparison import Change, Comparison
    from harness.report.runs import GroupedRuns


_HTML: Final = re.compile(r"[<>&]")
_ENTITIES: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_SPECIAL: Final = re.compile(
    r"[\\`*\[\]|~$]"
    r"|(?<![a-z0-9])_|_(?![a-z0-9])"  # an underscore inside a word is no markup
    r"|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.",  # GitHub turns these into links
    re.IGNORECASE,
)
_FIRST: Final = re.compile(r"\A(\d*)([.)](?=\s|\Z)|#(?=[#\s]|\Z)|[-+](?=[-\s]|\Z))")
"""Starts of lines that make a list or a heading."""
_REFERENCE: Final = re.compile(r"@|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
"""Mentions (`@name`) and references to issues (`#12`, `GH-12`)."""
_NOTHING: Final = "&#8203;"
"""A zero-width space, in the form that GitHub's own bots use."""
_MAX_NAME: Final = 300
_MAX_NAMES: Final = 30
_MAX_PAGE: Final = 60_000


def escape(text: str) -> str:
    r"""Escape prose so that Markdown shows it literally, on one line, also in a table cell.

    >>> escape("a|b <i> never_calls __init__")
    'a\\|b &lt;i&gt; never_calls \\_\\_init\\_\\_'
    >>> escape("@octocat broke #12")
    '@&#8203;octocat broke #&#8203;12'
    """
    return _REFERENCE.sub(lambda found: found[0] + _NOTHING, _FIRST.sub(r"\1\\\2", _literal(text)))


def code(text: str) -> str:
    r"""Format a name as inline code on one line, also in a table cell. Copying yields the name; it mentions nobody.

    >>> code("a.scenario.yaml::@octocat broke #12"), code("a|b `c`")
    ('`a.scenario.yaml::@octocat broke #12`', '<code>a\\|b \\`c\\`</code>')
    """
    name = clip(printable(text), _MAX_NAME)
    plain = name.strip() == name != "" and not {"`", "|"} & set(name)
    return f"`{name}`" if plain else f"<code>{_literal(name)}</code>"


def _literal(text: str) -> str:
    safe = _HTML.sub(lambda found: _ENTITIES[found[0]], printable(text))
    return _SPECIAL.sub(lambda found: "\\" + found[0], safe)


def listed(items: Iterable[str], most: int = _MAX_NAMES, left_out: int = 0) -> str:
    """Join at most `most` items, and append the number of the others plus `left_out`."""
    rest = iter(items)
    shown = [*islice(rest, most)]
    left = sum(1 for _ in rest) + left_out
    return ", ".join([*shown, *([f"… and {left} more"] if left else [])])


def bounded(page: str) -> str:
    """Return the page cut to the length of a GitHub comment, at the end of a line and with a note."""
    if len(page) <= _MAX_PAGE:
        return page
    return page[: page.rindex("\n", 0, _MAX_PAGE)] + "\n\nThe rest is in report.html and summary.json.\n"


_MAX_FAILURES: Final = 25
_MAX_ROWS: Final = 50
_COUNTS: Final = ("runs", "passed", "failed", "errors")
_MAX_CHECKS: Final = 5
_MESSAGE_LENGTH: Final = 300


def markdown(
    summary: Mapping[str, Any], changes: Sequence[str] = (), *, grouped: GroupedRuns | None = None
) -> str:
    """Return the summary as GitHub-flavoured Markdown: totals, failures, branches not taken, a table of groups.

    Args:
        summary: as in summary.json.
        changes: paragraphs on changes since an earlier run (`since_last_whole`, `since_baseline`).
        grouped: the groups of the table; None stands for the suites.
    """
    parts = [
        _headline(summary["total"], _left_out(summary, "flaky")),
        *([f"**Not a whole run**: {escape(summary['reason'])}."] if summary["reason"] else []),
        *_failures(summary),
        *changes,
        *_untaken(summary["coverage"]),
        *_losses(summary),
        *_warnings(summary),
        _groups("suite", summary["suites"], summary["total"])
        if grouped is None
        else _groups(grouped.title, grouped.named(), summary["total"]),
        *_coverage(summary["coverage"]),
    ]
    return bounded("\n\n".join(parts) + "\n")


def _headline(total: Mapping[str, Any], flaky_left_out: int) -> str:
    low, high = total["pass_rate_interval"]
    facts = [
        f"pass rate {percent(total['pass_rate'])} (95 % interval {percent(low)} to {percent(high)})",
        *([f"distinct: {text}"] if (text := distinct(total)) else []),
        f"fitness {score(total['fitness'])}",
        f"virtual latency {', '.join(f'{each.label} {each.text(each.of(total))}' for each in LATENCIES)}",
        f"{total['tokens']['total']:,} tokens, cost {escape(cost_of(total))}",
        *([plural(total["warnings"], "warning")] if total["warnings"] else []),
        f"{seconds(total['wall'])} of real time",
    ]
    counts = [f"{total['passed']} passed"]
    counts += [f"{total[name]} {name}" for name in ("failed", "errors", "skipped") if total[name]]
    passed = (f"{name_of(each)} ({each['passed']} of {each['runs']} passed)" for each in total["flaky"])
    named = listed(passed, left_out=flaky_left_out)
    flaky = f"\n\nFlaky: {named}" if total["flaky"] else ""
    return f"## Scenarios: {', '.join(counts)}\n\n" + "\n".join(f"- {fact}" for fact in facts) + flaky


def _groups(word: str, groups: Mapping[str, Any], total: Mapping[str, Any]) -> str:
    shown = sorted(groups.items(), key=worst_first)[:_MAX_ROWS] if len(groups) > _MAX_ROWS else groups.items()
    rows = [(code(name), group) for name, group in shown]
    rows.append(("**total**", total))
    names = [word, *_COUNTS, *(figure.label for figure in BRIEF)]
    head = f"| {' | '.join(names)} |\n|---{'|--:' * (len(names) - 1)}|"
    table = "\n".join([head, *(_group(name, group) for name, group in rows)])
    rest = len(groups) - len(shown)
    return f"{table}\n\n… and {plural(rest, f'more {word}')}, none worse" if rest else table


def _group(name: str, group: Mapping[str, Any]) -> str:
    counts = [str(group[key]) for key in _COUNTS]
    return f"| {' | '.join([name, *counts, *(each.text(each.of(group)) for each in BRIEF)])} |"


def _failures(summary: Mapping[str, Any]) -> list[str]:
    failures = summary["failures"]
    by_fault: dict[Any, list[Mapping[str, Any]]] = {}
    for at, failure in enumerate(failures):
        by_fault.setdefault(failure["fault"] or at, []).append(failure)
    shown = list(by_fault.values())[:_MAX_FAILURES]
    lines = [line for alike in shown for line in (_failure(*alike) if len(alike) == 1 else _fault(alike))]
    rest = len(failures) - sum(map(len, shown)) + _left_out(summary, "failures")
    return _section("Not passed", lines, rest, "more run")


def _section(title: str, lines: Sequence[str], rest: int, noun: str) -> list[str]:
    """Return a heading and a list that says how many entries are left out; nothing if there are none."""
    return [f"### {title}", "\n".join([*lines, *_more(rest, noun)])] if lines else []


def _left_out(summary: Mapping[str, Any], part: str) -> int:
    return int(summary.get("left_out", {}).get(part, 0))


def _more(count: int, noun: str) -> list[str]:
    return [f"- … and {plural(count, noun)}"] if count else []


def _losses(summary: Mapping[str, Any]) -> list[str]:
    losses, lines = summary["losses"], []
    for loss in losses[:_MAX_FAILURES]:
        lines += [f"- **{name_of(loss)}** score {loss['score']:.2f}", *_checks(loss["checks"])]
        if loss["latency_penalty"]:
            lines.append(f"  - over the bound of its latency, penalty {loss['latency_penalty']:.2f}")
    rest = max(len(losses) - _MAX_FAILURES, 0) + _left_out(summary, "losses")
    return _section("Passed below the full score", lines, rest, "more run")


def _warnings(summary: Mapping[str, Any]) -> list[str]:
    warnings = summary["warnings"]
    lines = [
        f"- {_message(warning['text'])} ({plural(warning['scenarios'], 'scenario')})"
        for warning in warnings[:_MAX_FAILURES]
    ]
    return _section("Warnings", lines, max(len(warnings) - _MAX_FAILURES, 0), "more text")


def _fault(alike: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines for runs that failed for the same reason."""
    noun = "scenario" if len({failure["id"] for failure in alike}) == len(alike) else "run"
    names = [f"    - {name_of(failure)}" for failure in alike[:_MAX_FAILURES]]
    more = [f"    {line}" for line in _more(len(alike) - len(names), "more run")]
    head = f"- **{plural(len(alike), noun)}** {alike[0]['verdict']}, for the same reason"
    return [head, f"  - {_message(alike[0]['error'])}", *names, *more]


def _failure(failure: Mapping[str, Any]) -> list[str]:
    lines = [f"- **{name_of(failure)}** {failure['verdict']}, score {failure['score'] or 0:.2f}"]
    if failure["error"]:
        lines.append(f"  - {_message(failure['error'])}")
    if failure["fault"]:
        names = listed((escape(check["name"]) for check in failure["checks"]), _MAX_CHECKS)
        return [*lines, *([f"  - and what follows from it: {names}"] if names else [])]
    return [*lines, *_checks(failure["checks"])]


def _checks(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"  - {escape(check['name'])}: {_message(check['message'])}" for check in checks[:_MAX_CHECKS]]
    return [*lines, *(f"  {line}" for line in _more(len(checks) - len(lines), "more check"))]


def _message(text: str) -> str:
    return escape(clip(printable(text), _MESSAGE_LENGTH)) or "not met"


def name_of(entry: Mapping[str, Any]) -> str:
    """Return the id of a run as inline code, with its variant and repeat if it has them."""
    more = [f"variant {entry['variant']}"] if entry["variant"] else []
    more += [f"repeat {entry['repeat']}"] if entry.get("repeat") else []
    return code(entry["id"] + (f" [{', '.join(more)}]" if more else ""))


def _coverage(graphs: Mapping[str, Any]) -> list[str]:
    if not graphs:
        return []
    head = "| graph | nodes | edges | branches |\n|---|--:|--:|--:|"
    least_first = sorted(graphs.items(), key=_share) if len(graphs) > _MAX_ROWS else graphs.items()
    rows = [
        f"| {code(manifest)} | "
        + " | ".join(f"{parts[part]['taken']} of {parts[part]['all']}" for part in PARTS)
        + " |"
        for manifest, parts in [*least_first][:_MAX_ROWS]
    ]
    rest = len(graphs) - len(rows)
    more = [f"… and {plural(rest, 'more graph')}, none with lower coverage"] if rest else []
    return ["### Coverage", "\n".join([head, *rows]), *more]


def _share(graph: tuple[str, Mapping[str, Any]]) -> float:
    """Return the share of a graph that was taken."""
    taken, every = (sum(part[count] for part in graph[1].values()) for count in ("taken", "all"))
    return float(taken / max(every, 1))


def _untaken(graphs: Mapping[str, Any]) -> list[str]:
    """Return a section with the branches that no scenario took, by manifest."""
    lines = []
    for manifest, parts in graphs.items():
        branches = parts["branches"]
        if branches["missing"]:
            places = branches.get("where") or [None] * len(branches["missing"])
            missing = (_branch(*each) for each in zip(branches["missing"], places, strict=True))
            lines.append(f"- {code(manifest)}: {listed(missing)}")
    rest = max(len(lines) - _MAX_FAILURES, 0)
    return _section("Branches that no scenario took", lines[:_MAX_FAILURES], rest, "more graph")


def _branch(branch: Any, place: str | None) -> str:
    line = (place or "").rpartition(":")[2]
    return code(str(branch)) + (f" (line {line})" if line else "")


_MAX_CHANGED: Final = 25
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
            yield f"{count}: {listed(map(_change, changes), _MAX_CHANGED)}"


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
        before, after = map(figure.text, values)
        if before != after:
            yield f"| {figure.label} | {before} | {after} |"
