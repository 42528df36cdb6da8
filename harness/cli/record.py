"""`harness record`: run scenarios with real models and services, and record the calls for replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from harness.budget import Budget
from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.options import (
    budget_option,
    env_option,
    exit_first_option,
    flag,
    jobs_option,
    last_failed_option,
    quiet_option,
    report_option,
    selection_options,
)
from harness.errors import FormatError, Problem
from harness.settings import Projects, RecordMode

_MODES = """\b
Record modes:
  once          record only scenarios that have no cassette yet
  new_episodes  replay recorded calls, and record the others (the default)
  all           make every call again; keep recorded calls that did not occur
  rewrite       make every call again, and replace the whole cassette

\b
Exit codes are those of `harness run`. A cassette is written when its scenario
has ended. If the run is cut off, even by `kill -9`, the calls that were made are
kept beside it, and the same command goes on from there.
"""


@click.command("record", epilog=_MODES)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=completion.scenario_paths)
@selection_options
@last_failed_option
@click.option(
    "--record-mode",
    "--mode",
    type=click.Choice(["once", "new_episodes", "all", "rewrite"]),
    help="How to handle existing cassettes.",
)
@flag("--rewrite", help="Make every call again; the same as --record-mode rewrite.")
@jobs_option
@budget_option(
    "on calls that are not replayed; a scenario that is cut off goes on from its answers the next time"
)
@exit_first_option
@env_option
@report_option
@quiet_option
def command(
    paths: tuple[str, ...],
    words: str,
    tags: tuple[str, ...],
    last_failed: bool,
    record_mode: str | None,
    rewrite: bool,
    jobs: int | None,
    budget: Budget | None,
    exit_first: bool,
    env: dict[str, str],
    report: Path | None,
    quiet: bool,
) -> int:
    """Run scenarios with real models and services, and record the calls for replay.

    PATH is a scenario file (*.scenario.yaml), a folder of them, or FILE::NAME for one scenario. Each test scenario in
    a LeafMesh mesh file has a cassette of its own, named after file and scenario. Scenarios that have a cassette run
    with the network open: a call that neither a stub nor the cassette answers is made for real, and written to
    cassettes/NAME without secrets. Keys are read from the environment, such as OPENAI_API_KEY. If the agent asks a
    person and there is a terminal, you are asked. A summary at the end lists the calls made and the files written.
    """
    from harness.cli.executors import open_executor
    from harness.cli.selection import select
    from harness.cli.session import counted, run_selection
    from harness.recording.spending import Spending
    from harness.report.formatting import plural
    from harness.scenario.cassette import cassette_name
    from harness.scenario.outcome import PriceList

    if rewrite and record_mode not in (None, "rewrite"):
        raise click.UsageError("--rewrite and --record-mode are mutually exclusive")
    mode = RecordMode("rewrite" if rewrite else record_mode or "new_episodes")
    projects = Projects(
        chosen={"report": str(report)} if report else None,
        record_mode=mode,
        record_in_ci=True,
        given_env=env,
    )
    selection = select(paths, projects, words=words, tags=tags, last_failed=last_failed)
    if last_failed and selection.is_empty:
        click.echo(f"nothing to record: {selection.part}", err=True)
        return exit_code.OK
    kept = tuple(
        each for each in selection.scenarios if cassette_name(each, projects.of(each.file)) is not None
    )
    if not kept and not selection.refused:
        text = f"{plural(len(selection.scenarios), 'scenario')} and no cassette: nothing to record"
        hint = "write `cassette: NAME` in the scenario, or `record = true` under [tool.harness]"
        raise FormatError(Problem("no-cassette", text, selection.scenarios[0].span, hint))
    if len(kept) < len(selection.scenarios) and not quiet:
        left = len(selection.scenarios) - len(kept)
        click.echo(f"{plural(left, 'scenario')} without a cassette left out", err=True)
    selection = replace(selection, scenarios=kept)
    again = "harness record" + (f" --record-mode {mode.value}" if mode is not RecordMode.NEW_EPISODES else "")
    spending = Spending(PriceList(projects.common(selection.files).prices).cost, budget or Budget())
    workers = open_executor(jobs or (1 if exit_first else None), projects, selection, spending=spending)
    with counted(spending, workers):
        finished = run_selection(
            selection, projects, workers=workers, exit_first=exit_first, quiet=quiet, command=again
        )
    if spending.refused:
        click.echo(f"the budget of {spending.budget} is spent; the same command goes on from here", err=True)
    return finished.code
