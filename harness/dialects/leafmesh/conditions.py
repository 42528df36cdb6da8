"""Conditions of `can_call` entries and of entry points. spec: "Condition Syntax"; NOTES 5.

A condition is evaluated on a mapping: the output of the calling agent, or the input of an entry point. It is
parsed once, when the mesh is loaded, and never evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple, NoReturn

from lark import Lark, Transformer, v_args
from lark.exceptions import UnexpectedInput, UnexpectedToken

from harness.errors import HarnessError
from harness.graph.events import AllOf, AnyOf, Member, Requirement
from harness.source.display import clip
from harness.units import is_number

MAX_LENGTH: Final = 10_000
MAX_DEPTH: Final = 50
MAX_SHOWN: Final = 200
"""The most characters of an expression that an error shows."""

_BRACKETS: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?P<open>\()|(?P<close>\))""")
_WORD: Final = re.compile(r"[\w.]+|[=!<>]+|&+|\|+|\S")


class LanguageError(HarnessError):
    """A syntax error. `offset` is the index of the character in the text."""

    code = "syntax"

    def __init__(self, message: str, offset: int) -> None:
        self.offset = offset
        super().__init__(message)


class Language:
    """A grammar with a transformer from its parse tree to values.

    `what` names a text in it; `advice` maps words of other languages to the hint shown for them.
    """

    def __init__(
        self, what: str, grammar: str, transformer: Transformer[Any, Any], advice: Mapping[str, str]
    ) -> None:
        self._what, self._advice = what, advice
        self._parser = Lark(grammar, parser="lalr", transformer=transformer)

    def parse(self, text: str) -> Any:
        """Parse a text into its value.

        Raises:
            LanguageError: a syntax error; the text is longer than 10,000 characters, or nested deeper than 50.
        """
        if len(text) > MAX_LENGTH:
            self._refuse(text, f"it is too long ({len(text)} characters; {MAX_LENGTH} are the most)", 0)
        depth = 0
        for bracket in _BRACKETS.finditer(text):
            depth += {"open": 1, "close": -1}.get(bracket.lastgroup or "", 0)
            if depth > MAX_DEPTH:
                self._refuse(text, "it is nested too deeply", bracket.start())
        try:
            return self._parser.parse(text)
        except UnexpectedInput as error:
            self._refuse(text, *self._reason(text, error))

    def _refuse(self, text: str, why: str, offset: int) -> NoReturn:
        shown = clip(text, MAX_SHOWN)
        raise LanguageError(f"the {self._what} `{shown}` cannot be read: {why}", offset) from None

    def _reason(self, text: str, error: UnexpectedInput) -> tuple[str, int]:
        """Return why a text cannot be parsed, and the offset of the character."""
        at = error.pos_in_stream
        if at is None or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
            return "it ends too early" if text.strip() else "it is empty", len(text)
        found = _WORD.match(text, at)
        word = found.group() if found else text[at : at + 1]
        if word in ("'", '"'):
            return "a string is not closed", at
        return f"unexpected '{word}'" + (f" ({self._advice[word]})" if word in self._advice else ""), at


OUTPUT: Final = "calling_agent_response"
INPUT: Final = "input_data"
"""Names of the whole mapping: `OUTPUT` in every condition, `INPUT` also in the condition of an entry point."""

Evaluate = Callable[[Mapping[str, Any]], Any]

_GRAMMAR: Final = r"""
    ?start: or_
    ?or_: and_ (_OR and_)*
    ?and_: not_ (_AND not_)*
    ?not_: negation | comparison
    negation: _NOT not_
    ?comparison: value | value OPERATOR value -> compared
    ?value: "(" or_ ")" | STRING -> text | NUMBER -> number | PATH -> path

    _OR: /or\b/
    _AND: /and\b/
    _NOT: /not\b/
    OPERATOR: "==" | "!=" | "<=" | ">=" | "<" | ">"
    STRING: /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"/
    NUMBER: /-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])/
    PATH: /(?!(?:or|and|not)\b)[^\W\d]\w*(?:\.[^\W\d]\w*)*/
    %import common.WS
    %ignore WS
"""

