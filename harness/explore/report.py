"""The result of an exploration: on the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from textwrap import dedent
from typing import Any, Final

from rich.live import Live
from rich.text import Text

from harness.authoring.writer import scenario_text
from harness.explore.coverage import PARTS, coverage
from harness.explore.exploration import Explored, Merged
from harness.explore.findings import Finding
from harness.explore.subject import Subject
from harness.report.console import open_console
from harness.report.formatting import plural
from harness.settings import is_ci_machine
from harness.source.display import printable
from harness.source.document import shown_path
from harness.time.real import real

FORMAT: Final = "harness-explore/1"
_LINE_EVERY_S: Final = 10.0
_MOST_UNREACHED: Final = 20
_MOST_LINES: Final = 12
"""Lines of a scenario that are shown; its file has all."""
_NOT_SHOWN: Final = ("name", "description", "expect", "agent")


class Report:
    """Shows a search while it goes on, on standard error, and its result. `quiet`: nothing on standard output."""

    def __init__(self, *, quiet: bool) -> None:
        import sys

        self._console = open_console(sys.stderr if quiet else None)
        self._live: Live | None = None
        self._began = self._shown = real.monotonic()

    def progress(self, subject: Subject, merged: Merged) -> None:
        """Show how far a search is."""
        runs, now = merged.runs, real.monotonic()
        taken = coverage(merged.shape, merged.features)
        rate = runs / max(now - self._began, 0.001)
        text = (
            " · ".join((printable(subject.name), plural(runs, "run"), _pace(rate), _parts(taken)))
            + f" · {plural(len(merged.found), 'finding')}"
        )
        if self._console.is_terminal and not is_ci_machine():
            if self._live is None:
                self._live = Live(console=self._console, transient=True, auto_refresh=False)
                self._live.start()
            self._live.update(Text(text, overflow="ellipsis", no_wrap=True), refresh=True)
        elif now - self._shown >= _LINE_EVERY_S:
            self._shown = now
            self._console.print(f"progress  {text}", markup=False, soft_wrap=True)

    def stop(self) -> None:
        """Remove the line of progress."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._began = real.monotonic()

    def show(self, done: Explored) -> None:
        """Show the result."""
        self.stop()
        self._line(done.subject.name, "bold")
        for finding in done.findings:
            broken = finding.breach
            self._line(f"  {broken.type}  {broken.where or ''}  {broken.cause}", "red")
            for text in _world(finding).splitlines()[:_MOST_LINES]:
                self._line(f"    {text}")
            until = (
                f"found after {plural(finding.runs_until, 'run')}" if finding.runs_until else "known before"
            )
            place = finding.reason or shown_path(finding.file)
            self._line(f"    {place}  ({plural(finding.steps, 'step')}, {until})")
        if done.unreached:
            self._line("  never reached:")
        for each in done.unreached[:_MOST_UNREACHED]:
            self._line(f"    {each.kind}  {each.where or ''}  {each.name}: {each.why}")
        if more := len(done.unreached) - _MOST_UNREACHED:
            self._line(f"    … and {more} more") if more > 0 else None
        for note in done.notes:
            self._line(f"  note: {note}", "yellow")
        for problem in done.problems:
            self._line(f"  not explored: {problem}", "red")
        if done.covered:
            self._line(f"  --cover: {plural(len(done.covered), 'scenario')}, which take all that was reached")
        rate = done.runs / done.seconds if done.seconds else 0
        ended = "interrupted after " if done.interrupted else ""
        self._line(
            f"  {ended}{plural(done.runs, 'run')} ({_pace(rate)}) · {_parts(done.coverage)} · "
            f"{plural(len(done.findings), 'finding')}"
        )

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text(printable(text), style), soft_wrap=True)


def _world(finding: Finding) -> str:
    """Return the input and the answers of a finding, as its scenario has them."""
    shown = {key: value for key, value in finding.keys.items() if key not in _NOT_SHOWN}
    return dedent(scenario_text(shown, 0).replace("- ", "  ", 1)) if shown else ""


def _pace(rate: float) -> str:
    """Return the runs in a second; an app may take several for one."""
    return f"{rate:.0f} a second" if rate >= 10 or not rate else f"{rate:.2g} a second"


def _parts(taken: Any) -> str:
    return " · ".join(f"{part} {found[0]}/{found[1]}" for part, found in taken.items())


def as_json(explored: Sequence[Explored], seed: int) -> dict[str, Any]:
    """Return the results of explorations as JSON data."""
    return {
        "format": FORMAT,
        "runs": sum(each.runs for each in explored),
        "seed": seed,
        "coverage": {
            part: [sum(each.coverage[part][at] for each in explored) for at in (0, 1)] for part in PARTS
        },
        "unreached": [asdict(part) for each in explored for part in each.unreached],
        "findings": [_finding(found) for each in explored for found in each.findings],
        "notes": [note for each in explored for note in each.notes],
        "problems": [problem for each in explored for problem in each.problems],
    }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "id": found.id,
        "cause": found.breach.cause,
        "type": found.breach.type,
        "where": found.breach.where,
        "runs_until": found.runs_until,
        "seconds": round(found.seconds, 3),
        "scenario": None if found.reason else shown_path(found.file),
        "reason": found.reason or None,
        "steps": found.steps,
    }
