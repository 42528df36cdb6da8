"""`harness mutate`: make one small fault at a time in the agents, and see which of them the scenarios notice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.options import (
    Parsed,
    chosen_settings,
    cluster_option,
    flag,
    jobs_option,
    path_option,
    paths_and_ref,
    share,
    start_workers,
    words_option,
)
from harness.cli.output import check_writable, deliver_json
from harness.settings import Projects, RecordMode

_EPILOG = """\b
Examples:
  harness mutate scenarios/billing.scenario.yaml
  harness mutate --changed=main --fail-under 0.8 -j auto
  harness accept --mutant ID            add the expectation that notices it

\b
Exit codes, the first that applies:
  2  a file or an argument is wrong
  3  a scenario does not pass without a mutant, or the run was interrupted
  1  the score is below --fail-under
  0  otherwise
"""
_SCENARIOS = "scenarios"
OPERATORS = ("route", "node", "state", "call", "prompt", "guard", "output")


@click.command("mutate", epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=completion.scenario_paths)
@click.option("--manifest", "glob", metavar="GLOB", help="Only manifests whose path or file name matches.")
@click.option(
    "--operator",
    "operators",
    type=click.Choice(OPERATORS),
    multiple=True,
    help="Only this operator; may be repeated.",
)
@click.option(
    "--changed",
    is_flag=False,
    flag_value="HEAD",
    metavar="[REF]",
    help="Only parts that have changed since the commit REF (default: uncommitted changes).",
)
@click.option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="Only N mutants; always the same ones."
)
@click.option(
    "--time", "seconds", type=float, metavar="S", help="Begin no mutant after S seconds; in random order."
)
@words_option
@jobs_option
@cluster_option
@click.option(
    "--fail-under", "bound", type=Parsed("share", share), metavar="X", help="Exit with 1 below this score."
)
@flag("--fresh", help="Run all mutants again, also those whose result is known.")
@click.option("--json", "json_", metavar="FILE", help="Write the results as JSON to FILE; - is stdout.")
@path_option("--report", metavar="DIR", help="Folder for results (default: reports/mutation).")
def command(
    paths: tuple[str, ...],
    words: str,
    jobs: int | None,
    cluster: str | None,
    bound: float | None,
    json_: str | None,
    report: Path | None,
    **chosen: Any,
) -> int:
    """Make one small fault at a time in the agents, and see which of them the scenarios notice.

    PATH is a scenario file, a folder of them, or FILE::NAME (default: scenarios, or the current folder). Each fault,
    a mutant, is made in memory; the scenarios that reach its part run, until one fails. For each mutant that none
    notices, the expectation that would have is printed, ready to paste. Results are kept in .harness/mutate:
    only what changed is run again, and an interrupted run goes on.
    """
    if chosen["sample"] is not None and chosen["seconds"] is not None:
        raise click.UsageError("--sample and --time are mutually exclusive")
    start_workers(jobs, RecordMode.NONE)

    from harness.cli.mutating import Plan, Session
    from harness.cli.selection import select
    from harness.mutation.result import lines, score_of, shown_score, write_report
    from harness.report.folder_check import refuse_foreign
    from harness.source.display import printable

    check_writable(json_)
    given = paths or ((_SCENARIOS,) if Path(_SCENARIOS).is_dir() else (".",))
    if (ref := chosen["changed"]) is not None:
        given, chosen["changed"] = paths_and_ref(paths if os.path.lexists(ref) else given, ref)
    projects, to_stderr = Projects(chosen=chosen_settings(cluster=cluster)), json_ == "-"
    selection = select(given, projects, words=words, changed=chosen["changed"], strict=True)
    folder = report or projects.common(selection.files).report.with_name("mutation")
    refuse_foreign(folder)
    chosen["operators"] = chosen["operators"] or OPERATORS
    session = Session(selection, projects, Plan(**chosen), to_stderr=to_stderr)
    mutation = session.run(jobs)
    if not mutation.complete and not mutation.results:
        return exit_code.NOT_JUDGED
    write_report(folder, mutation, session.shapes())
    for line in lines(mutation):
        click.echo(printable(line, keep_newlines=True), err=to_stderr)
    if json_ is not None:
        deliver_json(mutation.as_json(), json_)
    click.echo(f"results: {folder}", err=to_stderr)
    session.annotate(mutation)
    score = score_of(mutation.results)
    if not mutation.complete or mutation.unusable:
        return exit_code.NOT_JUDGED
    if bound is not None and score is not None and score < bound:
        click.echo(f"the score {shown_score(score)} is below {bound:g}", err=True)
        return exit_code.FAILED
    return exit_code.OK