_ADVICE: Final = {
    "=": "equality is ==",
    **dict.fromkeys(("&", "&&", "AND", "And"), "write `and`"),
    **dict.fromkeys(("|", "||", "OR", "Or"), "write `or`"),
    "!": "write `not`",
    "in": "compare with each value: `x == 1 or x == 2`",
    "not": "compare with each value: `x != 1 and x != 2`",
    "is": "write `==`",
    "(": "there are no functions",
    "{": "a field is named without braces",
    **dict.fromkeys(("<", ">", "<=", ">=", "==", "!="), "one comparison at a time: `0 < x and x < 5`"),
    **dict.fromkeys(("+", "-", "*", "/", "%"), "there is no arithmetic"),
    "[": "an empty list is false: `not x`; a field is named after a dot: `calling_agent_response.field`",
}
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None, "none": None}
_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"<": lt, ">": gt, "<=": le, ">=": ge}


class Comparison(NamedTuple):
    """A comparison of the field at `path` with a value that is written in the condition."""

    path: tuple[str, ...]
    sign: str
    value: Any


@dataclass(frozen=True)
class Condition:
    """A parsed condition.

    text   its source text; None if it always holds
    paths  the fields it reads, as keys
    words  single-word fields that another field is compared with, which may be texts without their quotes
    tests  its comparisons of a field with a value
    """

    text: str | None
    paths: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    tests: tuple[Comparison, ...]
    _evaluate: Evaluate

    def holds(self, values: Mapping[str, Any]) -> bool:
        """True if the condition holds for this output or input. Never raises: a missing field is null."""
        return bool(self._evaluate(values))


def parse(written: str | bool, *, of_input: bool = False) -> Condition:
    """Parse a condition of a mesh file.

    With `of_input` it is the condition of an entry point, on its input; else of a `can_call` entry, on an
    output.

    Raises:
        LanguageError: the text is not a condition.
    """
    text = ("true" if written else "false") if isinstance(written, bool) else written.strip()
    return _parse(text, of_input)


@cache
def _parse(text: str, of_input: bool) -> Condition:
    if text.lower() in ("true", "always"):
        return Condition(None, (), (), (), lambda _values: True)
    part: _Part = _language(of_input).parse(text)
    return Condition(text, tuple(dict.fromkeys(part.paths)), part.words, part.tests, part.value)


