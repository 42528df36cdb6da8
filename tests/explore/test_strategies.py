"""`harness.strategies`: valid replies and tool calls for `@given` tests."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from langchain_core.tools import tool

from harness.errors import ExtraMissing
from harness.explore.values import NotDrawable
from harness.strategies import replies, tool_calls
from tests.explore.schemas import Intent, Order


def pay(amount: int, to: str = "") -> None:
    """Pay an amount."""


@tool
def close(number: int) -> None:
    """Close a ticket."""


@given(replies(Intent.model_json_schema()))
def test_a_reply_is_valid(reply: Any) -> None:
    Intent.model_validate(reply)


def smallest(strategy: st.SearchStrategy[Any], condition: Any) -> Any:
    return find(strategy, condition, settings=settings(derandomize=True, database=None, max_examples=2000))


def test_a_failing_reply_shrinks_to_the_simplest_one() -> None:
    orders = replies(Order.model_json_schema(), words=["paper"])
    line = {"article": "paper", "count": 1, "price": 0}
    assert smallest(orders, lambda order: len(order["lines"]) >= 3) == {"lines": [line] * 3, "notes": {}}
    assert smallest(orders, lambda order: order.get("paid")) == {"lines": [line], "notes": {}, "paid": True}
    assert smallest(orders, lambda order: order["lines"][-1]["count"] > 50)["lines"] == [
        {**line, "count": 96}
    ]


@given(tool_calls([pay, close]))
def test_one_to_three_tools_are_called_with_valid_arguments(calls: list[dict[str, Any]]) -> None:
    assert 1 <= len(calls) <= 3
    for call in calls:
        assert call["name"] in ("pay", "close")
        required = "amount" if call["name"] == "pay" else "number"
        assert isinstance(call["args"][required], int)
        assert call["args"].keys() <= {required, "to"}


def test_failing_calls_shrink_to_the_fewest_with_the_simplest_arguments() -> None:
    calls = smallest(tool_calls([pay, close]), lambda calls: any("to" in call["args"] for call in calls))
    assert calls == [{"name": "pay", "args": {"amount": 0, "to": "a"}}]


def test_a_schema_without_instances_is_refused_where_the_strategy_is_made() -> None:
    with pytest.raises(NotDrawable, match="nothing is valid under"):
        replies({"type": "object", "properties": {"a": False}, "required": ["a"]})


def test_without_hypothesis_a_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis.strategies", None)
    with pytest.raises(ExtraMissing, match=r'pip install "agent-scenarios\[explore\]"'):
        replies({})


def test_hypothesis_is_loaded_when_a_strategy_is_made() -> None:
    code = "import sys, harness.strategies, harness.explore.values; sys.exit('hypothesis' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
