"""What stands now where a recording has placeholders of secrets.

A secret may be known while recording and not on replay: it was found to be one later in the run, or its variable is
not set here. Its placeholder then matches whatever has its place, and that is known to be secret from there on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_PLACEHOLDER: Final = re.compile(r"<secret:([A-Za-z0-9_.-]+)>")
_ANYTHING: Final = r"(\S{1,4096}?)"


def revealed(recorded: Any, asked: Any) -> dict[str, str] | None:
    """The secrets in `asked`, by their names, where `recorded` has their placeholders.

    None when the two differ in anything else, or when no placeholder stands for anything.
    """
    found: dict[str, str] = {}
    return found if _alike(recorded, asked, found) and found else None


def _alike(recorded: Any, asked: Any, found: dict[str, str]) -> bool:
    if isinstance(recorded, str) and isinstance(asked, str):
        return recorded == asked or _text_alike(recorded, asked, found)
    if isinstance(recorded, Mapping) and isinstance(asked, Mapping):
        return recorded.keys() == asked.keys() and all(
            _alike(recorded[key], asked[key], found) for key in recorded
        )
    if isinstance(recorded, list | tuple) and isinstance(asked, list | tuple):
        return len(recorded) == len(asked) and all(
            _alike(one, other, found) for one, other in zip(recorded, asked, strict=True)
        )
    return bool(recorded == asked)


def _text_alike(recorded: str, asked: str, found: dict[str, str]) -> bool:
    parts = _PLACEHOLDER.split(recorded)
    names = parts[1::2]
    if not names:
        return False
    pattern = "".join(re.escape(part) if at % 2 == 0 else _ANYTHING for at, part in enumerate(parts))
    match = re.fullmatch(pattern, asked)
    if match is None:
        return False
    pairs = zip(names, match.groups(), strict=True)
    return all(found.setdefault(name, value) == value for name, value in pairs)
