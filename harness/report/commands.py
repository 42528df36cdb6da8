"""The commands that run a scenario again, and that show what it did: text to be pasted into a shell."""

from __future__ import annotations

import shlex
from pathlib import Path

from harness.scenario.outcome import Outcome
from harness.source.display import printable
from harness.source.document import shown_path


def rerun_command(outcome: Outcome) -> str:
    """The command that runs the scenario again; seed, repeat and variant as a comment."""
    return rerun_text(outcome.id, outcome.seed, outcome.repeat, outcome.variant)


def rerun_text(scenario: str, seed: int, repeat: int, variant: str | None) -> str:
    """As `rerun_command`, of a scenario by its id."""
    more = [f"seed {seed}"]
    more += [f"repeat {repeat}"] if repeat else []
    more += [f"variant {variant}"] if variant else []
    # pytest reads `::` and `[` in an id as its own.
    _, _, name = scenario.partition("::")
    program = "harness run" if any(mark in name for mark in ("::", "[")) else "pytest"
    return printable(f"{program} {shlex.quote(scenario)}  # {', '.join(more)}")


def trace_command(outcome: Outcome) -> str:
    """The command that shows what happened in the run; "" where its trace is not kept."""
    return trace_text(outcome.id, outcome.repeat, outcome.variant) if outcome.traced else ""


def trace_text(scenario: str, repeat: int, variant: str | None) -> str:
    """As `trace_command`, of a scenario by its id."""
    options = f" --repeat {repeat}" if repeat else ""
    options += f" --variant {shlex.quote(variant)}" if variant else ""
    return printable(f"harness trace {shlex.quote(scenario)}{options}")


def report_argument(scenarios: Path, report: Path) -> str:
    """A blank and the folder of the results, for the trace command; "" where that is the usual one."""
    usual = usual_report(scenarios)
    return "" if usual.resolve() == report.resolve() else f" {shlex.quote(shown_path(report))}"


def usual_report(scenarios: Path) -> Path:
    """The folder for results of the project that this file of scenarios belongs to."""
    from harness.settings import load_settings

    return load_settings(scenarios.parent if scenarios.exists() else None).report
