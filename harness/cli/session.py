"""A session of `harness run`: run the scenarios, print each as it ends, and write the results."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from harness.cli import output as exit_code
from harness.cli.interruption import between_scenarios
from harness.cli.output import print_problems, stdout_to_stderr, unwritable
from harness.cli.selection import Selection
from harness.errors import ClusterError, FormatError, Problem
from harness.report.console import ProgressReporter, RunReporter, open_console, terminal_asker
from harness.report.formatting import plural
from harness.report.repeats import NOT_PASSED
from harness.report.results import Record, ResultsWriter, history_writer, record
from harness.report.scenario_runs import unread_outcomes
from harness.report.summary_text import recorded_lines, report_paths
from harness.scenario.cassette import WRITING, check_cassettes, effective_record_mode
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome, RecordingResult
from harness.settings import Projects, RecordMode, Settings
from harness.source.display import escape_json_commands, in_actions
from harness.time.real import real
from harness.workers.executor import ScenarioResult

if TYPE_CHECKING:
    from datetime import datetime

    from harness.recording.human import Ask
    from harness.recording.spending import Spending
    from harness.report.repeatability import Unchanged
    from harness.variants.schedule import Schedule
    from harness.workers.executor import Executor


@dataclass
class Session:
    """A session that runs a selection and reports it.

    projects    give each scenario the settings of its project
    results     writes the results
    lines       also gets the lines of results.jsonl, in the order of the scenarios
    exit_first  end the run after the first scenario that does not pass
    quiet       print only what did not pass
    ask         asks a person, while a scenario is recorded
    workers     run the scenarios; None: this process does
    schedule    the order of the scenarios, and which are left out; None: all, in the order of the selection
    code        the exit code, after the run
    with_page   write report.html; else the caller does, who has more to show
    interrupted  True if Ctrl-C, or the end of a cluster, ended the run
    lost         the reason why a cluster cannot go on
    """

    projects: Projects
    results: ResultsWriter
    reporter: RunReporter
    lines: IO[bytes] | None = None
    exit_first: bool = False
    quiet: bool = False
    ask: Ask | None = None
    workers: Executor | None = None
    schedule: Schedule | None = None
    with_page: bool = True
    code: int = exit_code.OK
    interrupted: bool = False
    lost: ClusterError | None = None
    runs: int = 0
    recorded: dict[Path, RecordingResult] = field(default_factory=dict)
    verdicts: set[str] = field(default_factory=set)
    refusals: dict[str, set[str | None]] = field(default_factory=dict)
    """Errors in scenarios that only a run can detect, each with the variants that have it."""

    @property
    def report(self) -> Path:
        """The folder of the results."""
        return self.results.folder

    def run(self, selection: Selection) -> None:
        """Run and report. Ctrl-C ends the run; the finished scenarios are reported and written.

        Raises:
            FormatError: the results cannot be written.
        """
        permits = self.workers.permits if self.workers is not None else None
        if permits is not None:
            permits.ask = self.ask
        with self.results:
            for file, error in selection.refused.items():
                for outcome in unread_outcomes(file, error, selection.names.get(file, ())):
                    self._write(record(outcome), place=-1)
            if not self.quiet:
                self.reporter.start(selection.runs, self.workers.status if self.workers is not None else None)
            try:
                self._run_all(selection)
            finally:
                self.reporter.stop()
            summary = self.results.finish(self._incomplete(selection), with_page=self.with_page)
            self.reporter.finish(summary)
        self.code = self._exit_code(selection)

    def _run_all(self, selection: Selection) -> None:
        try:
            # The runs of a scoring that was interrupted come first.
            for number, line, made in self.schedule.taken_over() if self.schedule else ():
                self.verdicts.add(line["verdict"])
                self.runs += 1
                self._write(made, number)
            with between_scenarios() as interruption, closing(self._ended(selection)) as ended:
                for one in ended:
                    if one.outcome is not None and self._is_kept(one.outcome, one.number):
                        self._done(one.outcome, one.record, one.number)
                        interruption.raise_if_requested()
                    elif self.exit_first and not self.verdicts.isdisjoint(NOT_PASSED):
                        break
        except KeyboardInterrupt:
            self.interrupted = True
        except ClusterError as error:
            self.interrupted, self.lost = True, error

    def _is_kept(self, outcome: Outcome, number: int) -> bool:
        """Tell the schedule of a run that has ended; False if the run is to be treated as not started."""
        if self.schedule is None:
            return True
        if not self.schedule.is_kept(outcome):
            return False
        self.schedule.add_outcome(number, outcome)
        return True

    def _ended(self, selection: Selection) -> Generator[ScenarioResult]:
        """Yield the results of all scenarios, or of those that the schedule has begin."""
        if self.schedule is None:
            yield from self._ended_of(selection.scenarios, None)
            return
        for numbers in self.schedule.batches():
            with closing(self._ended_of(selection.scenarios, numbers)) as ended:
                for one in ended:
                    yield one
                    if one.outcome is None:
                        self.schedule.ended(one.number)

    def _ended_of(
        self, scenarios: Sequence[Scenario], numbers: Iterator[int | None] | None
    ) -> Generator[ScenarioResult]:
        if self.workers is not None:
            in_order = self.exit_first or self.lines is not None
            yield from self.workers.run(scenarios, numbers, in_order=in_order)
            return
        from harness.scenario.process_state import refuse_os_exit
        from harness.scenario.run import outcomes
        from harness.workers.guardian import guarded

        with refuse_os_exit():
            for number in numbers or range(len(scenarios)):
                assert number is not None  # nothing runs that would have to end first
                scenario = scenarios[number]
                settings = self.projects.of(scenario.file)
                for outcome in guarded(outcomes(scenario, settings, ask=self.ask), scenario, settings):
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

    def _done(self, outcome: Outcome, made: Record, number: int) -> None:
        self.verdicts.add(outcome.verdict)
        self.runs += 1
        error = outcome.observed.error or {}
        if outcome.verdict == "error" and error.get("type") == FormatError.__name__:
            self.refusals.setdefault(error["message"], set()).add(outcome.variant)
        if outcome.recorded is not None:
            self.recorded[outcome.recorded.folder] = outcome.recorded
        self._write(made, number)
        self.reporter.narrate(outcome)
        if outcome.verdict in NOT_PASSED or not self.quiet:
            self.reporter.done(outcome)

    def _write(self, made: Record, place: int) -> None:
        text = self.results.add_record(made, place)
        if self.lines is not None:
            try:
                self.lines.write(escape_json_commands(text).encode() + b"\n")
                self.lines.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                with suppress(OSError):
                    self.lines.close()  # closing flushes its buffer, which fails again
                file = self.lines.name if isinstance(self.lines.name, str) else "standard output"
                raise unwritable(Path(file), error) from None

    def _exit_code(self, selection: Selection) -> int:
        if selection.refused or self.refusals:
            return exit_code.BAD_INPUT
        if self.interrupted or "error" in self.verdicts:
            return exit_code.NOT_JUDGED
        return exit_code.FAILED if "failed" in self.verdicts else exit_code.OK


def run_selection(
    selection: Selection,
    projects: Projects,
    *,
    workers: Executor | None = None,
    lines: str | None = None,
    exit_first: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    debug: bool = False,
    to_stderr: bool = False,
    scored: bool = False,
    schedule: Schedule | None = None,
    command: str = "harness run",
) -> Session:
    """Run the selected scenarios and print progress and results.

    workers    run the scenarios, and are closed at the end; None: this process does
    lines      a file that also gets the lines of results; `-` is standard output, and implies `to_stderr`
    to_stderr  print everything but the lines of results on standard error
    scored     print progress only; the caller prints the results
    schedule   the order in which scenarios run, and which are left out
    command    the command that runs them, for the commands that run them again

    Raises:
        FormatError: results cannot be written, or two scenarios would write one cassette.
    """
    from harness.report.repeatability import Repeatability
    from harness.scenario.app_process import close_apps
    from harness.scenario.redaction import secrets_of_process
    from harness.secrets.output import redacted_process

    began = real.now()
    settings, to_stderr = projects.common(selection.files), to_stderr or lines == "-"
    if projects.record_mode is not RecordMode.NONE or any(
        projects.of(file).cassette_ignore for file in selection.files
    ):
        check_cassettes(selection.scenarios, projects)
    for error in selection.refused.values():
        print_problems(error.problems)
    if selection.is_empty:
        click.echo(f"nothing to run: {selection.part}", err=True)
    for scenario, reason in zip(selection.scenarios, selection.reasons, strict=False) if verbose else ():
        click.echo(f"{scenario.id}: {reason}", err=to_stderr)
    with ExitStack() as open_files:
        stream = _opened(lines, open_files) if lines else None
        secrets = secrets_of_process(settings)
        open_files.enter_context(stdout_to_stderr(to_stderr))
        # Before a thread redirects the output.
        _begin_guarded(projects, settings.report, workers, open_files)
        open_files.enter_context(redacted_process(secrets.text))
        open_files.callback(close_apps)
        if to_stderr:  # standard output is for the lines of results
            open_files.enter_context(redirect_stdout(sys.stderr))
        console = open_console(sys.stderr if to_stderr else sys.stdout)
        reporter = (ProgressReporter if scored else RunReporter)(
            console,
            coverage=verbose,
            detail="full" if debug else "normal",
            report=settings.report,
            command=command,
        )
        results = ResultsWriter(
            settings.report,
            traces_limit=settings.traces_limit,
            history=None if scored else history_writer(settings, lambda: _input_digests(selection, projects)),
            repeatability=Repeatability(
                settings.report,
                lambda: _unchanged_inputs(selection, projects, began),
                projects.given_env,
                began,
            ),
        )
        session = Session(
            projects,
            results,
            reporter,
            stream,
            exit_first=exit_first,
            quiet=quiet,
            ask=terminal_asker(reporter),
            workers=workers,
            schedule=schedule,
            with_page=not scored,  # that of a scoring shows the score, which is computed from the written runs
        )
        open_files.enter_context(closing(workers) if workers is not None else nullcontext())
        session.run(selection)
        for text in recorded_lines([*session.recorded.values()], quiet=quiet or scored):
            console.print(text, soft_wrap=True)
        for name in secrets.unprotected:
            why = "is too short, or too common a word, to be kept secret"
            click.echo(f"warning: the value of {name} {why}", err=True)
    if session.interrupted:
        _print_interruption(session, settings)
    if not scored and (not quiet or session.code):
        for text in report_paths(settings.report):
            click.echo(text, err=to_stderr)
    if not scored and in_actions():
        from harness.report.github import report_to_github

        report_to_github(settings.report, lambda text: click.echo(text, err=to_stderr))
    return session


def _print_interruption(session: Session, settings: Settings) -> None:
    if session.lost is not None:
        print_problems([Problem(session.lost.code, str(session.lost))])
    again = "; the same command goes on from there" if session.schedule is not None else ""
    if effective_record_mode(settings) in WRITING:
        again = "; the same command goes on from the answers so far"
    click.echo(f"interrupted: the results of finished runs are saved, the rest was not run{again}", err=True)


def _begin_guarded(projects: Projects, report: Path, workers: Executor | None, stack: ExitStack) -> None:
    """Let another process write the report, if a run ends or holds this one, and that is of a command."""
    if workers is None and exit_code.is_command():
        from harness.workers.guardian import reported, start_guardian

        start_guardian(projects, report)
        stack.callback(reported)


@contextmanager
def counted(spending: Spending, workers: Executor | None) -> Iterator[None]:
    """Count the calls of real models that this process makes, within the context. Workers have theirs counted."""
    from harness.recording.permits import Permits, permits_from

    if workers is not None:
        yield
        return
    with Permits(spending) as source, permits_from(source):
        yield


def _input_digests(selection: Selection, projects: Projects) -> Mapping[str, str]:
    from harness.variants.fingerprint import input_digests

    return input_digests(selection.scenarios, projects)


def _unchanged_inputs(selection: Selection, projects: Projects, began: datetime) -> Unchanged:
    from harness.selection.last_run import UnchangedInputs

    return UnchangedInputs(selection.scenarios, projects, began)


def _opened(file: str, open_files: ExitStack) -> IO[bytes]:
    if file == "-":
        with suppress(OSError, ValueError):  # a descriptor of its own: `sys.stdout` is redirected
            return open_files.enter_context(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
        return sys.stdout.buffer
    try:
        if Path(file).is_fifo():  # a blocking open would wait for a reader
            descriptor = os.open(file, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(descriptor, True)
            return open_files.enter_context(os.fdopen(descriptor, "wb"))
        return open_files.enter_context(open(file, "wb"))
    except OSError as error:
        raise unwritable(Path(file), error) from None
