"""Wrap text to the width of a terminal, between words; shorten names at their beginning."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Final

from harness.source.display import cut_around

_CARET: Final = re.compile(r"(\s*)(\^~*)")
_COMMANDS: Final = ("  rerun ", "  trace ")
_FURTHER: Final = 2
"""Additional indentation of continuation lines."""
_LAST_PART: Final = re.compile(r"(?<=::)|(?<=[/\s])")


def wrapped(text: str, width: int | None) -> str:
    """Wrap text to lines of at most `width` characters; None returns it unchanged.

    Words are never broken: one that is too long exceeds the width. A source line with a caret below it is cut around
    the caret. Commands to be copied (`rerun`, `trace`) are left as they are.
    """
    return text if width is None else "\n".join(_wrapped(text.split("\n"), width))


def _wrapped(lines: list[str], width: int) -> Iterator[str]:
    skip = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        caret = _CARET.fullmatch(following)
        if skip:
            skip = False
        elif (len(line) <= width and len(following if caret else "") <= width) or line.startswith(_COMMANDS):
            yield line
        elif caret:
            indent = re.match(r" *", line)
            blanks = min(len(indent[0]) if indent else 0, 4)
            source, start, end = cut_around(
                line[blanks:], len(caret[1]) - blanks, caret.end() - blanks, width - blanks - 1
            )
            yield " " * blanks + source.rstrip()
            yield " " * (blanks + start) + "^" + "~" * (end - start - 1)
            skip = True
        else:
            yield from hanging(line, width)


def hanging(line: str, width: int) -> list[str]:
    """Wrap one line between words, with continuation lines indented a little more."""
    own = len(line) - len(line.lstrip(" "))
    return textwrap.wrap(
        line[own:],
        width,
        initial_indent=line[:own],
        subsequent_indent=" " * min(own + _FURTHER, width // 2),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    ) or [""]


def keep_end(name: str, width: int) -> str:
    """Return the end of a name that is longer than `width`, from the beginning of a word where possible.

    >>> keep_end("triage.scenario.yaml::a double charge goes to billing", 30)
    '…charge goes to billing'
    >>> keep_end("triage.scenario.yaml::pays", 12)
    '….yaml::pays'
    """
    if len(name) <= width:
        return name
    tail = name[len(name) - max(width - 1, 1) :]
    begins = [found.start() for found in _LAST_PART.finditer(tail) if found.start() > 0]
    at = begins[0] if begins and begins[0] <= len(tail) // 2 else 0
    return "…" + tail[at:]