def compare(left: Any, sign: str, right: Any) -> bool:
    """Compare two values without conversion: a boolean is no number, and values without an order give False."""
    if sign in ("==", "!="):
        return strictly_equal(left, right) == (sign == "==")
    if not (is_number(left) and is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        return False
    return _ORDERS[sign](left, right)


def strictly_equal(left: Any, right: Any) -> bool:
    """True if two values are equal, without type conversion at any depth."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(strictly_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(strictly_equal, left, right))
    return bool(left == right)


class _Part(NamedTuple):
    """A compiled part of a condition.

    paths  the fields it reads
    words  single-word fields that it compares with
    tests  its comparisons of a field with a value
    word   the part itself, if it is such a field
    """

    value: Evaluate
    paths: tuple[tuple[str, ...], ...] = ()
    words: tuple[str, ...] = ()
    tests: tuple[Comparison, ...] = ()
    word: str | None = None


def _constant(value: Any) -> _Part:
    return _Part(lambda _values: value)


def _lookup(values: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


@v_args(inline=True)
class _Parts(Transformer[Any, Any]):
    """Compiles the parse tree of a condition, bottom up. `roots` are the names of the whole mapping."""

    def __init__(self, roots: Collection[str]) -> None:
        super().__init__()
        self._roots = roots

    def text(self, token: str) -> _Part:
        return _constant(_ESCAPED.sub(r"\1", token[1:-1]))

    def number(self, token: str) -> _Part:
        return _constant(float(token) if set(token) & set(".eE") else int(token))

    def path(self, token: str) -> _Part:
        if token.lower() in _WORDS:
            return _constant(_WORDS[token.lower()])
        first, *rest = token.split(".")
        keys = tuple(rest if first in self._roots else (first, *rest))
        word = first if not rest and keys else None
        return _Part(lambda values: _lookup(values, keys), (keys,) if keys else (), word=word)

    def compared(self, left: _Part, sign: str, right: _Part) -> _Part:
        sign = str(sign)
        tests = left.tests + right.tests
        for field, other in ((left, right), (right, left)):
            if len(field.paths) == 1 and not other.paths:
                tests += (Comparison(field.paths[0], sign, other.value({})),)
        return _Part(
            lambda values: compare(left.value(values), sign, right.value(values)),
            left.paths + right.paths,
            (*left.words, *right.words, *([right.word] if right.word and left.paths else [])),
            tests,
        )

    def negation(self, part: _Part) -> _Part:
        return _Part(lambda values: not part.value(values), part.paths, part.words, part.tests)

    def and_(self, *parts: _Part) -> _Part:
        return _Part(lambda values: all(part.value(values) for part in parts), *_merged_reads(parts))

    def or_(self, *parts: _Part) -> _Part:
        return _Part(lambda values: any(part.value(values) for part in parts), *_merged_reads(parts))


def _merged_reads(
    parts: tuple[_Part, ...],
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...], tuple[Comparison, ...]]:
    """Concatenate the paths, the words and the comparisons of several parts."""
    return (
        tuple(chain(*(part.paths for part in parts))),
        tuple(chain(*(part.words for part in parts))),
        tuple(chain(*(part.tests for part in parts))),
    )


@cache
def _language(of_input: bool) -> Language:
    return Language("condition", _GRAMMAR, _Parts((OUTPUT, INPUT) if of_input else (OUTPUT,)), _ADVICE)


_WAIT_FOR_GRAMMAR: Final = r"""
    ?start: or_
    ?or_: and_ (_OR and_)*
    ?and_: item (_AND item)*
    ?item: "(" or_ ")" | NAME "?" -> optional | NAME -> member

    _OR: /or(?![\w-])/i
    _AND: /and(?![\w-])/i
    NAME: /(?!(?:or|and)(?![\w-]))\w[\w-]*/i
    %import common.WS
    %ignore WS
"""

_WAIT_FOR_ADVICE: Final = {
    **dict.fromkeys(("&", "&&", ","), "write AND"),
    **dict.fromkeys(("|", "||"), "write OR"),
}


def parse_wait_for(written: str | Sequence[str], names: Container[str] = ()) -> Requirement | None:
    """Parse a `wait_for` into its requirement; None if it is empty. A list is the AND of its items.

    An item of a list that is in `names` is taken as that agent, whatever characters its name has.

    Raises:
        LanguageError: it has a syntax error.
    """
    parse_text = _wait_for_language().parse
    if isinstance(written, str):
        return parse_text(written) if written.strip() else None
    items: list[Requirement] = [Member(item) if item in names else parse_text(item) for item in written]
    return items[0] if len(items) == 1 else AllOf(tuple(items)) if items else None


@v_args(inline=True)
class _Requirements(Transformer[Any, Any]):
    def member(self, name: str) -> Requirement:
        return Member(str(name))

    def optional(self, name: str) -> Requirement:
        return Member(str(name), optional=True)

    def and_(self, *items: Requirement) -> Requirement:
        return AllOf(items)

    def or_(self, *items: Requirement) -> Requirement:
        return AnyOf(items)


@cache
def _wait_for_language() -> Language:
    return Language("wait_for", _WAIT_FOR_GRAMMAR, _Requirements(), _WAIT_FOR_ADVICE)
