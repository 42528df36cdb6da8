"""One `harness run`: the scenarios run in order, told as they end, and written down."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from harness.cli import exit_code
from harness.cli.interruption import Interruption, between_scenarios
from harness.cli.selection import Selection
from harness.errors import FormatError
from harness.recording.human import Ask
from harness.report.console import RunReporter
from harness.report.results import ResultsWriter
from harness.scenario.outcome import Observed, Outcome
from harness.scenario.run import run_scenario
from harness.settings import Settings
from harness.source.document import shown_path


@dataclass
class Session:
    """`lines` takes results as they are written to results.jsonl. `quiet` tells only of what did not pass.

    `ask` asks a person, where a scenario is being recorded.
    """

    settings: Settings
    reporter: RunReporter
    lines: IO[bytes] | None = None
    exit_first: bool = False
    quiet: bool = False
    ask: Ask | None = None
    interrupted: bool = False
    verdicts: set[str] = field(default_factory=set)

    def run(self, selection: Selection) -> int:
        """Run, report, and give the exit code. Ctrl-C ends the run; what is done is reported and written.

        Raises:
            FormatError: the results cannot be written.
        """
        with ResultsWriter(self.settings.report) as writer:
            for file, error in selection.refused.items():
                self._write(writer, refused(file, error))
            if not self.quiet:
                self.reporter.start(selection.runs)
            try:
                self._run_all(selection, writer)
            finally:
                self.reporter.stop()
            self.reporter.finish(writer.finish())
        return self._exit_code(selection)

    def _run_all(self, selection: Selection, writer: ResultsWriter) -> None:
        def done(outcome: Outcome, interruption: Interruption) -> None:
            self.verdicts.add(outcome.verdict)
            self._write(writer, outcome)
            not_passed = outcome.verdict in ("failed", "error")
            if not_passed or not self.quiet:
                self.reporter.done(outcome)
            interruption.heed()

        try:
            with _kept_apart(self.lines), between_scenarios() as interruption:
                for scenario in selection.scenarios:
                    told = partial(done, interruption=interruption)
                    run_scenario(scenario, self.settings, told, ask=self.ask)
                    if self.exit_first and self.verdicts & {"failed", "error"}:
                        break
        except KeyboardInterrupt:
            self.interrupted = True

    def _write(self, writer: ResultsWriter, outcome: Outcome) -> None:
        line = writer.add(outcome)
        if self.lines is not None:
            self.lines.write(line.encode() + b"\n")
            self.lines.flush()

    def _exit_code(self, selection: Selection) -> int:
        if selection.refused:
            return exit_code.BAD_INPUT
        if self.interrupted or "error" in self.verdicts:
            return exit_code.NOT_JUDGED
        return exit_code.FAILED if "failed" in self.verdicts else exit_code.OK


def _kept_apart(lines: IO[bytes] | None) -> contextlib.AbstractContextManager[object]:
    """What the scenarios' own code prints must not come between lines of results on standard output."""
    if lines is sys.stdout.buffer:
        return contextlib.redirect_stdout(sys.stderr)
    return contextlib.nullcontext()


def refused(file: Path, error: FormatError) -> Outcome:
    """The line of results that stands for a file nothing of which could be run."""
    first = error.problems[0]
    told: dict[str, Any] = {
        "type": type(error).__name__,
        "code": error.code,
        "message": str(error),
        "node": None,
        "where": str(first.span) if first.span else None,
    }
    return Outcome(
        suite=shown_path(file),
        scenario="(file)",
        manifest="",
        dialect="",
        agent="",
        observed=Observed(status="invalid", error=told),
        verdict="error",
        score=0.0,
        span=first.span,
    )
