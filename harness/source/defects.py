"""Unexpected exceptions while a file is read, as located problems of that file.

The reading of one file must not end that of the others, whatever is in it.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.ctrl_c import is_interrupt
from harness.errors import HarnessError, ManifestError, Problem, SourceError, Span
from harness.installation import why_not_importable
from harness.source.document import shown_path
from harness.source.frames import error_line


@contextmanager
def located_defects(
    path: Path,
    named_at: Span | None = None,
    *,
    error: type[SourceError] = ManifestError,
    broken: Problem | None = None,
) -> Iterator[None]:
    """Raise any exception in the block but a `SourceError` as the problem of a file.

    Args:
        path: the file that is read.
        named_at: the location that names the file. Without it, the problem is at the start of the file.
        error: the class of the error to raise.
        broken: what is to blame for an exception; None for the harness. The exception is added to its message.

    Raises:
        error: the block raised an exception.
    """
    try:
        yield
    except SourceError:
        raise
    except Exception as raised:
        if is_interrupt(raised):
            raise
        place = named_at or Span(shown_path(path), 1, 1)
        raise error(_problem(raised, path, place, broken)) from raised


def _problem(raised: Exception, path: Path, place: Span, broken: Problem | None) -> Problem:
    if broken is not None:
        text = f"{broken.message} on {shown_path(path)}: {_with_line(raised)}"
        return Problem(broken.code, text, place, broken.hint)
    if isinstance(raised, HarnessError):
        return Problem(raised.code, str(raised), getattr(raised, "span", None) or place)
    if isinstance(raised, OSError):
        file = shown_path(raised.filename) if isinstance(raised.filename, str) else shown_path(path)
        return Problem("unreadable-file", f"{file}: cannot be read: {raised.strerror or raised}", place)
    if isinstance(raised, ImportError) and (why := why_not_importable(raised)):
        return Problem("harness-broke", why, place)
    text = f"{shown_path(path)} could not be read: {_with_line(raised)}"
    return Problem("harness-broke", text, place, "this is a defect of the harness: report it with the file")


def _with_line(raised: Exception) -> str:
    """Return the exception as Python shows it, with the line of code that raised it."""
    frame = traceback.extract_tb(raised.__traceback__)[-1]
    return f"{error_line(raised)} ({Path(frame.filename).name}:{frame.lineno})"
