"""`harness score`: run scenarios with variants of their agents, and compare each with the baseline."""

from __future__ import annotations

import shlex
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.budget import Budget
from harness.cli import completion
from harness.cli import output as exit_code
from harness.cli.options import (
    budget_option,
    chosen_settings,
    cluster_option,
    flag,
    jobs_option,
    may_call_models,
    path_option,
    record_mode_option,
    repeat_option,
    selection_options,
    start_workers,
    yes_option,
)
from harness.cli.output import check_writable, print_problems, stdout_to_stderr
from harness.errors import FormatError, Problem
from harness.settings import Projects, RecordMode

if TYPE_CHECKING:
    from harness.cli.selection import Selection
    from harness.variants.document import Variant

_EXIT_CODES = """\b
Exit codes, the first that applies:
  2  a file or an argument is wrong, or models would be called without a
     terminal to ask at and without --yes
  3  a scenario could not be judged, the run was interrupted or not started,
     or the budget ran out
  1  the variant of --require is not the best, or not better than the baseline
  0  otherwise; failing scenarios only lower the fitness
"""


@click.command("score", epilog=_EXIT_CODES)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=completion.scenario_paths)
@path_option("--variants", "file", required=True, help="The variants file.")
@click.option("--variant", "names", multiple=True, metavar="NAME", help="Only this variant; may be repeated.")
@click.option("--require", metavar="NAME", help="Exit with 1 unless this variant is better than all others.")
@selection_options
@repeat_option
@jobs_option
@cluster_option
@record_mode_option(
    "How to handle calls that no stub answers, in scenarios with a cassette; each variant has its own."
)
@budget_option("on calls that are not replayed; the remaining scenarios are not run")
@flag(
    "--race",
    help="Stop variants early that another one has beaten. Tested after every 5 scenarios, in random order with a "
    "fixed seed; the probability that any variant is stopped wrongly is at most 2.5 %.",
)
@yes_option
@flag("--fresh", help="Do not continue an interrupted scoring.")
@flag(
    "--last-failed",
    help="Repeat the runs of the last scoring that could not be judged, or that an error ended, and take over the "
    "others. A failed check is not repeated.",
)
@click.option("--json", "json_", metavar="FILE", help="Write the score as JSON to FILE; - is stdout.")
@path_option("--report", metavar="DIR", help="Folder for results (default: reports/score).")
def command(
    paths: tuple[str, ...],
    file: Path,
    names: tuple[str, ...],
    require: str | None,
    words: str,
    tags: tuple[str, ...],
    repeat: int | None,
    jobs: int | None,
    cluster: str | None,
    record_mode: str,
    budget: Budget | None,
    race: bool,
    yes: bool,
    fresh: bool,
    last_failed: bool,
    json_: str | None,
    report: Path | None,
) -> int:
    """Compare variants of an agent: which is better, by how much, and how certain that is.

    PATH is a scenario file (*.scenario.yaml), a folder of them, or FILE::NAME for one scenario. Each scenario runs
    with the baseline, and with each variant of FILE that changes something in its manifest: prompts, models,
    parameters, variables, or the manifest itself. Fitness is compared scenario by scenario;
    verdicts and their intervals are corrected for the number of variants.

    Before models are called (--record-mode), the number of calls and their cost are estimated and shown. An
    interrupted scoring continues when the same command is given again.
    """
    if fresh and last_failed:
        raise click.UsageError("--fresh and --last-failed are mutually exclusive")
    start_workers(jobs, RecordMode(record_mode))

    from harness.cli.executors import open_executor
    from harness.cli.score_plan import conclude, plan
    from harness.cli.selection import select
    from harness.cli.session import counted, run_selection
    from harness.scenario.cassette import check_cassettes
    from harness.variants.application import apply_variants, unused_names
    from harness.variants.document import read_variants, select_variants

    check_writable(json_)
    variants = select_variants(read_variants(file), (*names, *([require] if require and names else [])))
    if require is not None:
        select_variants(variants, (require,))
    projects = Projects(record_mode=RecordMode(record_mode))
    selection = select(paths, projects, words=words, tags=tags, strict=True)
    variants = _applicable(variants, selection, needed={*names, require})
    folder = report or projects.common(selection.files).report.with_name("score")
    projects = Projects(
        chosen=chosen_settings(report=folder, cluster=cluster), record_mode=RecordMode(record_mode)
    )
    if repeat is not None:
        selection = selection.repeated(repeat)
    to_stderr = json_ == "-"
    with stdout_to_stderr(to_stderr):  # modules of tools may print on import
        scenarios = apply_variants([each.whole() for each in selection.scenarios], variants, projects)
        check_cassettes(scenarios, projects)
        print_problems(unused_names(variants, scenarios, projects))
        schedule, resume_state = plan(
            scenarios,
            projects,
            folder,
            budget or Budget(),
            race=race,
            fresh=fresh,
            last_failed=last_failed,
            to_stderr=to_stderr,
        )
    if schedule.estimate.asks and not may_call_models(yes):
        return exit_code.NOT_JUDGED
    resume_state.begin()
    selection = replace(selection, scenarios=tuple(scenarios))
    workers = open_executor(jobs, projects, selection, to_stderr=to_stderr, spending=schedule.spending)
    with counted(schedule.spending, workers):
        finished = run_selection(
            selection, projects, workers=workers, to_stderr=to_stderr, scored=True, schedule=schedule
        )
    if not finished.interrupted and not schedule.over_budget:
        resume_state.end()
    again = f"harness score --variants {shlex.quote(str(file))}"
    again += "" if record_mode == "none" else f" --record-mode {record_mode}"
    return conclude(
        finished, schedule, scenarios, variants, projects, json_=json_, require=require, command=again
    )


def _applicable(
    variants: list[Variant], selection: Selection, *, needed: Container[str | None]
) -> list[Variant]:
    """Return the variants that can apply; print a note for each whose `only` matches unselected scenarios only.

    Raises:
        FormatError: one of those is `needed`, or is the baseline.
    """
    from harness.variants.application import matches_only

    kept = []
    for variant in variants:
        runs = any(matches_only(variant, each.manifests[0]) for each in selection.scenarios)
        if runs or not any(matches_only(variant, manifest) for manifest in selection.left_out):
            kept.append(variant)
            continue
        text = f"'{variant.name}' is not scored: its `only` matches no manifest of the {selection.part}"
        problem = Problem("unmatched-only", text, variant.spans.get("only", variant.span))
        if variant.is_baseline or variant.name in needed:
            raise FormatError(problem)
        print_problems([replace(problem, severity="note")])
    return kept
