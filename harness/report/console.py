"""Terminal output of a run: a line for each scenario, then the failures, then a compact summary.

Colours are used on a terminal only, and not with `NO_COLOR`. On a terminal lines fit its width; elsewhere they are
neither wrapped nor padded. Texts of scenarios and manifests are never interpreted as markup.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from select import select
from typing import IO, TYPE_CHECKING, Any, Final

import click

from harness.report.cause import fault
from harness.report.failure import Detail, emphasised, failed_checks, failure_text, lost_checks, title
from harness.report.figures import FIGURES
from harness.report.formatting import keep_end, seconds
from harness.report.progress import Progress
from harness.report.repeats import NOT_PASSED
from harness.report.summary_text import counts, figures, group_table, notes, suite_table
from harness.source.display import clip, printable

if TYPE_CHECKING:
    from rich.console import Console

    from harness.report.runs import GroupedRuns
    from harness.scenario.outcome import Outcome

_STYLES: Final = {"passed": "green", "failed": "red", "error": "magenta", "skipped": "yellow"}
_MAX_FAILURES: Final = 20
_MIN_CAUSE: Final = 24
"""Columns needed to show a cause beside the name; with less room it is shown only at the end."""


def open_console(file: IO[str] | None = None) -> Console:
    """Return a console on this stream (default: standard output). Unencodable characters become escapes.

    `NO_COLOR` turns off all escape sequences, including bold and the progress bar. `FORCE_COLOR` turns on colours
    where the output is no terminal, and no other escape sequence.
    """
    import os

    from rich.console import Console

    stream = file or sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    settings: Any = {}
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown"):
        settings = {"force_terminal": False, "color_system": None}
    elif not stream.isatty():
        forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
        settings = {"force_terminal": False, "color_system": "standard" if forced else None}
    return Console(file=stream, markup=False, highlight=False, emoji=False, **settings)


def print_summary(
    summary: Mapping[str, Any],
    console: Console,
    *,
    coverage: bool = False,
    grouped: GroupedRuns | None = None,
) -> None:
    """Print lost scores and warnings, the table of suites or of other groups, and the totals of a run.

    `coverage` adds the parts of each graph that no scenario took.
    """
    from rich.text import Text

    width = terminal_width(console)
    table = suite_table(summary["suites"], width) if grouped is None else _table(grouped, width)
    for line in ["", *notes(summary, width), *table]:
        console.print(Text(line), soft_wrap=True)
    found, of = counts(summary["total"])
    text = Text(" · ").join(Text(count, f"bold {_STYLES[verdict]}") for count, verdict in found)
    console.print(text + Text(f"   {of}", "dim"), soft_wrap=True)
    for line in figures(summary, width, coverage=coverage):
        console.print(Text(line), soft_wrap=True)


def _table(grouped: GroupedRuns, width: int | None) -> list[str]:
    named = grouped.named()
    table = group_table(grouped.title, named, width, figures=FIGURES) if named else [""]
    return [*table[:-1], *grouped.notes(), ""]


def terminal_width(console: Console) -> int | None:
    """Return the columns of the terminal; None if the output is no terminal."""
    return console.width if console.is_terminal or console.file.isatty() else None


class RunReporter:
    """Shows a run in progress: call `start`, `done` for each result, then `finish` (or `stop`).

    A terminal gets a progress bar, and above it a line for each scenario that did not pass, or passed below the full
    score. Other outputs get a line for each scenario. `report` is the results folder, `command` the command that runs
    the scenarios.
    """

    def __init__(
        self,
        console: Console,
        *,
        coverage: bool = False,
        detail: Detail = "normal",
        report: Path | None = None,
        command: str = "harness run",
    ) -> None:
        self._console, self._coverage, self._detail, self._report = console, coverage, detail, report
        self._command = command
        self._not_passed = 0
        self._failures: dict[Any, tuple[Outcome, list[str]]] = {}
        self._progress: Progress | None = None
        self._above = ""  # the fault shown on the previous line

    def start(self, total: int, calls: Callable[[], str] | None = None) -> None:
        """Begin a run with this total number of scenario runs. `calls` tells of the calls of real systems."""
        self._progress = Progress(self._console, total, calls=calls)

    def done(self, outcome: Outcome) -> None:
        """Show the result of a scenario run."""
        not_passed = outcome.verdict in NOT_PASSED
        redraws = self._progress is not None and self._progress.redraws
        if not redraws or not_passed or (outcome.passed and outcome.score < 1):
            self._print_line(outcome)
            self._above = fault(outcome)
        if not_passed:
            self._keep_failure(outcome)
        if self._progress is not None:
            self._progress.add(outcome.verdict)

    def narrate(self, outcome: Outcome) -> None:
        """Print the narration of a run on standard error, if it was requested. There is no progress bar then."""
        if outcome.narration:
            self.stop()
            console = open_console(sys.stderr)
            for text in (f"{outcome.suite}::{title(outcome)}", *outcome.narration):
                console.print(printable(text), style="dim", soft_wrap=True)

    def _keep_failure(self, outcome: Outcome) -> None:
        """Keep a failure for the end: the first of each fault, and the names of the others."""
        self._not_passed += 1
        reason = fault(outcome) or self._not_passed
        if reason in self._failures:
            self._failures[reason][1].append(f"{outcome.suite}::{title(outcome)}")
        elif len(self._failures) < _MAX_FAILURES:
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
        if more and room >= min(len(more), _MIN_CAUSE):
            line.append(f"  {_clip_words(more, room)}", "dim")
        self._console.print(line, soft_wrap=True)

    def _remark(self, outcome: Outcome) -> str:
        """Return why a run did not pass, or what it lost below the full score; "" for a run with full score."""
        if outcome.verdict in NOT_PASSED:
            known = self._failures.get(fault(outcome))
            return failed_checks(outcome) if known is None else self._same_as(known[0])
        if outcome.passed and outcome.score < 1:
            return ": ".join(filter(None, (f"score {outcome.score:.2f}", lost_checks(outcome))))
        return ""

    def _same_as(self, first: Outcome) -> str:
        """Refer to an earlier run with the same fault, by name unless it is on the previous line."""
        return (
            "the same as above"
            if self._above == fault(first)
            else f"the same as {first.suite}::{title(first)}"
        )

    def stop(self) -> None:
        """Remove the progress bar. Only needed when `finish` is not called."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Hide the progress bar while something else uses the terminal."""
        with self._progress.suspended() if self._progress is not None else nullcontext():
            yield

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Print the failures, the number of failures not shown, and the summary."""
        from rich.rule import Rule
        from rich.text import Text

        self.stop()
        for failure, same in self._failures.values():
            self._console.print(Rule(style="dim"))
            text = failure_text(failure, self._detail, same, self._report, self._command)
            for parts in emphasised(text, terminal_width(self._console)):
                self._console.print(Text.assemble(*parts), soft_wrap=True)
        shown = sum(1 + len(same) for _, same in self._failures.values())
        if self._failures:
            self._console.print(Rule(style="dim"))
        if self._not_passed > shown:
            self._console.print(f"… and {self._not_passed - shown} more that did not pass")
        print_summary(summary, self._console, coverage=self._coverage)


class ProgressReporter(RunReporter):
    """Shows progress without results."""

    def done(self, outcome: Outcome) -> None:
        """Count a scenario run."""
        if self._progress is not None:
            self._progress.add(outcome.verdict)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Remove the progress bar."""
        self.stop()


