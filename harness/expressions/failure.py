"""An evaluation that failed, while something may still absorb it.

`Failure` travels through the evaluation and is turned into an `ExpressionError` only at the top: most
failures are absorbed (by `default`, `has`, `||`, `exists`, …), and making a good message costs more than
the evaluation itself.
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
"""The names of other languages, with those of CEL."""


class Fragment(NamedTuple):
    """A part of an expression. Line and column count from 1, `start` and `end` from 0."""

    source: str
    line: int
    column: int
    start: int
    end: int

    @property
    def text(self) -> str:
        """The part's text on one line, shortened in the middle when it is long."""
        text = " ".join(self.source[self.start : self.end].split())
        return text if len(text) <= 80 else f"{text[:38]} … {text[-38:]}"


class Failure(Exception):
    """An evaluation that has no value, and the fragment that is the reason.

    `missing` and `known` serve the suggestion: the name that was looked for, and the names there are.
    """

    def __init__(
        self, message: str, fragment: Fragment, missing: object = None, known: Iterable[object] = ()
    ) -> None:
        super().__init__(message)
        self.message, self.fragment, self.missing, self.known = message, fragment, missing, known

    def error(self) -> ExpressionError:
        """The error to raise: the message with the text of the fragment and the nearest name."""
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
