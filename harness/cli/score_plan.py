"""Before and after the runs of `harness score`: the plan, and the score.

`plan`       runs of an earlier scoring ──▶ the remaining runs: calls and cost ──▶ Schedule
`conclude`   results ──▶ the score, as a table and as JSON, what was left out, and the exit code
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from harness.budget import Budget
from harness.cli import output as exit_code
from harness.cli.output import deliver_json, print_problems, stdout_to_stderr
from harness.cli.session import Session
from harness.errors import FormatError
from harness.recording.spending import Spending
from harness.report.console import open_console, terminal_width
from harness.report.encoding import encode
from harness.report.encoding import replace as replace_file
from harness.report.failure import rerun_text
from harness.report.formatting import cost, plural
from harness.report.html.page import write_page
from harness.report.reading import RESULTS, SCORE, read_lines
from harness.report.scenario_runs import is_unanswered, read_run
from harness.report.summary import Summary
from harness.report.summary_text import report_paths
from harness.scenario.model import Scenario
from harness.scenario.outcome import PriceList
from harness.settings import Projects, RecordMode
from harness.source.display import printable
from harness.variants.application import uncalled_models
from harness.variants.comparison import Score, compare, uncompared
from harness.variants.document import Variant
from harness.variants.estimate import estimate
from harness.variants.fingerprint import fingerprints
from harness.variants.independence import SAME_AS_BASELINE, no_difference_reasons
from harness.variants.race import Race
from harness.variants.schedule import ResumeState, Schedule
from harness.variants.table import score_json, table


def plan(
    scenarios: Sequence[Scenario],
    projects: Projects,
    folder: Path,
    budget: Budget,
    *,
    race: bool,
    fresh: bool,
    last_failed: bool,
    to_stderr: bool,
) -> tuple[Schedule, ResumeState]:
    """Plan the run of scenarios with variants, with results in `folder`; print taken-over runs and the estimate.

    Returned are the scenarios to run, and the state that is kept in case the scoring is interrupted.

    Raises:
        FormatError: the results in the folder are damaged; or with `last_failed`, there are none to take over.
    """
    settings = projects.common([scenario.file for scenario in scenarios])
    price = PriceList(settings.prices).cost
    earlier = _read_earlier_results(folder) if projects.record_mode is not RecordMode.NONE else []
    inputs = fingerprints(scenarios, projects)
    resume_state = ResumeState(folder, scenarios, inputs, order="race" if race else "")
    taken = {}
    if not fresh:
        taken = resume_state.last_judged() if last_failed else resume_state.taken_over()
    if taken:
        runs = plural(sum(map(len, taken.values())), "run")
        source = (
            "the last scoring" if last_failed else "the scoring that was interrupted (--fresh starts anew)"
        )
        click.echo(f"{runs} taken over from {source}", err=to_stderr)
    if last_failed and len(taken) == len(scenarios):
        click.echo("nothing to repeat: no run of the last scoring was ended by an error", err=to_stderr)
    expected = estimate(scenarios, projects, price, earlier).without(taken)
    for text in expected.lines():
        click.echo(text, err=to_stderr)
    for name, why in no_difference_reasons(scenarios, projects).items() if expected.asks else ():
        if why == SAME_AS_BASELINE:
            click.echo(f"  '{name}' is the same as the baseline: {why}", err=to_stderr)
    names = dict.fromkeys(scenario.variant for scenario in scenarios)
    heaviest = max((scenario.weight for scenario in scenarios), default=1.0)
    schedule = Schedule(
        scenarios,
        expected,
        Spending(price, budget),
        Race([*names], heaviest) if race else None,
        taken,
        resume_state.discard_old,
    )
    return schedule, resume_state


def _over_budget_lines(schedule: Schedule, made: Mapping[str, int]) -> list[str]:
    """Return a line for each variant with runs that the budget did not allow; `made` counts the runs per variant."""
    planned: Counter[str] = Counter()
    for scenario in schedule.scenarios:
        planned[scenario.variant] += 1 if scenario.skip is not None else scenario.repeat
    left = {name: (count - made.get(name, 0), count) for name, count in planned.items()}
    lines = [f"  {name}: {n} of {plural(of, 'run')} not made" for name, (n, of) in left.items() if n > 0]
    return [f"the budget of {schedule.spending.budget} is spent:", *lines]


def _spending_line(spending: Spending) -> str:
    tokens = spending.input_tokens + spending.output_tokens
    unpriced = f", without what {', '.join(sorted(spending.unpriced))} cost" if spending.unpriced else ""
    return f"asked anew: {plural(spending.calls, 'call')}, {tokens:,} tokens, {cost(spending.cost)} USD{unpriced}"


def _read_earlier_results(folder: Path) -> list[Mapping[str, Any]]:
    """Return the results in the folder; none if they cannot be read, since the estimate can do without."""
    try:
        return list(read_lines(folder)) if (folder / RESULTS).is_file() else []
    except FormatError:
        return []


_MAX_REFUSALS: Final = 10
_MAX_LINES: Final = 6


def conclude(
    finished: Session,
    schedule: Schedule,
    scenarios: Sequence[Scenario],
    variants: Sequence[Variant],
    projects: Projects,
    *,
    json_: str | None,
    require: str | None,
    command: str,
) -> int:
    """Write and print the score of a run that has ended, and return the exit code.

    `json_` is another file for the score, `command` the command that scores.

    Raises:
        FormatError: a file cannot be written.
    """
    to_stderr, folder = json_ == "-", finished.report
    if finished.code == exit_code.BAD_INPUT:
        write_page(folder)
        _print_refusals(finished, variants)
        return finished.code
    if schedule.spending.calls:
        click.echo(_spending_line(schedule.spending), err=to_stderr)
    stopped = finished.interrupted or schedule.over_budget
    if stopped and not (folder / RESULTS).stat().st_size:
        write_page(folder)
        _print_left_out(schedule, {})
        return exit_code.NOT_JUDGED
    with stdout_to_stderr(to_stderr):
        score = _score(folder, variants, schedule, projects)
    written = score_json(score)
    replace_file(folder / SCORE, f"{encode(written, indented=True)}\n".encode())
    write_page(folder)
    width = terminal_width(open_console(sys.stderr if to_stderr else sys.stdout))
    for line in table(score, width):
        click.echo(line, err=to_stderr)
    print_problems(uncalled_models(variants, scenarios, read_lines(folder)))
    if json_ is not None:
        deliver_json(written, json_)
    for place in report_paths(folder):
        click.echo(place, err=to_stderr)
    if stopped:
        _print_left_out(schedule, {each.name: each.runs for each in score.variants})
        return exit_code.NOT_JUDGED
    if finished.code == exit_code.NOT_JUDGED:
        _print_not_judged(folder, command)
        return finished.code
    if require is not None and not score.is_best(require):
        click.echo(f"'{require}' is not better than all others", err=True)
        return exit_code.FAILED
    return exit_code.OK


def _print_refusals(finished: Session, variants: Sequence[Variant]) -> None:
    refusals = list(finished.refusals.items())
    for message, of in refusals[:_MAX_REFUSALS]:
        names = [repr(variant.name) for variant in variants if variant.name in of]
        click.echo(f"error: {message}\n    as {', '.join(names)}", err=True)
    if len(refusals) > _MAX_REFUSALS:
        click.echo(f"… {len(refusals) - _MAX_REFUSALS} more", err=True)
    click.echo("nothing is scored", err=True)
    for place in report_paths(finished.report):
        click.echo(place, err=True)


def _print_not_judged(folder: Path, command: str) -> None:
    causes: dict[str, list[Any]] = {}

    def note(line: Any) -> None:
        if line["verdict"] == "error":
            message = str((line["error"] or {}).get("message") or "a check could not be evaluated")
            causes.setdefault(message, []).append(line)

    read_run(folder, [note])
    click.echo("some runs could not be judged: see the results", err=True)
    for message, runs in list(causes.items())[:_MAX_REFUSALS]:
        text = "\n".join(message.splitlines()[:_MAX_LINES])
        first = runs[0]
        where = f"{plural(len(runs), 'run')}, such as " if len(runs) > 1 else ""
        where += f"{first['id']} as {first['variant']}"
        again = rerun_text(
            first["id"],
            first["seed"],
            first["repeat"],
            None,
            f"{command} --variant {shlex.quote(first['variant'])}",
        )
        told = f"error: {text}\n    in {where}\n    rerun  {again}"
        click.echo(printable(told, keep_newlines=True), err=True)


def _print_left_out(schedule: Schedule, made: dict[str, int]) -> None:
    for line in _over_budget_lines(schedule, made) if schedule.over_budget else ():
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
