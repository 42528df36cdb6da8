"""Limits of one evaluation: an expression that would run forever or exhaust memory is an error.

The limits are far above the needs of expressions about an agent's state.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

STEPS: Final = 5_000_000
"""Maximum number of items that the comprehensions of one evaluation may visit, all together."""
LONGEST_TEXT: Final = 64 * 1024 * 1024
"""In characters."""
LONGEST_LIST: Final = 5_000_000


class TooLarge(Exception):
    """Raised when an evaluation exceeds a limit. Not a `Failure`, so `default`, `has` and `||` do not absorb it."""


class Budget:
    """The number of items that an evaluation may still visit."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS

    def exceeded(self) -> NoReturn:
        """Raise TooLarge because no steps are left."""
        raise TooLarge(f"the expression looks at more than {STEPS:,} items")


def check_length(length: int, kind: type[Any]) -> None:
    """Raise TooLarge if a text or list of this length exceeds its limit."""
    if issubclass(kind, list):
        if length > LONGEST_LIST:
            raise TooLarge(f"the list would have more than {LONGEST_LIST:,} items")
    elif length > LONGEST_TEXT:
        raise TooLarge(f"the text would have more than {LONGEST_TEXT:,} characters")
