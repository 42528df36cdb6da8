"""`harness run`: scenarios without pytest."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, redirect_stdout, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from harness.cli.output import unwritable
from harness.cli.problems import print_problems
from harness.cli.selection_options import (
    changed_option,
    paths_and_ref,
    shard_option,
    tags_option,
    words_option,
)
from harness.settings import RecordMode, Traces

if TYPE_CHECKING:
    from harness.cli.selection import Selection
    from harness.selection.shard import Shard
    from harness.settings import Projects
    from harness.workers.pool import WorkerPool

_EXIT_CODES = """\b
Exit codes, the first that applies:
  2  a file or an argument is wrong (the other files run all the same)
  3  a scenario could not be judged, or the run was interrupted
  1  a scenario failed
  0  all passed
"""


class Jobs(click.ParamType[int]):
    """A number of processes, or `auto`: as many as this process may use processors."""

    name = "jobs"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "auto":
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not value.isdecimal() or int(value) < 1:
            self.fail(f"'{value}' is neither a number of processes nor 'auto'", param, ctx)
        return int(value)


@click.command("run", epilog=_EXIT_CODES)
@click.argument("paths", nargs=-1, metavar="PATH...")
@words_option
@tags_option
@changed_option
@shard_option
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Run each scenario N times.")
@click.option(
    "-j",
    "--jobs",
    type=Jobs(),
    default="1",
    metavar="N|auto",
    help="Run scenarios in N processes at once; auto is one for each processor.",
)
@click.option("-x", "--exit-first", is_flag=True, help="Stop after the first that does not pass.")
@click.option("--json", "lines", metavar="FILE", help="Also write the lines of results to FILE; - is stdout.")
@click.option("--report", type=click.Path(path_type=Path), metavar="DIR", help="Folder for results.")
@click.option(
    "--record-mode",
    type=click.Choice([mode.value for mode in RecordMode if mode is not RecordMode.LIVE]),
    default="none",
    show_default=True,
    help="What becomes of calls that no stub answers, in scenarios with a cassette; see `harness record`.",
)
@click.option(
    "--live", is_flag=True, help="Ask the real thing where no stub answers; cassettes stay as they are."
)
@click.option(
    "--traces",
    type=click.Choice([kept.value for kept in Traces]),
    help="Keep the traces of all runs (the default), of those that failed, or none; see `harness trace`.",
)
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Append the figures of this run to FILE; see `harness history`.",
)
@click.option("-q", "--quiet", is_flag=True, help="Tell only of what did not pass, and the summary.")
@click.option("-v", "--verbose", is_flag=True, help="Also every node, edge and branch that no scenario took.")
@click.option(
    "--narrate",
    is_flag=True,
    help="Tell each run step by step on stderr, and how long its nodes took, the slowest first.",
)
@click.option("--debug", is_flag=True, help="Of a failure every check and every frame of an exception.")
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    words: str,
    tags: tuple[str, ...],
    changed: str | None,
    shard: Shard | None,
    repeat: int | None,
    jobs: int,
    exit_first: bool,
    lines: str | None,
    report: Path | None,
    record_mode: str,
    live: bool,
    traces: str | None,
    history: Path | None,
    quiet: bool,
    verbose: bool,
    narrate: bool,
    debug: bool,
) -> int:
    """Run scenarios and say which of them hold.

    PATH is a scenario file (*.scenario.yaml), a folder of them, or FILE::NAME for one scenario.
    A LeafMesh mesh file runs its own test scenarios (evolution.test_scenarios).
    Results are written to reports/latest in the project of the scenarios, or as --report or
    [tool.harness] says; they are the same, and in the same order, however many jobs there
    are. Scenarios that are recorded, or run live, run one at a time.
    With --json - everything but the results goes to stderr.
    """
    from harness.cli.selection import select
    from harness.settings import Projects

    if live and record_mode != "none":
        raise click.UsageError("--live and --record-mode exclude each other")
    paths, changed = paths_and_ref(paths, changed)
    mode = RecordMode.LIVE if live else RecordMode(record_mode)
    chosen = {
        "report": str(report) if report else None,
        "traces": traces,
        "history": str(history) if history else None,
    }
    projects = Projects(
        chosen={key: value for key, value in chosen.items() if value}, record_mode=mode, narrate=narrate
    )
    workers = None
    if jobs > 1 and mode is RecordMode.NONE:
        workers = _pool(jobs, projects, lines)
    selection = select(paths, projects, words=words, tags=tags, changed=changed, shard=shard)
    if workers is None and any(projects.isolates(file) for file in selection.files):
        workers = _pool(jobs, projects, lines)
    if repeat is not None:
        selection = selection.repeated(repeat)
    return run_selection(
        selection,
        projects,
        workers=workers,
        lines=lines,
        exit_first=exit_first,
        quiet=quiet,
        verbose=verbose,
        debug=debug or ctx.find_root().params.get("debug", False),
    )


def _pool(jobs: int, projects: Projects, lines: str | None) -> WorkerPool:
    from harness.workers.pool import WorkerPool

    return WorkerPool(jobs, projects, stdout_to_stderr=lines == "-")


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
) -> int:
    """Run what was selected, show it, and give the exit code.

    `workers` run the scenarios, else this process does. `lines` is where lines of results go as well: a file, or `-`.

    Raises:
        FormatError: results cannot be written, or two scenarios would write one cassette.
    """
    from harness.cli.session import Session
    from harness.report.asking import at_terminal
    from harness.report.console import RunReporter, open_console
    from harness.report.github import tell_github
    from harness.report.history.file import writer_of
    from harness.report.recorded import recorded_lines
    from harness.report.summary_text import places
    from harness.scenario.redaction import secrets_of_process
    from harness.secrets.output import redacted_process

    settings = projects.common(selection.files)
    if projects.record_mode is not RecordMode.NONE or any(
        projects.of(file).cassette_ignore for file in selection.files
    ):
        from harness.scenario.recording import check_cassettes

        check_cassettes(selection.scenarios, projects)
    for error in selection.refused.values():
        print_problems(error.problems)
    if not selection.scenarios and not selection.refused:
        click.echo(f"nothing to run: {selection.part}", err=True)
    for text in selection.explained() if verbose else ():
        click.echo(text, err=lines == "-")
    with ExitStack() as open_files:
        stream = _opened(lines, open_files) if lines else None
        secrets = secrets_of_process(settings)
        open_files.enter_context(redacted_process(secrets.text))
        if lines == "-":  # standard output has lines of results alone
            open_files.enter_context(redirect_stdout(sys.stderr))
        console = open_console(sys.stderr if lines == "-" else sys.stdout)
        reporter = RunReporter(
            console, coverage=verbose, detail="full" if debug else "normal", report=settings.report
        )
        ask = at_terminal(reporter)
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
            history=writer_of(settings),
        )
        code = session.run(selection)
        for text in recorded_lines([*session.recorded.values()], quiet=quiet):
            console.print(text, soft_wrap=True)
        for name in secrets.unprotected:
            click.echo(
                f"warning: the value of {name} is too short, or too common a word, to be kept secret",
                err=True,
            )
    if session.interrupted:
        click.echo("interrupted: what had ended is written down, the rest was not run", err=True)
    if not quiet or code:
        for text in places(settings.report):
            click.echo(text, err=lines == "-")
    tell_github(settings.report, lambda text: click.echo(text, err=lines == "-"))
    return code


def _opened(file: str, open_files: ExitStack) -> IO[bytes]:
    if file == "-":
        with suppress(OSError, ValueError):  # past what is done with the output of this process
            return open_files.enter_context(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
        return sys.stdout.buffer
    try:
        if Path(file).is_fifo():  # to open a pipe waits for a reader, unless told not to
            descriptor = os.open(file, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(descriptor, True)
            return open_files.enter_context(os.fdopen(descriptor, "wb"))
        return open_files.enter_context(open(file, "wb"))
    except OSError as error:
        raise unwritable(Path(file), error) from None
