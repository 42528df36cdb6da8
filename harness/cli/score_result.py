"""The result of a scoring: score.json, the table, the page, the remaining runs, and the exit code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from harness.cli import exit_code
from harness.cli.output import deliver_json, stdout_to_stderr
from harness.cli.run_selection import FinishedRun
from harness.cli.score_plan import over_budget_lines, spending_line
from harness.report.encoding import replace as replace_file
from harness.report.formatting import plural
from harness.report.html.evolution_files import SCORE
from harness.report.html.page import write_page
from harness.report.reading import RESULTS, read_lines
from harness.report.scenario_runs import is_unanswered, read_run
from harness.report.summary import Summary
from harness.report.summary_text import report_paths
from harness.settings import Projects, RecordMode
from harness.source.display import printable
from harness.variants.comparison import Score, compare, uncompared
from harness.variants.document import Variant
from harness.variants.independence import no_difference_reasons
from harness.variants.schedule import Schedule
from harness.variants.table import score_json, table

_MAX_REFUSALS: Final = 10
_MAX_LINES: Final = 6


def conclude(
    finished: FinishedRun,
    schedule: Schedule,
    variants: Sequence[Variant],
    projects: Projects,
    *,
    json_: str | None,
    require: str | None,
) -> int:
    """Write and print the score of a run that has ended, and return the exit code.

    `json_` is another file for the score.

    Raises:
        FormatError: a file cannot be written.
    """
    to_stderr, folder = json_ == "-", finished.report
    if finished.code == exit_code.BAD_INPUT:
        write_page(folder)
        _print_refusals(finished, variants)
        return finished.code
    if schedule.spending.calls:
        click.echo(spending_line(schedule.spending), err=to_stderr)
    stopped = finished.interrupted or schedule.over_budget
    if stopped and not (folder / RESULTS).stat().st_size:
        write_page(folder)
        _print_left_out(schedule, {})
        return exit_code.NOT_JUDGED
    with stdout_to_stderr(to_stderr):
        score = _score(folder, variants, schedule, projects)
    text = json.dumps(score_json(score), indent=2, ensure_ascii=False, allow_nan=False)
    replace_file(folder / SCORE, f"{text}\n".encode())
    write_page(folder)
    for line in table(score):
        click.echo(line, err=to_stderr)
    if json_ is not None:
        deliver_json(text, json_)
    for place in report_paths(folder):
        click.echo(place, err=to_stderr)
    if stopped:
        _print_left_out(schedule, {each.name: each.runs for each in score.variants})
        return exit_code.NOT_JUDGED
    if finished.code == exit_code.NOT_JUDGED:
        _print_not_judged(folder)
        return finished.code
    if require is not None and not score.is_best(require):
        click.echo(f"'{require}' is not better than all others", err=True)
        return exit_code.FAILED
    return exit_code.OK


def _print_refusals(finished: FinishedRun, variants: Sequence[Variant]) -> None:
    refusals = list(finished.refusals.items())
    for message, of in refusals[:_MAX_REFUSALS]:
        names = [repr(variant.name) for variant in variants if variant.name in of]
        click.echo(f"error: {message}\n    as {', '.join(names)}", err=True)
    if len(refusals) > _MAX_REFUSALS:
        click.echo(f"… {len(refusals) - _MAX_REFUSALS} more", err=True)
    click.echo("nothing is scored", err=True)
    for place in report_paths(finished.report):
        click.echo(place, err=True)


def _print_not_judged(folder: Path) -> None:
    causes: dict[str, list[str]] = {}

    def note(line: Any) -> None:
        if line["verdict"] == "error":
            message = str((line["error"] or {}).get("message") or "a check could not be evaluated")
            causes.setdefault(message, []).append(f"{line['id']} as {line['variant']}")

    read_run(folder, [note])
    click.echo("some runs could not be judged: see the results", err=True)
    for message, runs in list(causes.items())[:_MAX_REFUSALS]:
        text = "\n".join(message.splitlines()[:_MAX_LINES])
        where = f"{plural(len(runs), 'run')}, such as {runs[0]}" if len(runs) > 1 else runs[0]
        click.echo(printable(f"error: {text}\n    in {where}", keep_newlines=True), err=True)


def _print_left_out(schedule: Schedule, made: dict[str, int]) -> None:
    for line in over_budget_lines(schedule, made) if schedule.over_budget else ():
        click.echo(line, err=True)
    click.echo("run the same command again to continue where it stopped", err=True)


def _score(folder: Path, variants: Sequence[Variant], schedule: Schedule, projects: Projects) -> Score:
    answers: dict[str, Counter[str]] = {}
    asks = projects.record_mode is not RecordMode.NONE

    def count(line: Any) -> None:
        asked = line.get("varies") and asks  # runs with random faults vary, too
        kind = "replayed" if line.get("recording") is not None else "asked" if asked else "scripted"
        if is_unanswered(line["verdict"], line["error"]):
            kind = "unrecorded"
        answers.setdefault(line["variant"], Counter())[kind] += 1

    run = read_run(folder, [count])
    no_difference = no_difference_reasons(schedule.scenarios, projects)
    names = [variant.name for variant in variants if variant.name in no_difference]
    left_out, summary = uncompared(run, names), Summary()
    for line in read_lines(folder):
        if (line["id"], line["variant"], line["repeat"]) not in left_out:
            summary.add(line)
    return compare(run, summary.as_json()["variants"], names, answers, no_difference, schedule.race)
