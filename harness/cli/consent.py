"""Consent to calls of models, which cost money: a question at a terminal, the option `--yes` anywhere else."""

from __future__ import annotations

import sys

import click

from harness.cli.options import flag
from harness.errors import FormatError, Problem
from harness.settings import is_ci_machine

yes_option = flag(
    "--yes", help="Call models without a question; needed where there is no terminal, as on CI."
)


def may_call_models(yes: bool) -> bool:
    """Return True if `--yes` was given, or the answer at the terminal is yes. Called before the first call.

    Raises:
        FormatError: without `--yes`, there is no terminal to ask at (code `unconfirmed`).
    """
    if yes:
        return True
    if not is_at_terminal():
        text = "models would be called, which may cost money, and there is no terminal to ask at: nothing was run"
        raise FormatError(Problem("unconfirmed", text, hint="--yes goes on without a question"))
    try:
        agreed = click.confirm("go on?", err=True)
    except click.Abort:  # Ctrl-C, or the end of the input
        agreed = False
    if not agreed:
        click.echo("nothing was run", err=True)
    return agreed


def is_at_terminal() -> bool:
    """True if there is a person to ask: standard input and error are a terminal, and this is no CI machine."""
    return not is_ci_machine() and sys.stdin.isatty() and sys.stderr.isatty()
