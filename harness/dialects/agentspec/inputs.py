"""What a scenario gives a flow or an agent to begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.dialects.agentspec.agents import AgenticComponent
from harness.engine.context import RunContext
from harness.errors import HarnessError
from harness.graph.messages import message_text, to_message
from harness.source.models import describe
from harness.source.suggest import did_you_mean


class BadInput(HarnessError):
    """An input this component cannot take."""

    code = "bad-input"


def given_inputs(
    component: AgenticComponent, value: Any, run: RunContext
) -> tuple[dict[str, Any], str | None]:
    """The values of a component's inputs, and the user's message: the key `message`, unless it names an input.

    What names nothing is dropped with a warning.

    Raises:
        BadInput: the value is neither text nor a mapping.
    """
    if value is None:
        return {}, None
    if isinstance(value, str):
        return {}, value
    if not isinstance(value, Mapping):
        raise BadInput(
            f"an input is the user's message or a mapping of the {component}'s inputs, not {describe(value)}"
        )
    inputs = {title: item for title, item in value.items() if title in component.takes}
    rest = {title: item for title, item in value.items() if title not in component.takes}
    message = rest.pop("message", None)
    for title in rest:
        hint = did_you_mean(str(title), component.takes)
        run.warn(
            f"input '{title}' is dropped: {component} has no such input" + (f" ({hint})" if hint else "")
        )
    return inputs, None if message is None else message_text(to_message(message))
