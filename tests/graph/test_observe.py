"""Observations that a trace gives, where what it has is not what a provider should have said."""

from typing import Any

import pytest

from harness.graph import observe


@pytest.mark.parametrize("reported", [float("inf"), float("nan"), -5, "many", None, 10**20])
def test_what_is_no_number_of_tokens_is_not_counted(reported: Any) -> None:
    events = [
        {"event": "call", "call": 1, "kind": "llm", "name": "m"},
        {"event": "answer", "call": 1, "usage": {"input_tokens": reported, "output_tokens": 7}},
    ]
    usage = observe.usage(events)
    assert (usage["input_tokens"], usage["output_tokens"]) == (0, 7)
