"""Parser of `wait_for`, an expression or a list. spec: "`wait_for` Expression Syntax"; NOTES 11."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cache
from typing import Any, Final

from lark import Transformer, v_args

from harness.dialects.leafmesh.syntax import MAX_SHOWN, Language, LanguageError
from harness.graph.joins import AllOf, AnyOf, Member, Requirement
from harness.source.display import clip

_GRAMMAR: Final = r"""
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

_ADVICE: Final = {"&": "write AND", "&&": "write AND", ",": "write AND", "|": "write OR", "||": "write OR"}


def parse(written: str | Sequence[str], names: Container[str] = ()) -> Requirement | None:
    """Parse a `wait_for` into its requirement; None if it is empty. A list is the AND of its items.

    An item of a list that is in `names` is taken as that agent, whatever characters its name has.

    Raises:
        LanguageError: it has a syntax error.
    """
    if isinstance(written, str):
        return _parse(written) if written.strip() else None
    items = [Member(item) if item in names else _parse(item) for item in written]
    return items[0] if len(items) == 1 else AllOf(tuple(items)) if items else None


def _parse(text: str) -> Requirement:
    try:
        requirement: Requirement = _language().parse(text)
    except LanguageError as error:
        shown = clip(text, MAX_SHOWN)
        raise LanguageError(f"the wait_for `{shown}` cannot be read: {error.message}", error.offset) from None
    return requirement


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
def _language() -> Language:
    return Language(_GRAMMAR, _Requirements(), _ADVICE)
