"""Budgets for model calls (`--budget`), and the expenses that count against them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

CALLS: Final = re.compile(r"(\d+)(?:\s*calls?)?", re.IGNORECASE)
DOLLARS: Final = re.compile(r"\$\s*(\d+(?:\.\d+)?|\.\d+)|(\d+(?:\.\d+)?|\.\d+)\s*USD", re.IGNORECASE)
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Expense:
    """A number of model calls, and their cost in US dollars."""

    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: Expense) -> Expense:
        return Expense(self.calls + other.calls, math.fsum((self.cost, other.cost)))

    def times(self, factor: float) -> Expense:
        """Return the expense multiplied by a factor, with calls rounded up."""
        return Expense(math.ceil(self.calls * factor - _ROUNDING), self.cost * factor)


@dataclass(frozen=True)
class Budget:
    """The most calls, or US dollars, that may be spent. None stands for no limit."""

    calls: int | None = None
    cost: float | None = None

    @property
    def is_limited(self) -> bool:
        """True if there is a limit."""
        return self.calls is not None or self.cost is not None

    def allows(self, spent: Expense) -> bool:
        """True if this total is within the budget."""
        return (self.calls is None or spent.calls <= self.calls) and (
            self.cost is None or spent.cost <= self.cost + _ROUNDING
        )

    def __str__(self) -> str:
        if self.calls is not None:
            return f"{self.calls} call{'' if self.calls == 1 else 's'}"
        return f"${self.cost:g}" if self.cost is not None else "no limit"


def parse(text: str) -> Budget:
    """Parse a budget, written as `200`, `200 calls`, `$1.50` or `1.50 USD`.

    Raises:
        ValueError: the text has another form, or the budget is zero.
    """
    written = text.strip()
    if (calls := CALLS.fullmatch(written)) is not None and int(calls[1]) > 0:
        return Budget(calls=int(calls[1]))
    dollars = DOLLARS.fullmatch(written)
    if dollars is not None and float(dollars[1] or dollars[2]) > 0:
        return Budget(cost=float(dollars[1] or dollars[2]))
    raise ValueError(f"'{text}' is not a budget: write 200 for model calls, or $1.50 for US dollars")
