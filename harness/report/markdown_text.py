"""Escape text for GitHub-flavoured Markdown, so that it shows literally: no markup, HTML, links or mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from harness.source.display import clip, printable

_HTML: Final = re.compile(r"[<>&]")
_ENTITIES: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_SPECIAL: Final = re.compile(
    r"[\\`*\[\]|~$]"
    r"|(?<![a-z0-9])_|_(?![a-z0-9])"  # an underscore inside a word is no markup
    r"|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.",  # GitHub turns these into links
    re.IGNORECASE,
)
_FIRST: Final = re.compile(r"\A(\d*)([.)](?=\s|\Z)|#(?=[#\s]|\Z)|[-+](?=[-\s]|\Z))")
"""Starts of lines that make a list or a heading."""
_REFERENCE: Final = re.compile(r"@|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
"""Mentions (`@name`) and references to issues (`#12`, `GH-12`)."""
_NOTHING: Final = "&#8203;"
"""A zero-width space, in the form that GitHub's own bots use."""
_MAX_NAME: Final = 300
_MAX_NAMES: Final = 30
_MAX_PAGE: Final = 60_000


def escape(text: str) -> str:
    r"""Escape prose so that Markdown shows it literally, on one line, also in a table cell.

    >>> escape("a|b <i> never_calls __init__")
    'a\\|b &lt;i&gt; never_calls \\_\\_init\\_\\_'
    >>> escape("@octocat broke #12")
    '@&#8203;octocat broke #&#8203;12'
    """
    return _REFERENCE.sub(lambda found: found[0] + _NOTHING, _FIRST.sub(r"\1\\\2", _literal(text)))


def code(text: str) -> str:
    r"""Format a name as inline code on one line, also in a table cell. Copying yields the name; it mentions nobody.

    >>> code("a.scenario.yaml::@octocat broke #12"), code("a|b `c`")
    ('`a.scenario.yaml::@octocat broke #12`', '<code>a\\|b \\`c\\`</code>')
    """
    name = clip(printable(text), _MAX_NAME)
    plain = name.strip() == name != "" and not {"`", "|"} & set(name)
    return f"`{name}`" if plain else f"<code>{_literal(name)}</code>"


def _literal(text: str) -> str:
    safe = _HTML.sub(lambda found: _ENTITIES[found[0]], printable(text))
    return _SPECIAL.sub(lambda found: "\\" + found[0], safe)


def listed(items: Iterable[str], most: int = _MAX_NAMES, left_out: int = 0) -> str:
    """Join at most `most` items, and append the number of the others plus `left_out`."""
    rest = iter(items)
    shown = [*islice(rest, most)]
    left = sum(1 for _ in rest) + left_out
    return ", ".join([*shown, *([f"… and {left} more"] if left else [])])


def bounded(page: str) -> str:
    """Return the page cut to the length of a GitHub comment, at the end of a line and with a note."""
    if len(page) <= _MAX_PAGE:
        return page
    return page[: page.rindex("\n", 0, _MAX_PAGE)] + "\n\nThe rest is in report.html and summary.json.\n"
