"""The stack frames of an exception, and which of them are in user code.

Code is user code unless it is in this package, in the standard library, or in an installed package.
"""

from __future__ import annotations

import linecache
import os
import sysconfig
import traceback
from pathlib import Path
from typing import Any, Final

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
    return [
        {key: value for key, value in frame.items() if key != "own"}
        for frame in frames(error)
        if frame["own"]
    ]


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
    return {
        "file": shown_path(file),
        "line": line,
        "function": function,
        "source": source,
        "raised": "",
        "own": own,
    }


def is_own(file: str) -> bool:
    """True if a source file is user code."""
    if (
        file.startswith(("<", _PACKAGE))
        or file.endswith(_COMPILED)
        or any(folder in file for folder in _INSTALLED)
    ):
        return False
    return not file.startswith(_STDLIB)
