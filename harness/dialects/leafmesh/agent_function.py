"""The function of an agent, and what comes of calling it. NOTES 8."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.dialects.leafmesh.decorators import as_mapping, composed, copied, preparations
from harness.dialects.leafmesh.registered_tool import Caller
from harness.engine.callables import call
from harness.graph.to_json import to_json


@dataclass(frozen=True)
class Returned:
    """The output of an agent's function, and what its `@compose` made, by agent. Both are JSON data."""

    value: Mapping[str, Any]
    shaped: Mapping[str, Any]


@dataclass(frozen=True)
class AgentFunction:
    """The function of an agent. It may change what it is given; what it returns shares nothing with anything."""

    name: str
    function: Callable[..., Any]
    agents: frozenset[str] = frozenset()
    caller: Caller = call

    @property
    def prepares(self) -> bool:
        """True if something is called before the model."""
        return bool(preparations(self.function))

    async def prepare(self, input_data: Mapping[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        """What the processors of `@pre_compose` return: `business_context`, `clean_user_input`, `others`.

        What they put into `context` stays there for the function.
        """
        given, own, prepared = copied(input_data), copied(context), {}
        for preparation in preparations(self.function):
            for key, processor in preparation._asdict().items():
                if processor is not None:
                    prepared[key] = await self.caller(processor, given, own)
        context.update(own)
        return prepared

    async def run(self, first: Any, input_data: Mapping[str, Any], context: Mapping[str, Any]) -> Returned:
        """What the function makes of `first`: the model's reply, the connector's answer, or None. NOTES 8.1.

        Raises:
            TypeError: it is a generator.
            Exception: what it raises.
        """
        given = (copied(first), copied(input_data), copied(context))
        value, shaped = await self.caller(composed, self.function, self.agents, *given)
        if inspect.isgenerator(value) or inspect.isasyncgen(value):
            raise TypeError(f"the function of agent '{self.name}' yields: it must return its output")
        return Returned(to_json(as_mapping(value)), {agent: to_json(each) for agent, each in shaped.items()})
