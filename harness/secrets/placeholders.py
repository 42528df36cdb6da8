"""The placeholder of a secret: `<secret:NAME>`, percent-encoded in URLs and forms.

A secret may be known while recording and not on replay: it was found later in the run, or its variable is not set
there. Its placeholder then matches any text, which is treated as a secret from then on (`match_placeholders`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

PLACEHOLDER: Final = re.compile(r"(?:<|%3[cC])secret(?::|%3[aA])([A-Za-z0-9_.-]+)(?:>|%3[eE])")
_ANYTHING: Final = r"(\S{1,4096}?)"


def placeholder(name: str) -> str:
    """Return the placeholder of a secret with this name."""
    return f"<secret:{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:100]}>"


def placeholders_in(text: str) -> set[str]:
    """Return the placeholders in a text, in the form of `placeholder`."""
    return {placeholder(name) for name in PLACEHOLDER.findall(text)}


def has_placeholder(text: str) -> bool:
    """True if the text has a placeholder."""
    return PLACEHOLDER.search(text) is not None


def quoted_placeholder(name: str) -> str:
    """Return the placeholder of a secret, percent-encoded for a URL."""
    return quote(placeholder(name), safe="")


def quoted_placeholders(text: str) -> str:
    """Percent-encode all placeholders in the text of a URL."""
    return PLACEHOLDER.sub(lambda mark: quoted_placeholder(mark.group(1)), text)


def match_placeholders(recorded: Any, asked: Any) -> dict[str, str] | None:
    """Match the placeholders in `recorded` with the texts in `asked`.

    Returns:
        The texts by the names of the placeholders; None if there are no placeholders to match, or if the two values
        differ in anything else.
    """
    found: dict[str, str] = {}
    return found if _matches(recorded, asked, found) and found else None


def _matches(recorded: Any, asked: Any, found: dict[str, str]) -> bool:
    if isinstance(recorded, str) and isinstance(asked, str):
        return recorded == asked or _text_matches(recorded, asked, found)
    if isinstance(recorded, Mapping) and isinstance(asked, Mapping):
        return recorded.keys() == asked.keys() and all(
            _matches(recorded[key], asked[key], found) for key in recorded
        )
    if isinstance(recorded, list | tuple) and isinstance(asked, list | tuple):
        return len(recorded) == len(asked) and all(
            _matches(one, other, found) for one, other in zip(recorded, asked, strict=True)
        )
    return bool(recorded == asked)


def _text_matches(recorded: str, asked: str, found: dict[str, str]) -> bool:
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
