"""The text at the location of a problem."""

from __future__ import annotations

from pathlib import Path

from harness.errors import Problem


def text_at(problem: Problem) -> str:
    """Return the text at the location of a problem, up to the end of its line."""
    assert problem.span is not None
    line = Path(problem.span.file).read_text(encoding="utf-8").splitlines()[problem.span.line - 1]
    start = problem.span.column - 1
    return line[start : start + problem.span.length]
