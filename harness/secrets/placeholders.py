"""The placeholder of a secret: `<secret:NAME>`, percent-encoded in URLs and forms.

A secret may be known while recording and not on replay: it was found to be one later in the run, or its variable is
not set there. Its placeholder then matches any text in its place, which is a secret from there on (`revealed`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

PLACEHOLDER: Final = re.compile(r"(?:<|%3[cC])secret(?::|%3[aA])([A-Za-z0-9_.-]+)(?:>|%3[eE])")
_ANYTHING: Final = r"(\S{1,4096}?)"


def placeholder(name: str) -> str:
    """The text that replaces a secret with this name."""
    return f"<secret:{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:100]}>"


def placeholders_in(text: str) -> set[str]:
    """The placeholders in a text, each as `placeholder` writes it."""
    return {placeholder(name) for name in PLACEHOLDER.findall(text)}


def has_placeholder(text: str) -> bool:
    """True if a secret was replaced in the text."""
    return PLACEHOLDER.search(text) is not None


def quoted(name: str) -> str:
    """The placeholder as it is written in a URL."""
    return quote(placeholder(name), safe="")


def quoted_placeholders(text: str) -> str:
    """The text of a URL, its placeholders written alike however they came."""
    return PLACEHOLDER.sub(lambda mark: quoted(mark.group(1)), text)


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
    parts = PLACEHOLDER.split(recorded)
    names = parts[1::2]
    if not names:
        return False
    pattern = "".join(re.escape(part) if at % 2 == 0 else _ANYTHING for at, part in enumerate(parts))
    match = re.fullmatch(pattern, asked)
    if match is None:
        return False
    pairs = zip(names, match.groups(), strict=True)
    return all(found.setdefault(name, value) == value for name, value in pairs)
