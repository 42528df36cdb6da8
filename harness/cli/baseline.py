"""`harness baseline save`: write a summary file of a run, to be committed and compared with later runs."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import PATH, run_argument
from harness.cli.output import deliver, warnings_at_end
from harness.errors import FormatError, Problem
from harness.source.document import shown_path


@click.group("baseline")
def command() -> None:
    """Save a run as a baseline for later comparisons."""


@command.command("save")
@click.argument("file", type=PATH)
@run_argument
def save(file: Path, run: Path | None) -> None:
    """Write the baseline FILE from a run: one line per scenario, with its result.

    RUN is a folder with results (default: the last run of this project). It must be a complete run. The same run
    always gives the same file, so a diff of the commit shows what changed. `harness gate --baseline FILE` reads it.
    """
    from harness.report.baseline_file import baseline_text
    from harness.report.formatting import plural
    from harness.report.scenario_runs import read_run
    from harness.settings import load_settings

    with warnings_at_end():
        read = read_run(run or load_settings().report)
    if read.incomplete:
        message = f"{read.name} cannot be saved as a baseline, since it is not a whole run: {read.incomplete}"
        raise FormatError(Problem("partial-run", message, None, "run all scenarios, and save that"))
    text = baseline_text(read)
    absolute = next((each.suite for each in read.scenarios.values() if Path(each.suite).is_absolute()), None)
    if absolute:
        click.echo(f"warning: {absolute} is an absolute path on this machine; run from its project", err=True)
    deliver(text, file)
    passed = sum(scenario.verdict == "passed" for scenario in read.scenarios.values())
    click.echo(f"{shown_path(file)}: {plural(len(read.scenarios), 'scenario')}, {passed} passed")
