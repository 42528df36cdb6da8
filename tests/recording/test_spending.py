"""Real calls are counted, and no call exceeds the budget. Source: docs/variants.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.budget import Budget, Expense
from harness.recording.permits import Permits, permits_from
from harness.recording.spending import Spending
from harness.settings import RecordMode
from tests.recording.project import Project

SERVED = """
llm:
  - {reply: It will rain., usage: {input_tokens: 1000, output_tokens: 10}, times: any}
"""
ASKS_ONCE = "input: Rain?\ntools: {forecast: real}"


def price(model: str, sent: int, received: int) -> float | None:
    return (sent + received) / 1000 if model.startswith("gpt") else None


@contextmanager
def counted(project: Project, spending: Spending) -> Iterator[None]:
    """Serve models, whose calls are counted and held to the budget."""
    with project.serving(SERVED), Permits(spending) as source, permits_from(source):
        yield


def test_progress_shows_the_cost_or_the_calls_while_they_cost_next_to_nothing() -> None:
    spending = Spending(price)
    permits = Permits(spending)
    assert permits.status() == ""
    spending.calls, spending.cost = 2, 0.00004
    assert permits.status() == "2 calls"
    spending.cost = 0.00006
    assert permits.status() == "$0.0001"


def test_calls_that_are_asked_anew_are_counted_with_their_cost(project: Project) -> None:
    scenario, spending = project.scenario("weather", ASKS_ONCE), Spending(price)
    with counted(project, spending):
        project.record(scenario)
        assert (spending.calls, spending.input_tokens, spending.output_tokens) == (1, 1000, 10)
        assert spending.cost == pytest.approx(1.01)
        project.run(scenario, RecordMode.ONCE)
    assert spending.calls == 1


@pytest.mark.parametrize("budget", [Budget(calls=0), Budget(cost=0)])
def test_no_call_is_begun_beyond_the_budget(project: Project, budget: Budget) -> None:
    scenario, spending = project.scenario("weather", ASKS_ONCE), Spending(price, budget)
    with counted(project, spending):
        outcome = project.record(scenario)
    assert (outcome.observed.error or {})["code"] == "budget"
    assert (outcome.verdict, spending.calls, spending.refused) == ("error", 0, True)
    assert not project.recorded_files()


def test_a_model_without_a_price_cannot_be_held_to_a_budget_of_dollars(project: Project) -> None:
    scenario, spending = project.scenario("weather", ASKS_ONCE), Spending(lambda *_: None, Budget(cost=5))
    with counted(project, spending):
        outcome = project.record(scenario)
    assert "is not known" in (outcome.observed.error or {})["message"]
    assert spending.calls == 0


def test_a_call_waits_while_those_under_way_may_cost_the_rest_of_the_budget() -> None:
    spending = Spending(price, Budget(cost=5))
    assert not spending.waits("gpt")
    assert spending.refusal("gpt") == ""
    assert spending.waits("gpt")  # nobody knows what the first one costs
    spending.add("gpt", (1500, 500))
    assert spending.refusal("gpt") == ""
    assert spending.waits("gpt")  # 2 spent, 2 expected, and 2 more would be above 5
    spending.add("gpt", (500, 500))
    assert not spending.waits("gpt")
    assert spending.allows(Expense(1, 2))


def test_a_call_that_its_provider_did_not_take_is_not_counted() -> None:
    spending = Spending(price, Budget(calls=1))
    assert spending.refusal("gpt") == ""
    spending.take_back("gpt")
    assert spending.refusal("gpt") == ""
    assert "is spent" in spending.refusal("gpt")
