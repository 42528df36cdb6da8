"""The frames an exception went through, and which of them are in code of the user's own.

Code is the user's own unless it stands in this package, in the standard library, or among installed packages.
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
"""So many frames of one exception are kept: the first half of them and the last, since a recursion has a thousand."""

_PACKAGE: Final = str(Path(__file__).parent.parent) + os.sep
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_COMPILED: Final = (".pyx", ".pxd", ".pxi")
"""Of these an extension module was made, which says no folder."""
_STDLIB: Final = tuple(
    path + os.sep for key in ("stdlib", "platstdlib") if (path := sysconfig.get_paths().get(key))
)


def frames(error: BaseException) -> list[dict[str, Any]]:
    """The frames of an exception and of those behind it, as JSON: the first cause first, outermost calls first.

    {file, line, function, source, raised, own}: `source` is the text of the line where the code is the user's own,
    else ""; `raised` is the exception, `Type: message`, at the frame that raised it, else "".
    """
    return [frame for one in _chain(error) for frame in _frames(one)]


def own_frames(error: BaseException) -> list[dict[str, Any]]:
    """Those frames that are in code of the user's own, without `own`."""
    return [
        {key: value for key, value in frame.items() if key != "own"}
        for frame in frames(error)
        if frame["own"]
    ]


def error_line(error: BaseException) -> str:
    """`Type: message` of an exception, as Python shows it."""
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:  # somebody else's __str__
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _chain(error: BaseException) -> list[BaseException]:
    """The exception after all that are behind it. Of a group, its first member is."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
        else:
            # `from None` hides the context for Python; a dialect that raises an error again writes it, too.
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
    """True if a source file is the user's own."""
    if (
        file.startswith(("<", _PACKAGE))
        or file.endswith(_COMPILED)
        or any(folder in file for folder in _INSTALLED)
    ):
        return False
    return not file.startswith(_STDLIB)
