"""Splits a multipart body into its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

_BOUNDARY: Final = re.compile(r";\s*boundary\s*=\s*(?:\"([^\"]+)\"|([^\s;]+))", re.IGNORECASE)
_FIRST_LINE: Final = re.compile(r"(?:\r?\n)*--([!-~][ -~]{0,69}?)[ \t]*\r?\n")
_HEAD: Final = re.compile(r"\r?\n((?:[^\r\n]+\r?\n)*)\r?\n")
_NAME: Final = re.compile(
    r";\s*name(?:\*\s*=\s*(?:[\w-]*'[^';]*')?([^;\s]+)|\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^;\s\"]+)))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Part:
    """A part of a multipart body, or the text before, between or after parts; then `lines` is "".

    lines  the headers as written
    body   the text after the headers
    """

    lines: str
    body: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers, by name in lower case."""
        pairs = (line.partition(":") for line in self.lines.splitlines())
        return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}

    @property
    def name(self) -> str:
        """The name of the form field; "" if the part is none."""
        found = _NAME.search(self.headers.get("content-disposition", ""))
        if found is None:
            return ""
        extended, in_quotes, bare = found.groups()
        if in_quotes is not None:
            return re.sub(r"\\(.)", r"\1", unquote(in_quotes))
        return unquote(extended) if extended else bare


def parts(text: str, content_type: str) -> list[Part]:
    """Split a body into parts. The concatenation of `lines` and `body` of all parts is the text."""
    stated = _BOUNDARY.search(content_type)
    boundary = (stated[1] or stated[2]) if stated else None
    if boundary is None:
        first = _FIRST_LINE.match(text)
        boundary = first[1] if first else None
    if boundary is None:
        return [Part("", text)]
    delimiter = re.compile(rf"((?:\A|\r?\n)--{re.escape(boundary)}(?:--)?[ \t]*(?=\r?\n|\Z))")
    found = []
    for number, piece in enumerate(delimiter.split(text)):
        head = _HEAD.match(piece) if number and number % 2 == 0 else None
        end = head.end() if head else 0
        found.append(Part(piece[:end], piece[end:]))
    return found
