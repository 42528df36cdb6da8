"""The text that pytest shows for a scenario that did not pass.

pytest asks the item for a representation of the failure and prints it at the end of the session. A worker of xdist
sends it as text only, so its parts are added to the report (`FAILURE`), and the controller restores the
representation. Before pytest prints the failures, those with the same fault are merged: the first is shown in full,
and lists the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

FAILURE: Final = "harness_failure"
"""The attribute of a report that holds a `FailureText` as JSON."""
_MOST_NAMES: Final = 30


@dataclass(frozen=True)
class Crash:
    """The failure in one line, for pytest's short summary, `--tb=line`, and the message in JUnit files."""

    message: str
    path: str
    lineno: int

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


@dataclass(frozen=True)
class FailureText:
    """A failure as pytest prints it.

    Attributes:
        text: the full text.
        reprcrash: the failure in one line.
        fault: identifies the reason, so that failures with the same one can be merged; "" for none.
        trace: the command that shows the trace; "" if no trace is kept.
        hidden: the text is not printed (`--tb=line`).
    """

    text: str
    reprcrash: Crash
    fault: str = ""
    trace: str = ""
    hidden: bool = False

    def toterminal(self, out: Any) -> None:
        """Write the text to pytest's terminal."""
        if self.hidden:
            return
        from harness.report.wrap import wrapped
        from harness.source.display import escape_commands

        isatty = getattr(getattr(out, "_file", None), "isatty", None)
        for line in wrapped(self.text, out.fullwidth if isatty is not None and isatty() else None).split(
            "\n"
        ):
            out.line(escape_commands(line))

    def __str__(self) -> str:
        return self.text

    def as_json(self) -> dict[str, Any]:
        """Return the parts as JSON, to be sent with a report."""
        return asdict(self)


def restore(report: Any) -> None:
    """Restore the representation of a failure on a report that a worker sent."""
    sent = getattr(report, FAILURE, None)
    if sent is not None and isinstance(report.longrepr, str):
        report.longrepr = FailureText(**{**sent, "reprcrash": Crash(**sent["reprcrash"])})


def merge_same_faults(reports: Sequence[Any], trace_command: Callable[[str, str], str]) -> list[Any]:
    """Return the reports of failures, but of those with the same fault only the first, which lists the others.

    `trace_command` returns the command to show, given a node id and the command in `FailureText.trace`.
    """
    kept: list[Any] = []
    by_fault: dict[str, list[Any]] = {}
    for report in reports:
        text = report.longrepr
        reason = text.fault if isinstance(text, FailureText) else ""
        same_fault = by_fault.setdefault(reason, []) if reason else []
        same_fault.append(report)
        if len(same_fault) == 1:
            kept.append(report)
            if isinstance(text, FailureText) and text.trace:
                line = f"  trace  {trace_command(report.nodeid, text.trace)}"
                report.longrepr = replace(text, text=f"{text.text}\n{line}")
    for first, *others in by_fault.values():
        if others:
            names = [f"    {report.nodeid}" for report in others[:_MOST_NAMES]]
            if len(others) > _MOST_NAMES:
                names.append(f"    … and {len(others) - _MOST_NAMES} more")
            more = [f"  the same in {len(others)} more:", *names]
            first.longrepr = replace(first.longrepr, text="\n".join([first.longrepr.text, "", *more]))
    return kept
