"""What stands where a secret stood: `<secret:NAME>`, in URLs and forms percent-encoded."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

PLACEHOLDER: Final = re.compile(r"(?:<|%3[cC])secret(?::|%3[aA])([A-Za-z0-9_.-]+)(?:>|%3[eE])")


def placeholder(name: str) -> str:
    """What stands where a secret with this name stood."""
    return f"<secret:{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:100]}>"


def has_placeholder(text: str) -> bool:
    """Whether a secret stood in the text."""
    return PLACEHOLDER.search(text) is not None


def quoted(name: str) -> str:
    """The placeholder as it stands in a URL."""
    return quote(placeholder(name), safe="")


def quoted_placeholders(text: str) -> str:
    """The text of a URL, its placeholders written alike however they came."""
    return PLACEHOLDER.sub(lambda mark: quoted(mark.group(1)), text)
