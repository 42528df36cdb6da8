"""A run on a cluster that was interrupted, and goes on: what arrived is taken over where its inputs are the same."""

from __future__ import annotations

from pathlib import Path

import click

from harness.budget import Budget
from harness.cli.selection import Selection
from harness.recording.spending import Spending
from harness.report.formatting import plural
from harness.scenario.outcome import PriceList
from harness.settings import Projects
from harness.source.document import shown_path
from harness.variants.estimate import Estimate
from harness.variants.fingerprint import fingerprints
from harness.variants.schedule import ResumeState, Schedule


def plan_run(
    selection: Selection, projects: Projects, folder: Path, *, to_stderr: bool
) -> tuple[Schedule, ResumeState]:
    """Return the scenarios that are left to run, and the state that is kept in case they are interrupted.

    Raises:
        FormatError: the results in the folder are damaged, or are being written.
    """
    scenarios = selection.scenarios
    state = ResumeState(folder, scenarios, fingerprints(scenarios, projects))
    taken = state.taken_over()
    if taken:
        runs = plural(sum(map(len, taken.values())), "run")
        anew = f"remove {shown_path(folder)} to start anew"
        click.echo(f"{runs} taken over from the run that was interrupted ({anew})", err=to_stderr)
    spending = Spending(PriceList(projects.common(selection.files).prices).cost, Budget())
    schedule = Schedule(scenarios, Estimate({}, []), spending, taken=taken, on_taken_over=state.discard_old)
    return schedule, state
