"""The stack frames of an exception, and which of them are in user code.

Code is user code unless it is in this package, in the standard library, or in an installed package.
"""

from __future__ import annotations

import linecache
import os
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from harness.ctrl_c import is_interrupt
from harness.errors import HarnessError, ManifestError, Problem, SourceError, Span
from harness.installation import why_not_importable
from harness.source.document import shown_path

_MOST: Final = 20
"""The most frames of one exception that are kept, half from each end: a recursion has a thousand."""

_PACKAGE: Final = str(Path(__file__).parent.parent) + os.sep
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_COMPILED: Final = (".pyx", ".pxd", ".pxi")
"""Suffixes of Cython sources. Extension modules name them without a folder."""
_STDLIB: Final = tuple(
    path + os.sep for key in ("stdlib", "platstdlib") if (path := sysconfig.get_paths().get(key))
)


def frames(error: BaseException) -> list[dict[str, Any]]:
    """Return the frames of an exception and of its causes as JSON, root cause first, outermost call first.

    A frame is {file, line, function, source, raised, own}. `own` is True for user code, and `source` is then the text
    of the line, else "". `raised` is `Type: message` at the frame that raised the exception, else "".
    """
    return [frame for one in _chain(error) for frame in _frames(one)]


def own_frames(error: BaseException) -> list[dict[str, Any]]:
    """Return the frames in user code, without the key `own`."""
    return [frame for frame in frames(error) if frame.pop("own")]


def error_line(error: BaseException) -> str:
    """Return `Type: message` of an exception, as Python shows it."""
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:  # a user's __str__
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _chain(error: BaseException) -> list[BaseException]:
    """Return the exception and its causes, root cause first. The cause of a group is its first member."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
        else:
            # `from None` would hide the context, but dialects use it when they raise an error again.
            current = current.__cause__ or current.__context__
    return found[::-1]


def _frames(error: BaseException) -> list[dict[str, Any]]:
    walked = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        walked.append((error.filename, error.lineno, "<module>"))
    if len(walked) > _MOST:
        walked = [*walked[: _MOST // 2], *walked[-_MOST // 2 :]]
    found = [_frame(*place) for place in walked]
    if found:
        found[-1]["raised"] = error_line(error)
        own = [frame for frame in found if frame["own"]]
        if own:
            own[-1]["raised"] = error_line(error)
    return found


def _frame(file: str, line: int, function: str) -> dict[str, Any]:
    own = is_own(file)
    source = linecache.getline(file, line).strip() if own else ""
    place = {"file": shown_path(file), "line": line, "function": function}
    return {**place, "source": source, "raised": "", "own": own}


def is_own(file: str) -> bool:
    """True if a source file is user code."""
    foreign = file.startswith(("<", _PACKAGE, *_STDLIB)) or file.endswith(_COMPILED)
    return not foreign and not any(folder in file for folder in _INSTALLED)


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
