"""Ask a person at the terminal when a scenario that is being recorded pauses for an answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from select import select
from typing import TYPE_CHECKING, Any

import click

from harness.source.display import printable

if TYPE_CHECKING:
    from harness.report.console import RunReporter


def terminal_asker(reporter: RunReporter) -> Callable[[str, Mapping[str, Any]], str] | None:
    """Return a function that asks at the terminal and hides the progress bar meanwhile; None without a terminal."""
    if not sys.stdin.isatty():
        return None

    def ask(node: str, args: Mapping[str, Any]) -> str:
        with reporter.suspended():
            return prompt(node, args)

    return ask


def prompt(node: str, args: Mapping[str, Any]) -> str:
    """Show a question on stderr and return the line that is read from stdin.

    Raises:
        EOFError: stdin is at its end.
    """
    question = args.get("question", args.get("value"))
    text = question if isinstance(question, str) else json.dumps(question, ensure_ascii=False, default=str)
    click.echo(f"\n{printable(node)} asks: {printable(text, keep_newlines=True)}", err=True)
    options = args.get("options")
    if options:
        click.echo(f"  one of: {', '.join(printable(str(option)) for option in options)}", err=True)
    click.echo("answer (text, or JSON): ", nl=False, err=True)
    with suppress(OSError, ValueError):
        # Wait before reading: readline holds the lock of stdin, which would delay the exit of the process.
        select([sys.stdin], [], [])
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError
    return answer.removesuffix("\n")
