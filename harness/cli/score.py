"""`harness score`: variants of an agent, each run through the scenarios and held against the baseline."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import exit_code
from harness.cli.options import (
    PATH,
    budget_option,
    jobs_option,
    record_mode_option,
    repeat_option,
    start_workers,
    tags_option,
    words_option,
)
from harness.cli.output import check_place, stdout_to_stderr
from harness.settings import Projects, RecordMode

if TYPE_CHECKING:
    from harness.budget import Budget
    from harness.cli.selection import Selection
    from harness.variants.document import Variant
    from harness.workers.pool import WorkerPool

_EXIT_CODES = """\b
Exit codes, the first that applies:
  2  a file or an argument is wrong
  3  a scenario could not be judged, the run was interrupted or not begun, or the budget left something out
  1  the variant of --require is not the best, or not better than the baseline
  0  else: scenarios that fail are what is scored
"""


@click.command("score", epilog=_EXIT_CODES)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--variants", "file", type=PATH, required=True, metavar="FILE", help="The variants file.")
@click.option(
    "--variant", "names", multiple=True, metavar="NAME", help="Only this variant, or another given."
)
@click.option("--require", metavar="NAME", help="Exit with 1 unless this variant is better than all others.")
@words_option
@tags_option
@repeat_option
@jobs_option
@record_mode_option(
    "What becomes of calls that no stub answers, in scenarios with a cassette; each variant has its own."
)
@budget_option("asked anew; what is left is not run")
@click.option(
    "--race",
    is_flag=True,
    help="Stop variants that are beaten already: looked at after every 5 scenarios, in an order drawn by seed, "
    "with at most 2.5 % false stops over all variants and looks.",
)
@click.option("--yes", is_flag=True, help="Ask models anew without asking whether to.")
@click.option("--fresh", is_flag=True, help="Take nothing over from a scoring that was interrupted.")
@click.option("--json", "json_", metavar="FILE", help="Write the score as JSON to FILE; - is stdout.")
@click.option("--report", type=PATH, metavar="DIR", help="Folder for results (reports/score).")
def command(
    paths: tuple[str, ...],
    file: Path,
    names: tuple[str, ...],
    require: str | None,
    words: str,
    tags: tuple[str, ...],
    repeat: int | None,
    jobs: int,
    record_mode: str,
    budget: Budget | None,
    race: bool,
    yes: bool,
    fresh: bool,
    json_: str | None,
    report: Path | None,
) -> int:
    """Say which variant of an agent is better, by how much, and how sure that is.

    PATH is a scenario file (*.scenario.yaml), a folder of them, or FILE::NAME for one scenario. Each scenario runs
    as the baseline and as each variant of FILE that changes something of its manifest: prompts, models, parameters,
    variables, or the manifest itself. Fitness is compared scenario by scenario (95 % interval of a paired bootstrap;
    verdicts are corrected for the number of variants).

    Before models are asked anew (--record-mode), the number of calls and their cost are estimated and shown. A
    scoring that was interrupted goes on where it stopped when it is started again.
    """
    start_workers(jobs, RecordMode(record_mode))

    from harness.budget import Budget
    from harness.cli.problems import print_problems
    from harness.cli.run_selection import run_selection
    from harness.cli.score_plan import goes_on, plan
    from harness.cli.score_result import conclude
    from harness.cli.selection import select
    from harness.errors import FormatError
    from harness.recording.spending import count_spending
    from harness.variants.application import varied
    from harness.variants.document import chosen, read_variants
    from harness.variants.unused_names import unused_names

    check_place(json_)
    variants = chosen(read_variants(file), (*names, *([require] if require and names else [])))
    if require is not None:
        chosen(variants, (require,))
    projects = Projects(record_mode=RecordMode(record_mode))
    selection = select(paths, projects, words=words, tags=tags)
    if selection.refused:  # a variant that finds nothing in what is left would hide why
        raise FormatError([problem for each in selection.refused.values() for problem in each.problems])
    variants = _without_left_out(variants, selection, needed={*names, require})
    folder = report or projects.common(selection.files).report.with_name("score")
    projects = Projects(chosen={"report": str(folder)}, record_mode=RecordMode(record_mode))
    if repeat is not None:
        selection = selection.repeated(repeat)
    to_stderr = json_ == "-"
    with stdout_to_stderr(to_stderr):  # modules of tools may print when they are imported
        scenarios = varied([each.whole() for each in selection.scenarios], variants, projects)
        print_problems(unused_names(variants, scenarios, projects))
        schedule, unfinished = plan(
            scenarios,
            projects,
            folder,
            budget=budget or Budget(),
            race=race,
            fresh=fresh,
            to_stderr=to_stderr,
        )
    if not yes and not goes_on(schedule):
        click.echo("nothing was run", err=True)
        return exit_code.NOT_JUDGED
    unfinished.begin()
    with count_spending(schedule.spending):
        finished = run_selection(
            replace(selection, scenarios=tuple(scenarios)),
            projects,
            workers=_workers(jobs, projects, selection, to_stderr=to_stderr),
            to_stderr=to_stderr,
            scored=True,
            schedule=schedule,
        )
    if not finished.interrupted and not schedule.over_budget:
        unfinished.end()
    return conclude(finished, schedule, variants, projects, json_=json_, require=require)


def _without_left_out(
    variants: list[Variant], selection: Selection, *, needed: Container[str | None]
) -> list[Variant]:
    """The variants without those that are meant for scenarios that were not selected, of which it shows a note.

    Raises:
        FormatError: one of those is `needed`.
    """
    from harness.cli.problems import print_problems
    from harness.errors import FormatError, Problem
    from harness.variants.application import is_meant_for

    kept = []
    for variant in variants:
        runs = any(is_meant_for(variant, each.manifests[0]) for each in selection.scenarios)
        if runs or not any(is_meant_for(variant, manifest) for manifest in selection.left_out):
            kept.append(variant)
            continue
        text = f"'{variant.name}' is not scored: its `only` fits no manifest of the {selection.part}"
        problem = Problem("unmatched-only", text, variant.spans.get("only", variant.span))
        if variant.is_baseline or variant.name in needed:
            raise FormatError(problem)
        print_problems([replace(problem, severity="note")])
    return kept


def _workers(jobs: int, projects: Projects, selection: Selection, *, to_stderr: bool) -> WorkerPool | None:
    """The processes that run scenarios; None where this one does, as it must where something is asked anew."""
    if projects.record_mode is not RecordMode.NONE:
        return None
    if jobs == 1 and not any(projects.isolates(file) for file in selection.files):
        return None
    from harness.workers.pool import WorkerPool

    return WorkerPool(jobs, projects, stdout_to_stderr=to_stderr)
