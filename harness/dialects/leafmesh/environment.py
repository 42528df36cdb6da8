"""`${VAR}` and `${VAR:default}`, replaced in the text of a mesh file before it is parsed. NOTES 1.1."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml as pyyaml

from harness.errors import Problem
from harness.source.document import Document
from harness.source.location import Lines
from harness.source.rewriting import Replacement, Rewritten

_REFERENCE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<colon>:(?P<default>[^}\r\n]*))?\}")
_LOADER: Final[Any] = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)


class Environment:
    """The variables that a mesh file may use; nothing else is looked up."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._missing: dict[str, tuple[int, int]] = {}  # where each is first used

    def rewrite(self, text: str) -> Rewritten:
        """The text with each variable replaced by its value or its default, else by nothing. Comments stay."""
        return Rewritten(
            text,
            [Replacement(found.start(), found.end(), self._value(found)) for found in _references(text)],
        )

    def _value(self, found: re.Match[str]) -> str:
        name = found["name"]
        if name in self._values:
            return self._values[name]
        if found["colon"] is None:
            self._missing.setdefault(name, found.span())
        return found["default"] or ""

    def warnings(self, document: Document) -> Iterator[Problem]:
        """A warning for each variable, at its first use, that has neither a value nor a default in the document."""
        lines = Lines(document.text)
        hint = "give it a value under 'env' in the scenario, or a default: ${NAME:default}"
        for name, (start, end) in self._missing.items():
            text = f"the environment variable {name} is not set: it is empty"
            yield Problem("missing-variable", text, lines.span(document.file, start, end), hint, "warning")


def masked(text: str) -> Rewritten:
    """The text with letters for each variable: its structure, whatever the variables may be."""
    return Rewritten(
        text, [Replacement(*found.span(), "x" * len(found[0])) for found in _REFERENCE.finditer(text)]
    )


def _references(text: str) -> Iterator[re.Match[str]]:
    """The variables that do not stand in comments."""
    tokens: Sequence[tuple[int, int]] | None = None
    for found in _REFERENCE.finditer(text):
        start = found.start()
        if "#" in text[text.rfind("\n", 0, start) + 1 : start]:  # else it is in no comment
            tokens = _tokens(masked(text).text) if tokens is None else tokens
            at = bisect_right(tokens, (start, len(text))) - 1
            if at < 0 or start >= tokens[at][1]:
                continue
        yield found


def _tokens(text: str) -> list[tuple[int, int]]:
    """Where the tokens of a YAML text are, in order. What cannot be read is one token to the end."""
    tokens = [(0, 0)]
    try:
        for token in pyyaml.scan(text, Loader=_LOADER):
            start, end = token.start_mark.index, token.end_mark.index
            if getattr(token, "style", None) in ("|", ">"):  # a comment may stand in its first line
                start = max(text.find("\n", start, end), start)
            tokens.append((start, end))
    except pyyaml.YAMLError:
        tokens.append((tokens[-1][1], len(text)))
    return tokens
