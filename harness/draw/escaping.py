"""Text of unknown origin made safe to show: on a terminal, in XML and in a mermaid label."""

from __future__ import annotations

import re
import unicodedata

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})

_MERMAID_SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")
_BETWEEN_WORDS = re.compile(r"(?<=[A-Za-z0-9])[_.\-](?=[A-Za-z0-9])")


def printable(text: str, *, keep_newlines: bool = False) -> str:
    r"""The text with nothing in it that a terminal or an XML parser would act on.

    Control characters (escape sequences among them), characters that turn the writing direction, lone
    surrogates and non-characters become visible escapes such as `\x1b`. Without `keep_newlines` line
    breaks and tabs become one space.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m b'
    """
    if text.isascii() and text.isprintable():
        return text
    if keep_newlines:
        return "\n".join(printable(line) for line in text.split("\n"))
    return "".join(_visible(character) for character in re.sub(r"[\r\n\t]+", " ", text))


def _visible(character: str) -> str:
    if unicodedata.category(character) in _UNSAFE_CATEGORIES or character in _BIDI:
        return repr(character)[1:-1] if not character.isprintable() else f"\\u{ord(character):04x}"
    return character


def clip(text: str, limit: int) -> str:
    """At most `limit` characters; a cut is shown by an ellipsis.

    >>> clip("classification", 9)
    'classifi…'
    """
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def columns(text: str) -> int:
    """How many terminal columns the text is wide."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


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
