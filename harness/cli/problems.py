"""Text and JSON forms of problems in files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click

from harness.errors import Problem
from harness.source.display import printable, render


def print_problems(problems: Iterable[Problem], *, err: bool = True) -> None:
    """Print problems, on standard error unless `err` is false."""
    for problem in problems:
        click.echo(shown(problem), err=err)


def shown(problem: Problem) -> str:
    """Return `file:line:column: error: message [code]`, the source line with a caret, and the hint.

    A note is one line.
    """
    titled = replace(problem, message=f"{problem.severity}: {problem.message} [{problem.code}]")
    return printable(titled.one_line if problem.severity == "note" else render(titled), keep_newlines=True)


def as_json(problem: Problem, file: str) -> dict[str, Any]:
    """Return {severity, code, message, hint, file, line, column}; line and column are null for a whole file."""
    span = problem.span
    return {
        "severity": problem.severity,
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
        "file": span.file if span else file,
        "line": span.line if span else None,
        "column": span.column if span else None,
    }
