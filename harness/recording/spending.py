"""Counts the calls of models that are really made, their tokens and their cost, and enforces a budget.

    HTTPRecorder: before a request is sent ──▶ Spending.refusal: is the budget spent? ──▶ BudgetSpent ends the run
                  after its response        ──▶ Spending.add: its tokens and its cost

A call is a request to a model that leaves this process; each retry of a client is one. Requests of tools and to MCP
servers are not counted. The cost of a call is known after its response: the last call may exceed a budget in dollars.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from harness.budget import Budget, Expense
from harness.errors import BudgetSpent
from harness.interception.messages import Request
from harness.recording.interactions import Interaction, tokens_of

Price = Callable[[str, int, int], float | None]
"""A function that returns the cost of a call in US dollars, from the model and its input and output tokens.

It returns None if the price of the model is not known.
"""

_PROMPT_KEYS: Final = ("messages", "input", "prompt", "contents")
"""Keys of a request body that hold the prompt."""


@dataclass
class Spending:
    """Counts of the calls that were really made, their cost, and the models without a known price."""

    price: Price
    budget: Budget = field(default_factory=Budget)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: set[str] = field(default_factory=set)
    refused: bool = False
    """True if a call was refused because of the budget."""
    _lock: Lock = field(default_factory=Lock)

    @property
    def is_spent(self) -> bool:
        """True if no further call may be made."""
        if self.budget.cost is not None:
            return self.cost >= self.budget.cost
        return not self.allows(Expense(1))

    def allows(self, more: Expense) -> bool:
        """Return True if the budget allows spending `more`."""
        return self.budget.allows(Expense(self.calls, self.cost) + more)

    def refusal(self, request: Request) -> BudgetSpent | None:
        """Count a request that is to be sent; return an error instead if the budget does not allow it."""
        model = model_of(request)
        if model is None:
            return None
        with self._lock:
            if self.is_spent:
                why = f"the budget of {self.budget} is spent: {model} is not asked"
            elif self.budget.cost is not None and self.price(model, 1, 1) is None:
                why = (
                    f"the price of '{model}' is not known, so the budget of {self.budget} cannot be enforced: "
                    "set it in [tool.harness.prices], or give a budget of calls"
                )
            else:
                self.calls += 1
                return None
            self.refused = True
        return BudgetSpent(why)

    def add(self, interaction: Interaction) -> None:
        """Add the tokens and the cost of a completed request."""
        model = model_of(interaction.request)
        if model is None:
            return
        sent, received = tokens_of(interaction)
        cost = self.price(model, sent, received)
        with self._lock:
            self.input_tokens += sent
            self.output_tokens += received
            self.cost += cost or 0.0
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


_current: list[Spending] = []


def current_spending() -> Spending | None:
    """Return the `Spending` that counts the calls of runs started now; None if they are not counted."""
    return _current[-1] if _current else None


@contextmanager
def count_spending(spending: Spending) -> Iterator[Spending]:
    """Count the calls of all runs that this process starts within the context, and enforce the budget."""
    _current.append(spending)
    try:
        yield spending
    finally:
        _current.remove(spending)
