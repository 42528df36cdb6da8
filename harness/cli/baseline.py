"""`harness baseline save`: write a summary file of a run, to be committed and compared with later runs."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import PATH
from harness.cli.output import deliver, warnings_at_end
from harness.errors import FormatError, Problem
from harness.settings import load_settings
from harness.source.document import shown_path


@click.group("baseline")
def command() -> None:
    """Save a run as a baseline for later comparisons."""


@command.command("save")
@click.argument("file", type=PATH)
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN]...")
def save(file: Path, runs: tuple[Path, ...]) -> None:
    """Write the baseline FILE from a run: one line per scenario, with its result.

    RUN is a folder with results (default: the last run of this project). It must be a complete run. Of several
    runs of the same agents the baseline has the means. The same runs always give the same file, so a diff of
    the commit shows what changed. `harness gate --baseline FILE` reads it.
    """
    from harness.report.baseline_file import baseline_of, baseline_text
    from harness.report.formatting import plural
    from harness.report.scenario_runs import read_run

    with warnings_at_end():
        read = [read_run(run) for run in runs or (load_settings().report,)]
    for run in read:
        if run.incomplete:
            message = (
                f"{run.name} cannot be saved as a baseline, since it is not a whole run: {run.incomplete}"
            )
            raise FormatError(Problem("partial-run", message, None, "run all scenarios, and save that"))
    together = baseline_of(read)
    text, scenarios = baseline_text(together), together.scenarios.values()
    absolute = next((each.suite for each in scenarios if Path(each.suite).is_absolute()), None)
    if absolute:
        click.echo(f"warning: {absolute} is an absolute path on this machine; run from its project", err=True)
    deliver(text, file)
    passed = sum(scenario.verdict == "passed" for scenario in scenarios)
    of = f", means of {plural(len(read), 'run')}" if len(read) > 1 else ""
    click.echo(f"{shown_path(file)}: {plural(len(scenarios), 'scenario')}, {passed} passed{of}")
