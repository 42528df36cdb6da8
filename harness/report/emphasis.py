"""The weight and colours of a failure's text on a terminal: its heading, and what was expected and what was found.

The text itself is plain, since files and other processes get it as well. Styles are words that both rich and pytest's
terminal writer know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from harness.report.formatting import wrapped_lines

Part = tuple[str, str]
"""A piece of a line, and its style: words such as `bold red`, or ""."""

_STYLES: Final = {"heading": "bold", "expected": "green", "actual": "bold red"}
_TEXT: Final = r"'(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\""
_EMPHASISED: Final = (
    re.compile(r"(?P<heading>\S.*)"),
    re.compile(r" +expected: +(?P<expected>.*)"),
    re.compile(r" +actual: +(?P<actual>.*)"),
    re.compile(
        rf" .*?\bexpected (?P<expected>{_TEXT}|.*?), was (?P<actual>{_TEXT}|\w+(?=: )|.*?(?= \(|$)).*"
    ),
)
"""The lines with emphasised parts: values end at a reason in parentheses or after a colon."""


def emphasised(text: str, width: int | None) -> Iterator[list[Part]]:
    """Yield the lines of a `failure_text`, wrapped to the width (None: not wrapped), each as its parts."""
    for line, pieces in wrapped_lines(text, width):
        found = next(filter(None, (pattern.fullmatch(line) for pattern in _EMPHASISED)), None)
        spans = [(*found.span(name), _STYLES[name]) for name in found.groupdict()] if found else []
        end = 0
        for piece in pieces:
            words = piece.lstrip(" ")
            start = max(line.find(words, end), end)
            end = start + len(words)
            yield [part for part in _parts(piece, start - (len(piece) - len(words)), spans) if part[0]]


def _parts(piece: str, start: int, spans: Sequence[tuple[int, int, str]]) -> Iterator[Part]:
    """Yield the parts of a piece. `start` is the position of its first character in the line that has the spans."""
    at = 0
    for *ends, style in spans:
        begin, end = (min(max(each - start, at), len(piece)) for each in ends)
        yield piece[at:begin], ""
        yield piece[begin:end], style
        at = end
    yield piece[at:], ""
