"""`Failure`, the exception that CEL evaluation uses internally.

A `Failure` is turned into an `ExpressionError` only where it leaves the evaluation. Most failures are absorbed before
that (by `default`, `has`, `||`, `exists`, …), and building a good message costs more than the evaluation itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, NamedTuple

from harness.errors import ExpressionError

LITERALS: Final = ("true", "false", "null")
_OTHER_LANGUAGES: Final = {
    "True": "true",
    "False": "false",
    "None": "null",
    "any": "exists",
    "endswith": "endsWith",
    "find": "indexOf",
    "float": "double",
    "includes": "contains",
    "len": "size",
    "length": "size",
    "lower": "lowerAscii",
    "startswith": "startsWith",
    "str": "string",
    "strip": "trim",
    "toLowerCase": "lowerAscii",
    "toString": "string",
    "toUpperCase": "upperAscii",
    "upper": "upperAscii",
}
"""Names that other languages use, mapped to those of CEL."""


class Fragment(NamedTuple):
    """A part of an expression. `line` and `column` are 1-based; `start` and `end` are 0-based character offsets."""

    source: str
    line: int
    column: int
    start: int
    end: int

    @property
    def text(self) -> str:
        """The source of the fragment on one line, with the middle left out if it is long."""
        text = " ".join(self.source[self.start : self.end].split())
        return text if len(text) <= 80 else f"{text[:38]} … {text[-38:]}"


class Failure(Exception):
    """An evaluation without a value, and the fragment that caused it.

    `missing` and `known` are used for the suggestion: the name that was not found, and the names that exist.
    """

    def __init__(
        self, message: str, fragment: Fragment, missing: object = None, known: Iterable[object] = ()
    ) -> None:
        super().__init__(message)
        self.message, self.fragment, self.missing, self.known = message, fragment, missing, known

    def error(self) -> ExpressionError:
        """Return the error to raise: the message, the source of the fragment, and the nearest known name."""
        text = self.fragment.text
        message = self.message if text in self.message else f"{self.message} in {text}"
        return ExpressionError(
            message + self._suggestion(),
            source=self.fragment.source,
            line=self.fragment.line,
            column=self.fragment.column,
        )

    def _suggestion(self) -> str:
        if not isinstance(self.missing, str):
            return ""
        names = [name for name in self.known if isinstance(name, str)]
        meant = _OTHER_LANGUAGES.get(self.missing)
        if meant in names:
            return f" (did you mean {meant!r}?)"
        close = get_close_matches(self.missing, names, n=1)
        return f" (did you mean {close[0]!r}?)" if close else ""
