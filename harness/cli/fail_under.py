"""`harness run --fail-under X`: apply the gate's rule `min_fitness` alone to the run that has just ended."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from harness.cli import exit_code

OPTION: Final = "--fail-under"


def parse_share(text: str) -> float:
    """Parse a share from 0 to 1.

    Raises:
        ValueError: the text is not one.
    """
    text = text.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError(f"'{text}' is not a number from 0 to 1") from None
    if not text.endswith("%") and 0 <= number <= 1:
        return number
    meant = f"; did you mean {number / 100:g}?" if 0 <= number <= 100 else ""
    raise ValueError(f"'{text}' is not a share from 0 to 1{meant}")


def fail_under(report: Path, bound: float, *, to_stderr: bool = False) -> int:
    """Compare the fitness of the run in a folder with `bound`, print the verdict and return the exit code.

    The run may be incomplete.

    Raises:
        FormatError: the run has no scenario that can be judged.
    """
    from harness.gate.judge import judge
    from harness.gate.policy import Policy, Rules
    from harness.gate.text import lines

    verdict = judge(report, Policy(Rules(min_fitness=bound), source=OPTION), partial=True)
    for line in lines(verdict):
        click.echo(line, err=to_stderr)
    return exit_code.OK if verdict.passed else exit_code.FAILED
