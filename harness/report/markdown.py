"""summary.md: a run on one page, for people and for `$GITHUB_STEP_SUMMARY`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.report.formatting import cost_of, distinct, percent, plural, seconds
from harness.source.display import clip, printable

_HTML = re.compile(r"[<>&]")
_SPECIAL = re.compile(
    r"[\\`*\[\]|~$]"
    r"|(?<![a-z0-9])_|_(?![a-z0-9])"  # an underscore inside a word means nothing
    r"|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.",  # what GitHub makes links of
    re.IGNORECASE,
)
_MOST_FAILURES = 25
_MOST_NAMES = 30
_MESSAGE_LENGTH = 300
_LONGEST = 60_000


def markdown(summary: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str:
    """The summary as GitHub-flavoured Markdown: totals, a table by suite, and what did not pass.

    `before` is the summary of the last whole run: the page tells what has changed since.
    """
    parts = [
        _headline(summary["total"]),
        *_incomplete(summary),
        *(_changes(summary, before) if before else []),
        _suites(summary),
        *_failures(summary["failures"]),
        *_losses(summary["losses"]),
        *_warnings(summary["warnings"]),
        *_coverage(summary),
    ]
    return _bounded("\n\n".join(parts) + "\n")


def _bounded(page: str) -> str:
    """As many lines of the page as a comment on GitHub may have; it says so if that is not all."""
    if len(page) <= _LONGEST:
        return page
    return page[: page.rindex("\n", 0, _LONGEST)] + "\n\nThe rest is in report.html and summary.json.\n"


def escape(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line, also in a table cell; no HTML, no links.

    >>> escape("a|b <i> never_calls __init__")
    'a\\|b &lt;i&gt; never_calls \\_\\_init\\_\\_'
    """
    safe = _HTML.sub(lambda m: {"<": "&lt;", ">": "&gt;", "&": "&amp;"}[m[0]], printable(text))
    return _SPECIAL.sub(lambda m: "\\" + m[0], safe)


def _headline(total: Mapping[str, Any]) -> str:
    low, high = total["pass_rate_interval"]
    facts = [
        f"pass rate {percent(total['pass_rate'])} (95 % interval {percent(low)} to {percent(high)})",
        *([f"distinct: {text}"] if (text := distinct(total)) else []),
        f"fitness {_number(total['fitness'])}",
        f"virtual latency p50 {seconds(total['latency']['p50'])}, p95 {seconds(total['latency']['p95'])}",
        f"{total['tokens']['total']:,} tokens, cost {escape(cost_of(total))}",
        *([plural(total["warnings"], "warning")] if total["warnings"] else []),
        f"{seconds(total['wall'])} of real time",
    ]
    counts = [f"{total['passed']} passed"]
    counts += [f"{total[name]} {name}" for name in ("failed", "errors", "skipped") if total[name]]
    flaky = f"\n\nFlaky: {', '.join(_flaky(entry) for entry in total['flaky'])}" if total["flaky"] else ""
    return f"## Scenarios: {', '.join(counts)}\n\n" + "\n".join(f"- {fact}" for fact in facts) + flaky


def _incomplete(summary: Mapping[str, Any]) -> list[str]:
    return [f"**Not a whole run**: {escape(summary['reason'])}."] if summary["reason"] else []


