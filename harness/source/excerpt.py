"""Rendering of problems as text: the message, the source line, and a caret under the span."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Final

from harness.errors import Problem, Span
from harness.source.display import columns
from harness.source.location import line, split_lines

_INDENT: Final = "    "
_WIDTH: Final = 100
_BEFORE: Final = 40
_LARGEST: Final = 20_000_000
"""The size in bytes of the largest file whose lines are shown."""


def render(problem: Problem, text: str | None = None) -> str:
    """Render a problem: `file:line:column: message`, the source line with its caret, and the hint.

    `text` is the text of the file. Without it the file is read; if that fails, the line is left out.
    """
    prefix = f"{problem.span}: " if problem.span else ""
    parts = [f"{prefix}{problem.message}"]
    shown = excerpt(problem.span, text) if problem.span else ""
    if shown:
        parts.append(shown)
    if problem.hint:
        parts.append(_INDENT + problem.hint)
    return "\n".join(parts)


def excerpt(span: Span, text: str | None = None) -> str:
    """Return the line of `span`, indented, with `^~~~` under the span; "" if the line is empty or does not exist.

    Long lines are cut around the span. Control characters are shown as `·`.
    """
    source = _line_of(span) if text is None else line(text, span.line)
    if source is None or not source.strip():
        return ""
    start = min(max(span.column - 1, 0), len(source))
    end = min(start + max(span.length, 1), max(len(source), start + 1))
    source, start, end = cut_around(source, start, end)
    source = "".join(c if c.isprintable() or c == "\t" else "·" for c in source)
    before = "".join("\t" if c == "\t" else " " * columns(c) for c in source[:start])
    marked = columns(source[start:end]) or 1
    return f"{_INDENT}{source.rstrip()}\n{_INDENT}{before}^{'~' * (marked - 1)}"


def cut_around(source: str, start: int, end: int, width: int = _WIDTH) -> tuple[str, int, int]:
    """Cut a line to about `width` characters around the part from `start` to `end`; return it and the new offsets."""
    if len(source) <= width:
        return source, start, end
    before = min(_BEFORE, width // 2)
    first = max(0, start - before) if start > width - before else 0
    last = min(len(source), first + width)
    head, tail = "…" if first else "", "…" if last < len(source) else ""
    shift = len(head) - first
    return head + source[first:last] + tail, start + shift, min(end, last) + shift


def _line_of(span: Span) -> str | None:
    try:
        path = Path(span.file)
        folder = os.path.join(os.path.realpath(path.parent), "")
        if path.is_symlink() and not os.path.realpath(path).startswith(folder):
            return None  # a link in a stranger's project may lead to a private file
        found = path.stat()
        if not S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            return None
        lines = _lines(path.absolute(), found.st_mtime_ns, found.st_size)
    except (OSError, ValueError):
        return None
    return lines[span.line - 1] if 0 < span.line <= len(lines) else None


@lru_cache(maxsize=8)
def _lines(path: Path, _modified_ns: int, _size: int) -> list[str]:
    """Return the lines of a file. Cached, as a file with one problem often has many."""
    return split_lines(path.read_text(encoding="utf-8-sig"))
