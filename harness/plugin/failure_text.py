"""How pytest shows a scenario that did not pass.

pytest asks the item for a representation of the failure and prints it at the end of the session. A worker of xdist
sends it as text only, so its parts travel on the report beside it (`FAILURE`), and the controller makes it again.
Before pytest prints failures, those of the same fault are put together: the first tells it, and names the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

FAILURE: Final = "harness_failure"
"""The attribute of a report with a `FailureText` as JSON."""
_MOST_NAMES: Final = 30


@dataclass(frozen=True)
class Crash:
    """What pytest shows in its short summary and with `--tb=line`, and JUnit as the message."""

    message: str
    path: str
    lineno: int

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


@dataclass(frozen=True)
class FailureText:
    """A failure as pytest prints it: the text in full, and in one line.

    fault    the same for failures with the same reason, "" for one that has reasons of its own
    trace    the command that shows what happened, "" where no trace is kept
    hidden   the text is not printed (`--tb=line`)
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
        from harness.source.workflow_commands import inert

        isatty = getattr(getattr(out, "_file", None), "isatty", None)
        for line in wrapped(self.text, out.fullwidth if isatty is not None and isatty() else None).split(
            "\n"
        ):
            out.line(inert(line))

    def __str__(self) -> str:
        return self.text

    def as_json(self) -> dict[str, Any]:
        """The parts, as a report carries them."""
        return asdict(self)


def restore(report: Any) -> None:
    """Make the representation of a failure again that a worker sent."""
    sent = getattr(report, FAILURE, None)
    if sent is not None and isinstance(report.longrepr, str):
        report.longrepr = FailureText(**{**sent, "reprcrash": Crash(**sent["reprcrash"])})


def one_for_each_fault(reports: Sequence[Any], trace_command: Callable[[str, str], str]) -> list[Any]:
    """The reports of failures; of those with the same fault only the first, which names the others.

    `trace_command` makes of a node id and its command the one that is shown.
    """
    kept: list[Any] = []
    by_fault: dict[str, list[Any]] = {}
    for report in reports:
        text = report.longrepr
        reason = text.fault if isinstance(text, FailureText) else ""
        alike = by_fault.setdefault(reason, []) if reason else []
        alike.append(report)
        if len(alike) == 1:
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
