"""Text of unknown origin made safe to show in XML and in a mermaid label."""

from __future__ import annotations

import re

from harness.source.display import printable

_MERMAID_SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")
_BETWEEN_WORDS = re.compile(r"(?<=[A-Za-z0-9])[_.\-](?=[A-Za-z0-9])")


def xml(text: str) -> str:
    """The text for XML and HTML, in an element or in a quoted attribute; always one line."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;").replace("'", "&#39;")


def mermaid_label(text: str) -> str:
    """The text for a quoted mermaid label: punctuation as entity codes (`#34;`), shown as it was.

    `_`, `.` and `-` inside a word stay, so that names remain readable in the source.
    Source: https://mermaid.js.org/syntax/flowchart.html, "Entity codes to escape characters".
    """
    safe = printable(text)
    plain = {match.start() for match in _BETWEEN_WORDS.finditer(safe)}
    coded = _MERMAID_SPECIAL.sub(lambda m: m[0] if m.start() in plain else f"#{ord(m[0])};", safe)
    return coded.replace("#36;#36;", "#36;#8203;#36;")  # two dollar signs side by side would begin a formula
