"""The raw output of an agent's own work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.dialects.leafmesh.agent_function import AgentFunction
from harness.dialects.leafmesh.session import Start
from harness.engine.callables import contained
from harness.interception.real_effects import within_effect


@dataclass(frozen=True)
class Work:
    """The raw output of an agent: a value, and the inputs that `@compose` shaped, by agent."""

    value: Any
    shaped: Mapping[str, Any] = field(default_factory=dict)


async def processed(function: AgentFunction | None, first: Any, start: Start, otherwise: Any) -> Work:
    """Pass `first` to the agent's function; without one, return `otherwise`.

    HTTP requests of the function are intercepted.
    """
    if function is None:
        return Work(otherwise)
    returned = await contained(within_effect(lambda: function.run(first, start.input, start.context)))
    return Work(returned.value, returned.shaped)
