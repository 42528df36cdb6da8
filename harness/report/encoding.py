"""Encode values as strict JSON in valid UTF-8, which every parser accepts.

orjson is twenty times as fast as json, but encodes some values differently (NaN as null, some objects in its own
way). It is used only for data without such values. marshal tells: it refuses objects other than Python's built-in
types, and a NaN or an infinity can be recognised in its output.
"""

from __future__ import annotations

import json
import marshal
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from harness.errors import FormatError, Problem
from harness.graph.to_json import to_json

_SETTINGS: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "default": to_json}
_compact = json.JSONEncoder(**_SETTINGS, separators=(",", ":")).encode
_indented = json.JSONEncoder(**_SETTINGS, indent=2).encode
_NOT_FINITE: Final = re.compile(rb"[\xf0-\xff][\x7f\xff]")
"""The last bytes of an infinity or a NaN in the output of marshal. Other values may match by chance."""


def encode(data: Any, *, indented: bool = False) -> str:
    """Return any value as JSON text. Values that are not JSON are converted by `to_json`; keys keep their order.

    Lone surrogates become visible escapes.
    """
    if not indented and (text := _encode_fast(data)) is not None:
        return text
    encoder = _indented if indented else _compact
    try:
        text = encoder(data)
        text.encode()
    except (TypeError, ValueError, RecursionError):  # rare, so the whole value is converted only now
        strict = _to_strict(to_json(data))
        # Prefer orjson, so that reading the text and encoding it again yields the same digits of every number.
        return (None if indented else _encode_fast(strict)) or encoder(strict)
    return text


def encode_each(values: Sequence[Any]) -> list[str]:
    """Return the JSON text of each value, as by `encode`. Faster for many small values: they are checked together."""
    if _is_plain(values):
        with suppress(TypeError):
            return [orjson.dumps(value).decode() for value in values]
    return [encode(value) for value in values]


def fits(data: Any, length: int) -> bool:
    """True if the JSON text has at most `length` characters. False if that is costly to find out."""
    try:
        return len(orjson.dumps(data)) <= length  # its length in bytes is at least that in characters
    except TypeError:
        return False


def _encode_fast(data: Any) -> str | None:
    """Return the JSON text by orjson; None for data that it refuses or would encode differently from json.

    orjson refuses keys that are not strings, integers of more than 64 bits, lone surrogates, and deep nesting.
    """
    if _is_plain(data):
        with suppress(TypeError):
            return orjson.dumps(data).decode()
    return None


def _is_plain(data: Any) -> bool:
    """True if the data consists of Python's built-in types only, without infinity and NaN."""
    try:
        plain = marshal.dumps(data)
    except ValueError:
        return False
    return not (b"\x7f" in plain or b"\xff" in plain) or _NOT_FINITE.search(plain) is None


def _to_strict(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_to_strict(key): _to_strict(item) for key, item in value.items()}
    return [_to_strict(item) for item in value] if isinstance(value, list) else value


def replace(path: Path, content: bytes) -> None:
    """Write a file atomically, in a folder that need not exist.

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
        path.parent.mkdir(parents=True, exist_ok=True)
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
