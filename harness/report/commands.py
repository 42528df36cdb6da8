"""Shell commands to re-run a scenario and to show its trace."""

from __future__ import annotations

import shlex
from pathlib import Path

from harness.scenario.outcome import Outcome
from harness.source.display import printable
from harness.source.document import shown_path


def rerun_command(outcome: Outcome) -> str:
    """Return the command that runs the scenario again, with seed, repeat and variant as a comment."""
    return rerun_text(outcome.id, outcome.seed, outcome.repeat, outcome.variant)


def rerun_text(scenario: str, seed: int, repeat: int, variant: str | None) -> str:
    """Return the same command for a scenario given by its id."""
    more = [f"seed {seed}"]
    more += [f"repeat {repeat}"] if repeat else []
    more += [f"variant {variant}"] if variant else []
    # pytest gives `::` and `[` in a node id a meaning of its own.
    _, _, name = scenario.partition("::")
    program = "harness run" if any(mark in name for mark in ("::", "[")) else "pytest"
    return printable(f"{program} {shlex.quote(scenario)}  # {', '.join(more)}")


def trace_command(outcome: Outcome) -> str:
    """Return the command that shows the trace of a run; "" if its trace was not kept."""
    return trace_text(outcome.id, outcome.repeat, outcome.variant) if outcome.traced else ""


def trace_text(scenario: str, repeat: int, variant: str | None) -> str:
    """Return the same command for a scenario given by its id."""
    options = f" --repeat {repeat}" if repeat else ""
    options += f" --variant {shlex.quote(variant)}" if variant else ""
    return printable(f"harness trace {shlex.quote(scenario)}{options}")


def report_argument(scenarios: Path, report: Path) -> str:
    """Return a space and the results folder, as the last argument of `harness trace`; "" if it is the default."""
    usual = default_report(scenarios)
    return "" if usual.resolve() == report.resolve() else f" {shlex.quote(shown_path(report))}"


def default_report(scenarios: Path) -> Path:
    """Return the default results folder of the project that this scenario file belongs to."""
    from harness.settings import load_settings

    return load_settings(scenarios.parent if scenarios.exists() else None).report
