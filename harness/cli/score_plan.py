"""The plan of `harness score`: the runs to take over, the estimated calls, and the confirmation.

runs of an interrupted scoring ──▶ the remaining runs: calls and cost ──▶ confirmed at a terminal ──▶ Schedule
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from harness.budget import Budget
from harness.errors import FormatError
from harness.recording.spending import Spending
from harness.report.formatting import cost, plural
from harness.report.reading import RESULTS, read_lines
from harness.scenario.model import Scenario
from harness.scenario.outcome import PriceList
from harness.settings import Projects, RecordMode, is_ci_machine
from harness.variants.estimate import estimate
from harness.variants.fingerprint import fingerprints
from harness.variants.independence import SAME_AS_BASELINE, no_difference_reasons
from harness.variants.race import Race
from harness.variants.schedule import ResumeState, Schedule, discard, run_key


class Plan(NamedTuple):
    """The scenarios to run, and the state that is kept in case the scoring is interrupted."""

    schedule: Schedule
    resume_state: ResumeState


def plan(
    scenarios: Sequence[Scenario],
    projects: Projects,
    folder: Path,
    *,
    budget: Budget,
    race: bool,
    fresh: bool,
    to_stderr: bool,
) -> Plan:
    """Plan the run of scenarios with variants, with results in `folder`; print taken-over runs and the estimate.

    Raises:
        FormatError: the results in the folder are damaged.
    """
    settings = projects.common([scenario.file for scenario in scenarios])
    price = PriceList(settings.prices).cost
    keys = [run_key(each.variant, each.id) for each in scenarios]
    if fresh:
        discard(folder)
    earlier = _read_earlier_results(folder) if projects.record_mode is not RecordMode.NONE else []
    resume_state = ResumeState(
        folder,
        dict(zip(keys, fingerprints(scenarios, projects), strict=True)),
        order="race" if race else "",
    )
    repeats = {key: scenario.repeat for key, scenario in zip(keys, scenarios, strict=True)}
    found = resume_state.taken_over(repeats)
    taken = {number: found[key] for number, key in enumerate(keys) if key in found}
    if taken:
        runs = plural(sum(map(len, taken.values())), "run")
        click.echo(
            f"{runs} taken over from the scoring that was interrupted (--fresh starts anew)", err=to_stderr
        )
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
    return Plan(schedule, resume_state)


def confirm(schedule: Schedule) -> bool:
    """Ask at a terminal before models are called; return False if the answer is no."""
    if not schedule.estimate.asks or not _is_at_terminal():
        return True
    try:
        return click.confirm("go on?", err=True)
    except click.Abort:  # Ctrl-C, or the end of the input
        return False


def _is_at_terminal() -> bool:
    return not is_ci_machine() and sys.stdin.isatty() and sys.stderr.isatty()


def over_budget_lines(schedule: Schedule, made: Mapping[str, int]) -> list[str]:
    """Return a line for each variant with runs that the budget did not allow; `made` counts the runs per variant."""
    planned: dict[str, int] = {}
    for scenario in schedule.scenarios:
        name = scenario.variant
        planned[name] = planned.get(name, 0) + (1 if scenario.skip is not None else scenario.repeat)
    lines = [
        f"  {name}: {count - made.get(name, 0)} of {plural(count, 'run')} not made"
        for name, count in planned.items()
        if made.get(name, 0) < count
    ]
    return [f"the budget of {schedule.spending.budget} is spent:", *lines]


def spending_line(spending: Spending) -> str:
    """Return the spending as one line; "" if there was none."""
    if not spending.calls:
        return ""
    tokens = spending.input_tokens + spending.output_tokens
    unpriced = f", without what {', '.join(sorted(spending.unpriced))} cost" if spending.unpriced else ""
    return f"asked anew: {plural(spending.calls, 'call')}, {tokens:,} tokens, {cost(spending.cost)} USD{unpriced}"


def _read_earlier_results(folder: Path) -> list[Mapping[str, Any]]:
    """Return the results in the folder; none if they cannot be read, since the estimate can do without."""
    try:
        return list(read_lines(folder)) if (folder / RESULTS).is_file() else []
    except FormatError:
        return []
