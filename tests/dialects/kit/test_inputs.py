"""The input that a scenario gives to an agent."""

from typing import Any

import pytest

from harness.dialects.kit.manifest import BadInput, input_values, warn_dropped_inputs
from harness.engine.context import NodeContext
from harness.graph import observe
from tests.dialects.kit.one_node import visit


@pytest.mark.parametrize(
    ("value", "values"),
    [(None, {}), ("hello", {"question": "hello"}), ("", {"question": ""}), ({"a": 1}, {"a": 1})],
)
def test_text_becomes_a_mapping_and_none_an_empty_one(value: Any, values: dict[str, Any]) -> None:
    assert input_values(value, "question", "an input is text") == values


@pytest.mark.parametrize(("value", "found"), [(["a"], "a list"), (3, "the number 3"), (True, "true")])
def test_other_inputs_are_refused(value: Any, found: str) -> None:
    with pytest.raises(BadInput, match=f"^an input is text, not {found}$"):
        input_values(value, "question", "an input is text")


def test_a_dropped_input_is_a_warning_with_the_nearest_name() -> None:
    async def work(ctx: NodeContext) -> Any:
        warn_dropped_inputs(["toppic"], ["mood", "topic"], "the flow has no such input", ctx.run)
        return observe.warnings(ctx.run.simulation.trace.events)

    assert visit(work).value == [
        "input 'toppic' is dropped: the flow has no such input (did you mean 'topic'?)"
    ]
