"""A session of `harness run`: run the scenarios, print each as it ends, and write the results."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.cli import exit_code
from harness.cli.interruption import Interruption, between_scenarios
from harness.cli.output import unwritable
from harness.cli.selection import Selection
from harness.errors import FormatError
from harness.report.console import RunReporter
from harness.report.formatting import plural
from harness.report.repeats import NOT_PASSED
from harness.report.results import Record, ResultsWriter, record
from harness.scenario.outcome import Observation, Outcome, RecordingResult
from harness.settings import Projects
from harness.source.display import escape_json_commands
from harness.source.document import shown_path
from harness.workers.result import ScenarioResult

if TYPE_CHECKING:
    from harness.recording.human import Ask
    from harness.report.history.file import HistoryWriter
    from harness.report.repeatability import Repeatability
    from harness.scenario.model import Scenario
    from harness.variants.schedule import Schedule
    from harness.workers.pool import WorkerPool


@dataclass
class Session:
    """A session that runs a selection and reports it.

    projects    give each scenario the settings of its project
    report      the folder for results
    lines       also gets the lines of results.jsonl, in the order of the scenarios
    exit_first  end the run after the first scenario that does not pass
    quiet       print only what did not pass
    ask         asks a person, while a scenario is recorded
    workers     run the scenarios; None: this process does
    traces_limit  maximum size of all traces together, in MB
    history     the history that the run is appended to
    repeatability  finds runs that differ from others without a reason
    schedule    the order of the scenarios, and which are left out; None: all, in the order of the selection
    """

    projects: Projects
    report: Path
    reporter: RunReporter
    lines: IO[bytes] | None = None
    exit_first: bool = False
    quiet: bool = False
    ask: Ask | None = None
    workers: WorkerPool | None = None
    traces_limit: float = math.inf
    history: HistoryWriter | None = None
    repeatability: Repeatability | None = None
    schedule: Schedule | None = None
    interrupted: bool = False
    runs: int = 0
    recorded: dict[Path, RecordingResult] = field(default_factory=dict)
    verdicts: set[str] = field(default_factory=set)
    refusals: dict[str, set[str | None]] = field(default_factory=dict)
    """Errors in scenarios that only a run can detect, each with the variants that have it."""

    def run(self, selection: Selection) -> int:
        """Run, report and return the exit code. Ctrl-C ends the run; the finished scenarios are reported and written.

        Raises:
            FormatError: the results cannot be written.
        """
        with ResultsWriter(
            self.report,
            traces_limit=self.traces_limit,
            history=self.history,
            repeatability=self.repeatability,
        ) as writer:
            for file, error in selection.refused.items():
                self._write(writer, record(refused_file(file, error)), place=-1)
            if not self.quiet:
                self.reporter.start(selection.runs)
            try:
                self._run_all(selection, writer)
            finally:
                self.reporter.stop()
            # The page of a scoring shows the score, which is computed from the written runs.
            summary = writer.finish(self._incomplete(selection), with_page=self.schedule is None)
            self.reporter.finish(summary)
        return self._exit_code(selection)

    def _run_all(self, selection: Selection, writer: ResultsWriter) -> None:
        try:
            if self.schedule is not None:
                self._take_over(self.schedule, writer)
            with (
                between_scenarios() as interruption,
                contextlib.closing(self._ended(selection)) as ended,
            ):
                for one in ended:
                    if one.outcome is not None and self._is_kept(one.outcome, one.number):
                        self._done(one.outcome, one.record, one.number, writer, interruption)
                    elif self.exit_first and not self.verdicts.isdisjoint(NOT_PASSED):
                        break
        except KeyboardInterrupt:
            self.interrupted = True

    def _take_over(self, schedule: Schedule, writer: ResultsWriter) -> None:
        """Write the runs of an interrupted scoring."""
        for number, line, made in schedule.taken_over():
            self.verdicts.add(line["verdict"])
            self.runs += 1
            self._write(writer, made, number)

    def _is_kept(self, outcome: Outcome, number: int) -> bool:
        """Tell the schedule of a run that has ended; False if the run is to be treated as not started."""
        if self.schedule is None:
            return True
        if not self.schedule.is_kept(outcome):
            return False
        self.schedule.add_outcome(number, outcome)
        return True

    def _ended(self, selection: Selection) -> Generator[ScenarioResult]:
        batches = self.schedule.batches() if self.schedule else [range(len(selection.scenarios))]
        with contextlib.closing(self.workers) if self.workers is not None else contextlib.nullcontext():
            for numbers in batches:
                some = [selection.scenarios[number] for number in numbers]
                with contextlib.closing(self._ended_of(some)) as ended:
                    for one in ended:
                        yield one._replace(number=numbers[one.number])

    def _ended_of(self, scenarios: Sequence[Scenario]) -> Generator[ScenarioResult]:
        if self.workers is not None:
            in_order = self.exit_first or self.lines is not None
            yield from self.workers.run(scenarios, in_order=in_order)
            return
        from harness.scenario.process_state import refuse_os_exit
        from harness.scenario.run import outcomes

        with refuse_os_exit():
            for number, scenario in enumerate(scenarios):
                for outcome in outcomes(scenario, self.projects.of(scenario.file), ask=self.ask):
                    yield ScenarioResult(number, outcome, record(outcome))
                yield ScenarioResult(number, None)

    def _incomplete(self, selection: Selection) -> str:
        """Return the reasons why this is not a complete run; "" if it is."""
        reasons = [selection.part] if selection.part else []
        if self.runs < selection.runs:
            planned = self.schedule.why_incomplete(self.runs, selection.runs) if self.schedule else ""
            why = "interrupted" if self.interrupted else "stopped at the first that did not pass (-x)"
            why = f"{why} after {self.runs} of {plural(selection.runs, 'run')}"
            reasons.append(why if self.interrupted else planned or why)
        return "; ".join(reasons)

    def _done(
        self, outcome: Outcome, made: Record, number: int, writer: ResultsWriter, interruption: Interruption
    ) -> None:
        self.verdicts.add(outcome.verdict)
        self.runs += 1
        error = outcome.observed.error or {}
        if outcome.verdict == "error" and error.get("type") == FormatError.__name__:
            self.refusals.setdefault(error["message"], set()).add(outcome.variant)
        if outcome.recorded is not None:
            self.recorded[outcome.recorded.folder] = outcome.recorded
        self._write(writer, made, number)
        self.reporter.narrate(outcome)
        if outcome.verdict in NOT_PASSED or not self.quiet:
            self.reporter.done(outcome)
        interruption.raise_if_requested()

    def _write(self, writer: ResultsWriter, made: Record, place: int) -> None:
        text = writer.add_record(made, place)
        if self.lines is not None:
            try:
                self.lines.write(escape_json_commands(text).encode() + b"\n")
                self.lines.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                with contextlib.suppress(OSError):
                    self.lines.close()  # closing flushes its buffer, which fails again
                file = self.lines.name if isinstance(self.lines.name, str) else "standard output"
                raise unwritable(Path(file), error) from None

    def _exit_code(self, selection: Selection) -> int:
        if selection.refused or self.refusals:
            return exit_code.BAD_INPUT
        if self.interrupted or "error" in self.verdicts:
            return exit_code.NOT_JUDGED
        return exit_code.FAILED if "failed" in self.verdicts else exit_code.OK


def refused_file(file: Path, error: FormatError) -> Outcome:
    """Return the outcome by which results list a file that cannot be used."""
    first = error.problems[0]
    shown: dict[str, Any] = {
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
        observed=Observation(status="invalid", error=shown),
        verdict="error",
        score=0.0,
        span=first.span,
    )
