"""Escape untrusted text for XML and for mermaid labels."""

from __future__ import annotations

import re

from harness.source.display import printable

_MERMAID_SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")
_BETWEEN_WORDS = re.compile(r"(?<=[A-Za-z0-9])[_.\-](?=[A-Za-z0-9])")


def xml(text: str) -> str:
    """Escape text for an XML or HTML element or quoted attribute. The result is always one line."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;").replace("'", "&#39;")


def mermaid_label(text: str) -> str:
    """Escape text for a quoted mermaid label: punctuation becomes entity codes such as `#34;`.

    `_`, `.` and `-` inside a word stay, so that names remain readable in the source.
    Source: https://mermaid.js.org/syntax/flowchart.html, "Entity codes to escape characters".
    """
    safe = printable(text)
    plain = {match.start() for match in _BETWEEN_WORDS.finditer(safe)}
    coded = _MERMAID_SPECIAL.sub(lambda m: m[0] if m.start() in plain else f"#{ord(m[0])};", safe)
    return coded.replace("#36;#36;", "#36;#8203;#36;")  # two adjacent dollar signs would begin a formula
