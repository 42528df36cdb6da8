"""Terminal output of a run: progress while it runs, then the failures, then a compact summary.

Colours are used on a terminal only, and not with `NO_COLOR`. On a terminal lines fit its width; elsewhere they are
neither wrapped nor padded. Texts of scenarios and manifests are never interpreted as markup.
"""

from __future__ import annotations

import json
import sys
from collections import deque
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
from harness.report.repeats import NOT_PASSED
from harness.report.summary_text import counts, figures, group_table, notes, suite_table
from harness.settings import is_ci_machine
from harness.source.display import clip, printable
from harness.time.real import real

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from harness.report.runs import GroupedRuns
    from harness.scenario.outcome import Outcome

__all__ = ["ProgressReporter", "RunReporter", "failure_text", "open_console", "print_summary"]


Clock = Callable[[], float]

_WINDOW_S: Final = 30.0
"""The rate is measured over this many last seconds, since some suites are slower than others."""
_SAMPLE_S: Final = 0.5
_RATE_AFTER_S: Final = 3.0
_REDRAW_S: Final = 0.05
_REDRAWS_PER_S: Final = 4
"""Redraws of the bar per second while calls of real systems are under way, and no run ends."""
_LINE_EVERY_S: Final = 30.0
_BAR: Final = 20
_WIDE: Final = 80
"""Minimum columns of a terminal to show the bar."""


class Pace:
    """Counts runs as they end, and estimates the remaining time from the most recent ones."""

    def __init__(self, total: int, clock: Clock = real.monotonic) -> None:
        self.total, self.ended = total, 0
        self._verdicts = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
        self._clock = clock
        self._samples = deque[tuple[float, int]]()

    def add(self, verdict: str) -> None:
        """Count a run that has ended."""
        self.ended += 1
        self._verdicts[verdict] += 1
        now = self._clock()
        if not self._samples:  # start after the first run, which imports modules
            self._samples.append((now, 1))
        elif now - self._samples[-1][0] >= _SAMPLE_S:
            self._samples.append((now, self.ended))
            while now - self._samples[1][0] >= _WINDOW_S:
                self._samples.popleft()

    @property
    def facts(self) -> dict[str, str]:
        """Texts to show, in order: `count`, each verdict, `rate`, `left`."""
        count = f"{self.ended:,} of {self.total:,}"
        verdicts = {verdict: f"{number:,} {verdict}" for verdict, number in self._verdicts.items() if number}
        return {"count": count, **verdicts, **self._rate()}

    def _rate(self) -> dict[str, str]:
        """Return the rate and the remaining time, once enough runs have ended."""
        then, before = self._samples[0] if self._samples else (self._clock(), 0)
        seconds, runs = self._clock() - then, self.ended - before
        if seconds < _RATE_AFTER_S or not runs:
            return {}
        rate = runs / seconds
        shown = f"{_number(rate)}/s" if rate >= 1 else f"{_number(rate * 60)}/min"
        left = (self.total - self.ended) / rate
        return {"rate": shown} | ({"left": f"{_duration(left)} left"} if left else {})


class Progress:
    """Shows the progress of a run. Call `add` for each run that has ended, and `stop` before other output.

    `calls` returns a text about the calls of real systems.
    """

    def __init__(
        self,
        console: Console,
        total: int,
        clock: Clock = real.monotonic,
        *,
        calls: Callable[[], str] | None = None,
    ) -> None:
        self._console, self._clock, self._calls = console, clock, calls
        self._pace = Pace(total, clock)
        self._shown_at = clock()
        self._live: Live | None = None
        if total > 1 and console.is_terminal and not is_ci_machine():
            from rich.live import Live

            self._live = Live(
                console=console,
                auto_refresh=calls is not None,
                refresh_per_second=_REDRAWS_PER_S,
                transient=True,
                get_renderable=self._render,
            )
            self._live.start(refresh=True)

    @property
    def redraws(self) -> bool:
        """True if a bar is shown, so that runs that passed need no lines of their own."""
        return self._live is not None

    def add(self, verdict: str) -> None:
        """Count a run that has ended, and redraw."""
        self._pace.add(verdict)
        since = self._clock() - self._shown_at
        ended = self._pace.ended == self._pace.total
        if self._live is not None and (since >= _REDRAW_S or ended):
            self._live.refresh()
        elif self._live is None and since >= _LINE_EVERY_S and not ended:
            self._console.print(f"progress  {' · '.join(self._facts().values())}", soft_wrap=True)
        else:
            return
        self._shown_at = self._clock()

    def _facts(self) -> dict[str, str]:
        calls = self._calls() if self._calls is not None else ""
        return self._pace.facts | ({"calls": calls} if calls else {})

    def stop(self) -> None:
        """Remove the bar."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Hide the bar while something else uses the terminal."""
        if self._live is None:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:
            self._live.start(refresh=True)

    def _render(self) -> Text:
        """Return one line: the bar, and as many of the texts as fit."""
        from rich.text import Text

        facts, width = self._facts(), self._console.width
        bar = Text()
        if width >= _WIDE:
            full = _BAR * self._pace.ended // max(self._pace.total, 1)
            mark = "-" if self._console.options.ascii_only else "━"
            colour = "red" if {"failed", "error"} & facts.keys() else "green"
            bar = Text.assemble((mark * full, colour), (mark * (_BAR - full), "dim"), " ")
        room = width - len(bar) - 1
        for name in ("skipped", "passed", "rate"):  # the least important first
            if len(" · ".join(facts.values())) > room:
                facts.pop(name, None)
        line = bar + Text(" · ".join(facts.values()))
        line.truncate(width - 1)
        return line


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _duration(seconds: float) -> str:
    """Return a remaining time, rounded up.

    >>> _duration(7.4), _duration(80), _duration(600), _duration(8000)
    ('8 s', '1 min 20 s', '10 min', '2 h 14 min')
    """
    whole = int(seconds) + 1 if seconds % 1 else int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    minutes += rest > 0
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


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
