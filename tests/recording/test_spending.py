"""Real calls are counted, and no call exceeds the budget. Source: docs/variants.md."""

from __future__ import annotations

import pytest

from harness.budget import Budget
from harness.recording.spending import Spending, count_spending
from harness.settings import RecordMode
from tests.recording.project import Project

SERVED = """
llm:
  - {reply: It will rain., usage: {input_tokens: 1000, output_tokens: 10}, times: any}
"""
ASKS_ONCE = "input: Rain?\ntools: {forecast: real}"


def price(model: str, sent: int, received: int) -> float | None:
    return (sent + received) / 1000 if model.startswith("gpt") else None


def test_calls_that_are_asked_anew_are_counted_with_their_cost(project: Project) -> None:
    scenario = project.scenario("weather", ASKS_ONCE)
    with project.serving(SERVED), count_spending(Spending(price)) as spending:
        project.record(scenario)
        assert (spending.calls, spending.input_tokens, spending.output_tokens) == (1, 1000, 10)
        assert spending.cost == pytest.approx(1.01)
        project.run(scenario, RecordMode.ONCE)
    assert spending.calls == 1


@pytest.mark.parametrize("budget", [Budget(calls=0), Budget(cost=0)])
def test_no_call_is_begun_beyond_the_budget(project: Project, budget: Budget) -> None:
    scenario = project.scenario("weather", ASKS_ONCE)
    with project.serving(SERVED), count_spending(Spending(price, budget)) as spending:
        outcome = project.record(scenario)
    assert (outcome.observed.error or {})["code"] == "budget"
    assert (outcome.verdict, spending.calls, spending.refused) == ("error", 0, True)
    assert not project.recorded_files()


def test_a_model_without_a_price_cannot_be_held_to_a_budget_of_dollars(project: Project) -> None:
    scenario = project.scenario("weather", ASKS_ONCE)
    spending = Spending(lambda *_: None, Budget(cost=5))
    with project.serving(SERVED), count_spending(spending):
        outcome = project.record(scenario)
    assert "is not known" in (outcome.observed.error or {})["message"]
    assert spending.calls == 0
