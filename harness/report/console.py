"""A run on the terminal: progress while it goes on, what failed, and one compact block at the end.

Colours only on a terminal, and not with `NO_COLOR`. On a terminal lines fit its width; elsewhere they are as long as
they are, and nothing is padded. Texts of scenarios and manifests are never read as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from harness.report.cause import fault
from harness.report.failure import Detail, failed_checks, failure_text, lost_checks, title
from harness.report.formatting import seconds
from harness.report.summary_text import counts, figures, notes
from harness.report.wrap import keep_end, wrapped
from harness.source.display import clip, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from harness.scenario.outcome import Outcome

__all__ = ["RunReporter", "failure_text", "open_console", "print_summary"]

_STYLES: Final = {"passed": "green", "failed": "red", "error": "magenta", "skipped": "yellow"}
_MOST_FAILURES: Final = 20
_FEWEST_CAUSE: Final = 24
"""Columns that the cause of a failure needs beside the name; with less it is told at the end only."""


def open_console(file: IO[str] | None = None) -> Console:
    """A console on this stream (standard output by default); characters it cannot show become escapes."""
    import os
    import sys

    from rich.console import Console

    stream = file or sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    # NO_COLOR takes bold and the progress bar away, too: no escape sequence is left.
    plain: Any = {"force_terminal": False, "color_system": None} if os.environ.get("NO_COLOR") else {}
    return Console(file=stream, markup=False, highlight=False, emoji=False, **plain)


def print_summary(summary: Mapping[str, Any], console: Console, *, coverage: bool = False) -> None:
    """What was lost and warned of, and the figures of a run; with `coverage`, what no scenario took of each graph."""
    from rich.text import Text

    width = terminal_width(console)
    for line in ["", *notes(summary, width)]:
        console.print(Text(line), soft_wrap=True)
    found, of = counts(summary["total"])
    text = Text(" · ").join(Text(count, f"bold {_STYLES[verdict]}") for count, verdict in found)
    console.print(text + Text(f"   {of}", "dim"), soft_wrap=True)
    for line in figures(summary, width, coverage=coverage):
        console.print(Text(line), soft_wrap=True)


def terminal_width(console: Console) -> int | None:
    """The columns of the terminal; None where the output is no terminal."""
    return console.width if console.is_terminal or console.file.isatty() else None


class RunReporter:
    """Shows a run while it goes on: `start`, `done` for each scenario, `finish` (or `stop`) at the end.

    On a terminal a progress bar, with a line above it for each scenario that did not pass, or passed below the full
    score; elsewhere a line for each scenario.
    """

    def __init__(self, console: Console, *, coverage: bool = False, detail: Detail = "normal") -> None:
        self._console, self._coverage, self._detail = console, coverage, detail
        self._not_passed = 0
        self._failures: dict[Any, tuple[Outcome, list[str]]] = {}
        self._verdicts = dict.fromkeys(_STYLES, 0)
        self._total = 0
        self._progress: Progress | None = None

    def start(self, total: int) -> None:
        """Begin; so many runs are to come."""
        self._total = total
        if self._console.is_terminal and not self._console.is_dumb_terminal and total > 1:
            self._progress = _progress(self._console, total)
            self._progress.start()

    def done(self, outcome: Outcome) -> None:
        """A scenario run has ended."""
        self._verdicts[outcome.verdict] += 1
        not_passed = outcome.verdict in ("failed", "error")
        if self._progress is None or not_passed or (outcome.passed and outcome.score < 1):
            self._print_line(outcome)
        if not_passed:
            self._keep(outcome)
        if self._progress is not None:
            counts = ", ".join(f"{count} {verdict}" for verdict, count in self._verdicts.items() if count)
            self._progress.update(self._progress.task_ids[0], advance=1, description=counts, refresh=True)

    def narrate(self, outcome: Outcome) -> None:
        """Show a run in words on standard error, where that was asked for; there is no progress bar then."""
        if outcome.narration:
            self.stop()
            console = open_console(sys.stderr)
            for text in (f"{outcome.suite}::{title(outcome)}", *outcome.narration):
                console.print(printable(text), style="dim", soft_wrap=True)

    def _keep(self, outcome: Outcome) -> None:
        """Keep a failure for the end; of those with the same reason the first, and the names of the others."""
        self._not_passed += 1
        reason = fault(outcome) or self._not_passed
        if reason in self._failures:
            self._failures[reason][1].append(f"{outcome.suite}::{title(outcome)}")
        elif len(self._failures) < _MOST_FAILURES:
            self._failures[reason] = (outcome, [])

    def _print_line(self, outcome: Outcome) -> None:
        from rich.text import Text

        took = seconds(outcome.observed.latency.get("total"))
        name, more = f"{printable(outcome.suite)}::{title(outcome)}", self._remark(outcome)
        width = terminal_width(self._console)
        if width is None:
            self._console.print(
                Text("  ".join(filter(None, (outcome.verdict, took, name, more)))), soft_wrap=True
            )
            return
        head = Text.assemble((f"{outcome.verdict:<7}", _STYLES[outcome.verdict]), (f" {took:>9}  ", "dim"))
        name = keep_end(name, width - len(head))
        room = width - len(head) - len(name) - 2
        line = head + Text(name)
        if more and room >= min(len(more), _FEWEST_CAUSE):
            line.append(f"  {_whole_words(more, room)}", "dim")
        self._console.print(line, soft_wrap=True)

    def _remark(self, outcome: Outcome) -> str:
        """Why a run did not pass, or what one that passed has lost; "" for one without fault."""
        if outcome.verdict in ("failed", "error"):
            return "the same as above" if fault(outcome) in self._failures else failed_checks(outcome)
        if outcome.passed and outcome.score < 1:
            return ": ".join(filter(None, (f"score {outcome.score:.2f}", lost_checks(outcome))))
        return ""

    def stop(self) -> None:
        """Take the progress bar away; needed only when `finish` is not called."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep the progress bar off the terminal, while somebody is asked there."""
        if self._progress is not None:
            self._progress.stop()
        try:
            yield
        finally:
            if self._progress is not None:
                self._progress.start()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """End: what failed, whether runs are missing (Ctrl-C), and the summary."""
        from rich.rule import Rule
        from rich.text import Text

        self.stop()
        for failure, same in self._failures.values():
            self._console.print(Rule(style="dim"))
            text = wrapped(failure_text(failure, self._detail, same), terminal_width(self._console))
            self._console.print(Text(text), soft_wrap=True)
        shown = sum(1 + len(same) for _, same in self._failures.values())
        if self._failures:
            self._console.print(Rule(style="dim"))
        if self._not_passed > shown:
            self._console.print(f"… and {self._not_passed - shown} more that did not pass")
        print_summary(summary, self._console, coverage=self._coverage)


def _whole_words(text: str, width: int) -> str:
    """At most so many characters of a text, cut between words."""
    cut = clip(text, width)
    return cut if cut == text or " " not in cut else f"{cut.rpartition(' ')[0]} …"


def _progress(console: Console, total: int) -> Progress:
    """A progress bar without a thread that refreshes it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    progress = Progress(*columns, console=console, auto_refresh=False, transient=True)
    progress.add_task("", total=total)
    return progress
