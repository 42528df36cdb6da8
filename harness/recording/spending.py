"""Counts the calls of models that are really made, their tokens and their cost, and enforces a budget.

A call is a request to a model that leaves this machine; each retry of a client is one. Requests of tools and to MCP
servers are not counted. The cost of a call is known after its response: the last call may exceed a budget in dollars.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from harness.budget import Budget, Expense
from harness.interception.messages import Request

Price = Callable[[str, int, int], float | None]
"""A function that returns the cost of a call in US dollars, from the model and its input and output tokens.

It returns None if the price of the model is not known.
"""

_PROMPT_KEYS: Final = ("messages", "input", "prompt", "contents")
"""Keys of a request body that hold the prompt."""


@dataclass
class Spending:
    """Counts of the calls that were really made, their cost, and the models without a known price.

    Not thread-safe: `harness.recording.permits`, whose processes share it, locks it.
    """

    price: Price
    budget: Budget = field(default_factory=Budget)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: set[str] = field(default_factory=set)
    refused: bool = False
    """True if a call was refused because of the budget."""
    _under_way: Counter[str] = field(default_factory=Counter)
    _dearest: dict[str, float] = field(default_factory=dict)
    """The cost of the dearest call of each model so far."""

    @property
    def is_spent(self) -> bool:
        """True if no further call may be made."""
        if self.budget.cost is not None:
            return self.cost >= self.budget.cost
        return not self.allows(Expense(1))

    def allows(self, more: Expense) -> bool:
        """Return True if the budget allows spending `more`."""
        return self.budget.allows(Expense(self.calls, self.cost) + more)

    def waits(self, model: str | None) -> bool:
        """True if a call is to wait for others, whose cost may be the rest of a budget in dollars.

        A call under way is expected to cost as much as the dearest one of its model so far.
        """
        if model is None or self.budget.cost is None or not self._under_way.total():
            return False
        expected = [self._dearest.get(each, math.inf) for each in (*self._under_way.elements(), model)]
        return self.cost + math.fsum(expected) > self.budget.cost

    def refusal(self, model: str | None) -> str:
        """Count a call that is to be made, and return ""; or the reason why the budget does not allow it."""
        if model is None:
            return ""
        if self.is_spent:
            why = f"the budget of {self.budget} is spent: {model} is not asked"
        elif self.budget.cost is not None and self.price(model, 1, 1) is None:
            why = (
                f"the price of '{model}' is not known, so the budget of {self.budget} cannot be enforced: "
                "set it in [tool.harness.prices], or give a budget of calls"
            )
        else:
            self.calls += 1
            self._under_way[model] += 1
            return ""
        self.refused = True
        return why

    def take_back(self, model: str | None) -> None:
        """Do not count a call that its provider did not take: it is made again."""
        if model is not None:
            self.calls -= 1
            self._under_way[model] -= 1

    def add(self, model: str | None, tokens: tuple[int, int] | None) -> None:
        """Add the tokens of a call that has ended, and their cost. None: no answer arrived."""
        if model is None:
            return
        self._under_way[model] -= 1
        if tokens is None:
            return
        cost = self.price(model, *tokens)
        self.input_tokens += tokens[0]
        self.output_tokens += tokens[1]
        self.cost += cost or 0.0
        self._dearest[model] = max(cost or 0.0, self._dearest.get(model, 0.0))
        if cost is None:
            self.unpriced.add(model)


def model_of(request: Request) -> str | None:
    """Return the model that a request calls; None if it calls none."""
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not any(key in body for key in _PROMPT_KEYS):
        return None
    model = body.get("model")
    return model if isinstance(model, str) and model else None
