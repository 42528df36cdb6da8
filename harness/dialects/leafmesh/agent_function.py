"""The Python function of an agent: its `@pre_compose` processors, and the call itself. NOTES 8."""

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
    """The output of an agent's function, and the inputs that its `@compose` shaped, by agent: JSON data."""

    value: Mapping[str, Any]
    shaped: Mapping[str, Any]


@dataclass(frozen=True)
class AgentFunction:
    """The Python function of an agent. It gets copies, so it may change its arguments."""

    name: str
    function: Callable[..., Any]
    agents: frozenset[str] = frozenset()
    caller: Caller = call

    @property
    def prepares(self) -> bool:
        """True if the function has `@pre_compose` processors."""
        return bool(preparations(self.function))

    async def prepare(self, input_data: Mapping[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        """Call the `@pre_compose` processors; return their results by key of `prepared_data`.

        The keys are `business_context`, `clean_user_input` and `others`. Changes that the processors make to
        `context` are kept for the function.
        """
        given, own, prepared = copied(input_data), copied(context), {}
        for preparation in preparations(self.function):
            for key, processor in preparation._asdict().items():
                if processor is not None:
                    prepared[key] = await self.caller(processor, given, own)
        context.update(own)
        return prepared

    async def run(self, first: Any, input_data: Mapping[str, Any], context: Mapping[str, Any]) -> Returned:
        """Call the function as `f(first, input_data, context)` and return its output. NOTES 8.1.

        `first` is the model's reply, the connector's response, or None for a plain programmatic agent.

        Raises:
            TypeError: the function is a generator.
            Exception: any exception of the function itself.
        """
        given = (copied(first), copied(input_data), copied(context))
        value, shaped = await self.caller(composed, self.function, self.agents, *given)
        if inspect.isgenerator(value) or inspect.isasyncgen(value):
            raise TypeError(f"the function of agent '{self.name}' yields: it must return its output")
        return Returned(to_json(as_mapping(value)), {agent: to_json(each) for agent, each in shaped.items()})
