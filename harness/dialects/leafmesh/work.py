"""The result of an agent's own work, and the functions that have a say in it."""

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
    """What an agent made: a value, and what `@compose` made of it for agents, by name."""

    value: Any
    shaped: Mapping[str, Any] = field(default_factory=dict)


async def processed(function: AgentFunction | None, first: Any, start: Start, otherwise: Any) -> Work:
    """What the agent's function makes of `first`; without one, `otherwise`. HTTP of functions is intercepted."""
    if function is None:
        return Work(otherwise)
    returned = await contained(within_effect(lambda: function.run(first, start.input, start.context)))
    return Work(returned.value, returned.shaped)
