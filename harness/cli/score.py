"""`harness score`: variants of an agent, each run through the scenarios and held against the baseline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import exit_code
from harness.cli.output import deliver
from harness.cli.run import Jobs
from harness.cli.selection_options import tags_option, words_option
from harness.settings import RecordMode

if TYPE_CHECKING:
    from harness.scenario.model import Scenario
    from harness.settings import Projects
    from harness.variants.comparison import Score
    from harness.variants.document import Variant

_EXIT_CODES = """\b
Exit codes, the first that applies:
  2  a file or an argument is wrong
  3  a scenario could not be judged, or the run was interrupted
  1  the variant of --require is not the best, or not better than the baseline
  0  else: scenarios that fail are what is scored
"""


@click.command("score", epilog=_EXIT_CODES)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--variants",
    "file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The variants file.",
)
@click.option(
    "--variant", "names", multiple=True, metavar="NAME", help="Only this variant, or another given."
)
@click.option("--require", metavar="NAME", help="Exit with 1 unless this variant is better than all others.")
@words_option
@tags_option
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Run each scenario N times.")
@click.option(
    "-j", "--jobs", type=Jobs(), default="1", metavar="N|auto", help="Run scenarios in N processes at once."
)
@click.option(
    "--record-mode",
    type=click.Choice([mode.value for mode in RecordMode if mode is not RecordMode.LIVE]),
    default="none",
    show_default=True,
    help="What becomes of calls that no stub answers, in scenarios with a cassette; each variant has its own.",
)
@click.option("--json", "json_", metavar="FILE", help="Write the score as JSON to FILE; - is stdout.")
@click.option(
    "--report", type=click.Path(path_type=Path), metavar="DIR", help="Folder for results (reports/score)."
)
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
    json_: str | None,
    report: Path | None,
) -> int:
    """Say which variant of an agent is better, by how much, and how sure that is.

    PATH is a scenario file (*.scenario.yaml), a folder of them, or FILE::NAME for one scenario. Each scenario runs
    as the baseline and as each variant of FILE that changes something of its manifest: prompts, models, parameters,
    variables, or the manifest itself. Fitness is compared scenario by scenario (95 % interval of a paired bootstrap;
    verdicts are corrected for the number of variants).
    """
    from harness.cli.run_selection import run_selection
    from harness.cli.selection import select
    from harness.errors import FormatError
    from harness.report.html.page import write_page
    from harness.report.html.score_file import SCORE
    from harness.report.summary_text import places
    from harness.report.whole_file import replace as replace_file
    from harness.settings import Projects
    from harness.variants.application import varied
    from harness.variants.document import chosen, read_variants
    from harness.variants.table import table

    variants = chosen(read_variants(file), (*names, *([require] if require and names else [])))
    if require is not None:
        chosen(variants, (require,))
    projects = Projects(record_mode=RecordMode(record_mode))
    selection = select(paths, projects, words=words, tags=tags)
    if selection.refused:  # a variant that finds nothing in what is left would hide why
        raise FormatError([problem for each in selection.refused.values() for problem in each.problems])
    folder = report or projects.common(selection.files).report.with_name("score")
    projects = Projects(chosen={"report": str(folder)}, record_mode=RecordMode(record_mode))
    if repeat is not None:
        selection = selection.repeated(repeat)
    scenarios = varied([each.whole() for each in selection.scenarios], variants, projects)
    workers = None
    if jobs > 1 and projects.record_mode is RecordMode.NONE:
        from harness.workers.pool import WorkerPool

        workers = WorkerPool(jobs, projects)
    finished = run_selection(
        replace(selection, scenarios=tuple(scenarios)),
        projects,
        workers=workers,
        to_stderr=json_ == "-",
        scored=True,
        quiet=True,
    )
    if finished.code == exit_code.BAD_INPUT:
        return finished.code
    score = _score(folder, variants, scenarios, projects)
    text = json.dumps(score.as_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    replace_file(folder / SCORE, text.encode())
    write_page(folder)
    for line in table(score):
        click.echo(line, err=json_ == "-")
    if json_ is not None:
        deliver(text, None if json_ == "-" else Path(json_))
    for place in places(folder):
        click.echo(place, err=json_ == "-")
    if finished.code == exit_code.NOT_JUDGED:
        click.echo("some runs could not be judged: see the results", err=True)
        return finished.code
    if require is not None and not score.is_best(require):
        click.echo(f"'{require}' is not better than all others", err=True)
        return exit_code.FAILED
    return exit_code.OK


def _score(
    folder: Path, variants: Sequence[Variant], scenarios: Sequence[Scenario], projects: Projects
) -> Score:
    from harness.report.scenario_runs import read_run
    from harness.report.summary import Summary
    from harness.variants.comparison import compare
    from harness.variants.independence import can_differ

    summary = Summary()
    answers: dict[str, Counter[str]] = {}

    def count(line: Any) -> None:
        summary.add(line)
        kind = (
            "replayed" if line.get("recording") is not None else "asked" if line.get("varies") else "scripted"
        )
        answers.setdefault(line["variant"], Counter())[kind] += 1

    run = read_run(folder, [count])
    differs: dict[str, bool] = {}
    for scenario in scenarios:
        name = scenario.variation.name if scenario.variation else ""
        differs[name] = differs.get(name, False) or can_differ(scenario, projects)
    names = [variant.name for variant in variants if variant.name in differs]
    return compare(run, summary.as_json()["variants"], names, answers, differs)
