"""What one evaluation may cost: an expression that would take for ever, or all memory, is an error.

The limits are far above what expressions about a state need.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

STEPS: Final = 5_000_000
"""Items that the comprehensions of one evaluation look at."""
LONGEST_TEXT: Final = 64 * 1024 * 1024
"""Characters."""
LONGEST_LIST: Final = 5_000_000


class TooLarge(Exception):
    """An evaluation past a limit. It is no `Failure`, which `default`, `has` and `||` absorb."""


class Budget:
    """The steps that are left to an evaluation."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS

    def exceeded(self) -> NoReturn:
        """Raise TooLarge: nothing is left."""
        raise TooLarge(f"the expression looks at more than {STEPS:,} items")


def check_length(length: int, kind: type[Any]) -> None:
    """Raise TooLarge for a text or list of this length."""
    if issubclass(kind, list):
        if length > LONGEST_LIST:
            raise TooLarge(f"the list would have more than {LONGEST_LIST:,} items")
    elif length > LONGEST_TEXT:
        raise TooLarge(f"the text would have more than {LONGEST_TEXT:,} characters")
