"""Validates the names of cassettes: a name is a portable relative path."""

from __future__ import annotations

import re
from typing import Final

_NOT_PORTABLE: Final = re.compile(r'[<>:"\\|?*]')
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_OURS: Final = re.compile(
    r"(?:recording|take)-[0-9]+|(?:http|mcp|meta)\.yaml(?:\.new)?|cassette\.journal(?:\.new)?", re.IGNORECASE
)
_LONGEST: Final = 200


def name_error(name: str) -> str:
    """Return why a cassette cannot have this name; "" if it can.

    A name must be a portable relative path, and no part of it may be a file or folder name that cassettes use.
    """
    if not name:
        return "it is empty"
    if not name.isprintable():
        return "it contains an invisible character"
    found = _NOT_PORTABLE.search(name)
    if found:
        return f"'{found[0]}' is not allowed in file names on every system"
    return next((error for part in name.split("/") if (error := _part_error(part))), "")


def _part_error(part: str) -> str:
    if not part:
        return "it must be a relative path, such as 'weather' or 'weather/rain'"
    if part.startswith("."):
        return f"'{part}' begins with a dot"
    if part != part.strip() or part.endswith("."):
        return f"'{part}' begins or ends with a space, or ends with a dot"
    if len(part.encode()) > _LONGEST:
        return f"a part of it is longer than {_LONGEST} bytes"
    if _DEVICES.fullmatch(part):
        return f"'{part}' is a device on Windows"
    if _OURS.fullmatch(part):
        return f"'{part}' is a name that cassettes use"
    return ""
