"""Parsing the input that a scenario gives to a flow or an agent."""

from __future__ import annotations

from typing import Any

from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.kit.manifest import input_values, warn_dropped_inputs
from harness.engine.context import RunContext
from harness.graph.messages import message_text, to_message


def parse_input(
    component: AgenticComponent, value: Any, run: RunContext
) -> tuple[dict[str, Any], str | None]:
    """Split an input into the values of a component's inputs and the user's message.

    Text is the message. In a mapping the key `message` is the message, unless it names an input. Other keys are
    dropped with a warning.

    Raises:
        BadInput: the value is neither text nor a mapping.
    """
    if isinstance(value, str):
        return {}, value
    expected = f"an input is the user's message or a mapping of the {component}'s inputs"
    values = input_values(value, "message", expected)
    inputs = {title: item for title, item in values.items() if title in component.inputs}
    rest = {title: item for title, item in values.items() if title not in component.inputs}
    message = rest.pop("message", None)
    warn_dropped_inputs(rest, component.inputs, f"{component} has no such input", run)
    return inputs, None if message is None else message_text(to_message(message))
