"""Run the selected scenarios with progress output, results files and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from contextlib import ExitStack, redirect_stdout, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, NamedTuple

import click

from harness.cli.output import stdout_to_stderr, unwritable
from harness.cli.problems import print_problems
from harness.settings import RecordMode

if TYPE_CHECKING:
    from harness.cli.selection import Selection
    from harness.settings import Projects
    from harness.variants.schedule import Schedule
    from harness.workers.pool import WorkerPool


class FinishedRun(NamedTuple):
    """A run that has ended: its exit code, the folder of its results, and True if Ctrl-C ended it.

    `refusals` maps errors in scenario files that only a run can detect to the variants that have them.
    """

    code: int
    report: Path
    interrupted: bool = False
    refusals: Mapping[str, Collection[str | None]] = MappingProxyType({})


def run_selection(
    selection: Selection,
    projects: Projects,
    *,
    workers: WorkerPool | None = None,
    lines: str | None = None,
    exit_first: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    debug: bool = False,
    to_stderr: bool = False,
    scored: bool = False,
    schedule: Schedule | None = None,
) -> FinishedRun:
    """Run the selected scenarios and print progress and results.

    workers    run the scenarios; None: this process does
    lines      a file that also gets the lines of results; `-` is standard output, and implies `to_stderr`
    to_stderr  print everything but the lines of results on standard error
    scored     print progress only; the caller prints the results
    schedule   the order in which scenarios run, and which are left out

    Raises:
        FormatError: results cannot be written, or two scenarios would write one cassette.
    """
    from harness.cli.session import Session
    from harness.report.console import ProgressReporter, RunReporter, open_console, terminal_asker
    from harness.report.github import report_to_github
    from harness.report.history.file import writer_of
    from harness.report.repeatability import Repeatability
    from harness.report.summary_text import recorded_lines, report_paths
    from harness.scenario.redaction import secrets_of_process
    from harness.secrets.output import redacted_process
    from harness.selection.unchanged import UnchangedInputs
    from harness.time.real import real
    from harness.variants.fingerprint import input_digests

    began = real.now()
    settings, to_stderr = projects.common(selection.files), to_stderr or lines == "-"
    if projects.record_mode is not RecordMode.NONE or any(
        projects.of(file).cassette_ignore for file in selection.files
    ):
        from harness.scenario.cassette import check_cassettes

        check_cassettes(selection.scenarios, projects)
    for error in selection.refused.values():
        print_problems(error.problems)
    if not selection.scenarios and not selection.refused:
        click.echo(f"nothing to run: {selection.part}", err=True)
    for text in selection.explained() if verbose else ():
        click.echo(text, err=to_stderr)
    with ExitStack() as open_files:
        stream = _opened(lines, open_files) if lines else None
        secrets = secrets_of_process(settings)
        open_files.enter_context(stdout_to_stderr(to_stderr))
        open_files.enter_context(redacted_process(secrets.text))
        if to_stderr:  # standard output is for the lines of results
            open_files.enter_context(redirect_stdout(sys.stderr))
        console = open_console(sys.stderr if to_stderr else sys.stdout)
        reporter = (ProgressReporter if scored else RunReporter)(
            console, coverage=verbose, detail="full" if debug else "normal", report=settings.report
        )
        ask = terminal_asker(reporter)
        session = Session(
            projects,
            settings.report,
            reporter,
            stream,
            exit_first=exit_first,
            quiet=quiet,
            ask=ask,
            workers=workers,
            traces_limit=settings.traces_limit,
            history=None
            if scored
            else writer_of(settings, lambda: input_digests(selection.scenarios, projects)),
            repeatability=Repeatability(
                settings.report,
                lambda: UnchangedInputs(selection.scenarios, projects, began),
                projects.given_env,
                began,
            ),
            schedule=schedule,
        )
        code = session.run(selection)
        for text in recorded_lines([*session.recorded.values()], quiet=quiet or scored):
            console.print(text, soft_wrap=True)
        for name in secrets.unprotected:
            click.echo(
                f"warning: the value of {name} is too short, or too common a word, to be kept secret",
                err=True,
            )
    if session.interrupted:
        click.echo("interrupted: the results of finished runs are saved, the rest was not run", err=True)
    if not scored and (not quiet or code):
        for text in report_paths(settings.report):
            click.echo(text, err=to_stderr)
    if not scored:
        report_to_github(settings.report, lambda text: click.echo(text, err=to_stderr))
    return FinishedRun(code, settings.report, session.interrupted, session.refusals)


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
