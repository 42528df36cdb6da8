"""The parser that the two expression languages of a mesh file share: conditions and `wait_for`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from lark import Lark, Transformer
from lark.exceptions import UnexpectedInput, UnexpectedToken

from harness.errors import HarnessError

MAX_LENGTH: Final = 10_000
MAX_DEPTH: Final = 50
MAX_SHOWN: Final = 200
"""The most characters of an expression that an error shows."""

_BRACKETS: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?P<open>\()|(?P<close>\))""")
_WORD: Final = re.compile(r"[\w.]+|[=!<>]+|&+|\|+|\S")


class LanguageError(HarnessError):
    """A syntax error. `offset` is the index of the character in the text."""

    code = "syntax"

    def __init__(self, message: str, offset: int = 0) -> None:
        self.message, self.offset = message, offset
        super().__init__(message)


class Language:
    """A grammar with a transformer from its parse tree to values.

    `advice` maps words of other languages to the hint shown for them.
    """

    def __init__(self, grammar: str, transformer: Transformer[Any, Any], advice: Mapping[str, str]) -> None:
        self._advice = advice
        self._parser = Lark(grammar, parser="lalr", transformer=transformer)

    def parse(self, text: str) -> Any:
        """Parse a text into its value.

        Raises:
            LanguageError: a syntax error; the text is longer than 10,000 characters, or nested deeper than 50.
        """
        if len(text) > MAX_LENGTH:
            raise LanguageError(f"it is too long ({len(text)} characters; {MAX_LENGTH} are the most)")
        _check_depth(text)
        try:
            return self._parser.parse(text)
        except UnexpectedInput as error:
            _refuse(text, error, self._advice)


def _check_depth(text: str) -> None:
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        if bracket.lastgroup:
            depth += 1 if bracket.lastgroup == "open" else -1
            if depth > MAX_DEPTH:
                raise LanguageError("it is nested too deeply", bracket.start())


def _refuse(text: str, error: UnexpectedInput, advice: Mapping[str, str]) -> NoReturn:
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if ended or error.pos_in_stream is None:
        raise LanguageError("it ends too early" if text.strip() else "it is empty", len(text)) from None
    at = error.pos_in_stream
    found = _WORD.match(text, at)
    word = found.group() if found else text[at : at + 1]
    if word in ("'", '"'):
        raise LanguageError("a string is not closed", at) from None
    instead = f" ({advice[word]})" if word in advice else ""
    raise LanguageError(f"unexpected '{word}'{instead}", at) from None
