"""What is spent on models that are really asked, and the budget that it must not pass.

    HTTPRecorder: a request is to be sent ──▶ Spending.refusal: the budget is spent? ──▶ BudgetSpent ends the run
                  it was answered          ──▶ Spending.add: one call, its tokens, what they cost

A call is a request to a model that leaves this process, also one that a client sends again. Requests of tools and
MCP servers are none. What a call costs is known when it was answered: the last one may pass a budget of dollars.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from harness.budget import Budget, Spent
from harness.errors import BudgetSpent
from harness.interception.messages import Request
from harness.recording.interactions import Interaction
from harness.recording.traffic import tokens_of

Price = Callable[[str, int, int], float | None]
"""What a call of a model costs in US dollars, from the tokens in and out; None where its price is not known."""

_ASKS: Final = ("messages", "input", "prompt", "contents")
"""What of the body of a request is what a model is asked."""


@dataclass
class Spending:
    """The calls that were asked anew, what they cost, and the models whose price is not known."""

    price: Price
    budget: Budget = field(default_factory=Budget)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: set[str] = field(default_factory=set)
    refused: bool = False
    """Whether a call was refused, since the budget was spent."""
    _lock: Lock = field(default_factory=Lock)

    @property
    def is_spent(self) -> bool:
        """True if no call may be begun any more."""
        if self.budget.cost is not None:
            return self.cost >= self.budget.cost
        return not self.allows(Spent(1))

    def allows(self, more: Spent) -> bool:
        """True if so much more may be spent."""
        return self.budget.allows(Spent(self.calls, self.cost) + more)

    def refusal(self, request: Request) -> BudgetSpent | None:
        """Count a request that is to be sent; gives the error in its place where the budget is spent."""
        model = model_of(request)
        if model is None:
            return None
        with self._lock:
            if self.is_spent:
                self.refused = True
                return BudgetSpent(f"the budget of {self.budget} is spent: {model} is not asked")
            if self.budget.cost is not None and self.price(model, 1, 1) is None:
                self.refused = True
                return BudgetSpent(
                    f"the price of '{model}' is not known, so that it cannot be held to {self.budget}: "
                    "set it in [tool.harness.prices], or give a budget of calls"
                )
            self.calls += 1
        return None

    def add(self, interaction: Interaction) -> None:
        """Count what a request that is over has taken."""
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
    """The model that a request asks; None where it asks none."""
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not any(key in body for key in _ASKS):
        return None
    model = body.get("model")
    return model if isinstance(model, str) and model else None


_current: list[Spending] = []


def current_spending() -> Spending | None:
    """What counts the calls of the runs that begin now; None where nothing does."""
    return _current[-1] if _current else None


@contextmanager
def count_spending(spending: Spending) -> Iterator[Spending]:
    """Count the calls of all runs that begin inside, in this process, and hold them to the budget."""
    _current.append(spending)
    try:
        yield spending
    finally:
        _current.remove(spending)