def _changes(summary: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """What fails and did not; of a whole run also what fails no more, and how the pass rate moved."""
    failing, failed = (
        {(each["id"], each["variant"]): each for each in of["failures"]} for of in (summary, before)
    )
    new = [_name({**failing[key], "repeat": 0}) for key in failing if key not in failed]
    lines = [f"{plural(len(new), 'new failure')}{': ' if new else ''}{_some(new)}"]
    if summary["complete"]:
        mended = [_name({**failed[key], "repeat": 0}) for key in failed if key not in failing]
        lines += [f"{len(mended)} no longer failing: {_some(mended)}"] if mended else []
        rates = [percent(of["total"]["pass_rate"]) for of in (before, summary)]
        lines += [f"pass rate {' → '.join(rates)}"] if rates[0] != rates[1] else []
    return ["### Since the last whole run", "\n".join(f"- {line}" for line in lines)]


def _some(names: Sequence[str]) -> str:
    more = [f"… and {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return ", ".join([*names[:_MOST_NAMES], *more])


def _flaky(entry: Mapping[str, Any]) -> str:
    return f"{_name(entry)} ({entry['passed']} of {entry['runs']} passed)"


def _suites(summary: Mapping[str, Any]) -> str:
    rows = [(escape(name), group) for name, group in summary["suites"].items()]
    rows.append(("**total**", summary["total"]))
    head = "| suite | runs | passed | failed | errors | fitness | p95 |\n|---|--:|--:|--:|--:|--:|--:|"
    return "\n".join([head, *(_suite(name, group) for name, group in rows)])


def _suite(name: str, group: Mapping[str, Any]) -> str:
    figures = [str(group[key]) for key in ("runs", "passed", "failed", "errors")]
    return f"| {' | '.join([name, *figures, _number(group['fitness']), seconds(group['latency']['p95'])])} |"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _failures(failures: Sequence[Mapping[str, Any]]) -> list[str]:
    if not failures:
        return []
    by_fault: dict[Any, list[Mapping[str, Any]]] = {}
    for at, failure in enumerate(failures):
        by_fault.setdefault(failure["fault"] or at, []).append(failure)
    shown = list(by_fault.values())[:_MOST_FAILURES]
    lines = [line for alike in shown for line in (_failure(*alike) if len(alike) == 1 else _fault(alike))]
    if rest := len(failures) - sum(map(len, shown)):
        lines.append(f"- … and {plural(rest, 'more run')}")
    return ["### Not passed", "\n".join(lines)]


def _losses(losses: Sequence[Mapping[str, Any]]) -> list[str]:
    if not losses:
        return []
    lines = []
    for loss in losses[:_MOST_FAILURES]:
        lines.append(f"- **{_name(loss)}** score {loss['score']:.2f}")
        lines += [f"  - {escape(check['name'])}: {_message(check['message'])}" for check in loss["checks"]]
    if len(losses) > _MOST_FAILURES:
        lines.append(f"- … and {plural(len(losses) - _MOST_FAILURES, 'more run')}")
    return ["### Passed below the full score", "\n".join(lines)]


def _warnings(warnings: Sequence[Mapping[str, Any]]) -> list[str]:
    if not warnings:
        return []
    lines = [
        f"- {_message(warning['text'])} ({plural(warning['scenarios'], 'scenario')})"
        for warning in warnings[:_MOST_FAILURES]
    ]
    if len(warnings) > _MOST_FAILURES:
        lines.append(f"- … and {len(warnings) - _MOST_FAILURES} more")
    return ["### Warnings", "\n".join(lines)]


def _fault(alike: Sequence[Mapping[str, Any]]) -> list[str]:
    """Runs that failed for the same reason."""
    noun = "scenario" if len({failure["id"] for failure in alike}) == len(alike) else "run"
    names = [f"    - {_name(failure)}" for failure in alike[:_MOST_NAMES]]
    more = [f"    - … and {len(alike) - _MOST_NAMES} more"] if len(alike) > _MOST_NAMES else []
    head = f"- **{plural(len(alike), noun)}** {alike[0]['verdict']}, for the same reason"
    return [head, f"  - {_message(alike[0]['error'])}", *names, *more]


def _failure(failure: Mapping[str, Any]) -> list[str]:
    lines = [f"- **{_name(failure)}** {failure['verdict']}, score {failure['score'] or 0:.2f}"]
    if failure["error"]:
        lines.append(f"  - {_message(failure['error'])}")
    if failure["fault"]:
        names = ", ".join(escape(check["name"]) for check in failure["checks"])
        lines += [f"  - and what follows from it: {names}"] if names else []
    else:
        lines += [f"  - {escape(check['name'])}: {_message(check['message'])}" for check in failure["checks"]]
    return lines


def _message(text: str) -> str:
    return escape(clip(printable(text), _MESSAGE_LENGTH)) or "not met"


def _name(entry: Mapping[str, Any]) -> str:
    """The id, with variant and repeat where they tell runs apart."""
    more = [f"variant {entry['variant']}"] if entry["variant"] else []
    more += [f"repeat {entry['repeat']}"] if entry.get("repeat") else []
    return escape(entry["id"] + (f" [{', '.join(more)}]" if more else ""))


def _coverage(summary: Mapping[str, Any]) -> list[str]:
    if not summary["coverage"]:
        return []
    head = "| graph | nodes | edges | branches |\n|---|--:|--:|--:|"
    rows = [
        f"| {escape(manifest)} | "
        + " | ".join(
            f"{parts[part]['taken']} of {parts[part]['all']}" for part in ("nodes", "edges", "branches")
        )
        + " |"
        for manifest, parts in summary["coverage"].items()
    ]
    return ["### Coverage", "\n".join([head, *rows]), *_untaken(summary["coverage"])]


def _untaken(graphs: Mapping[str, Any]) -> list[str]:
    """The branches that no scenario took, by manifest."""
    lines = []
    for manifest, parts in graphs.items():
        missing = [escape(clip(str(branch), _MESSAGE_LENGTH)) for branch in parts["branches"]["missing"]]
        if missing:
            more = [f"… and {len(missing) - _MOST_NAMES} more"] if len(missing) > _MOST_NAMES else []
            lines.append(f"- {escape(manifest)}: {', '.join(missing[:_MOST_NAMES] + more)}")
    if len(lines) > _MOST_FAILURES:
        lines[_MOST_FAILURES:] = [f"- … and {plural(len(lines) - _MOST_FAILURES, 'more graph')}"]
    return ["Branches that no scenario took:", "\n".join(lines)] if lines else []