def _clip_words(text: str, width: int) -> str:
    """Return a text cut between words to at most `width` characters."""
    cut = clip(text, width)
    return cut if cut == text or " " not in cut else f"{cut.rpartition(' ')[0]} …"


def terminal_asker(reporter: RunReporter | None = None) -> Callable[[str, Mapping[str, Any]], str] | None:
    """Return a function that asks at the terminal and hides the progress bar meanwhile; None without a terminal."""
    if not sys.stdin.isatty():
        return None

    def ask(node: str, args: Mapping[str, Any]) -> str:
        with reporter.suspended() if reporter is not None else nullcontext():
            return prompt(node, args)

    return ask


def prompt(node: str, args: Mapping[str, Any]) -> str:
    """Show a question on stderr and return the line that is read from stdin.

    Raises:
        EOFError: stdin is at its end.
    """
    question = args.get("question", args.get("value"))
    text = question if isinstance(question, str) else json.dumps(question, ensure_ascii=False, default=str)
    click.echo(f"\n{printable(node)} asks: {printable(text, keep_newlines=True)}", err=True)
    options = args.get("options")
    if options:
        click.echo(f"  one of: {', '.join(printable(str(option)) for option in options)}", err=True)
    click.echo("answer (text, or JSON): ", nl=False, err=True)
    with suppress(OSError, ValueError):
        # Wait before reading: readline holds the lock of stdin, which would delay the exit of the process.
        select([sys.stdin], [], [])
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError
    return answer.removesuffix("\n")
