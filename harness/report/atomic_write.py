"""Write files of a report atomically: readers see the old or the new content, never a part."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem


def replace(path: Path, content: bytes) -> None:
    """Write a file atomically.

    Raises:
        FormatError: it cannot be written (code `report-folder`).
    """
    replace_in_chunks(path, [content])


def replace_in_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file atomically, from chunks that need not fit into memory together.

    Raises:
        FormatError: it cannot be written (code `report-folder`).
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "wb") as file:
                file.writelines(chunks)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise unwritable(path, error) from error


_ANOTHER: Final = "name a folder that can be written: --report DIR, or --harness-report DIR with pytest"


def unwritable(path: Path, error: OSError, hint: str = _ANOTHER) -> FormatError:
    """Return the error for a report folder or file that cannot be written (code `report-folder`)."""
    why = error.strerror or str(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        file = next((at for at in (path, *path.parents) if at.is_file()), path)
        why = f"{file} is a file, not a folder"
    return FormatError(Problem("report-folder", f"cannot write the report {path}: {why}", hint=hint))
