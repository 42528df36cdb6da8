"""The Python function of an agent, and the raw output of an agent's own work. NOTES 4, 8."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.dialects.leafmesh.decorators import as_mapping, call_with_compose, copy_containers, processors_of
from harness.dialects.leafmesh.registered_tool import Caller
from harness.dialects.leafmesh.session import Start
from harness.engine.callables import call, contained
from harness.graph.to_json import to_json
from harness.interception.real_effects import within_effect


@dataclass(frozen=True)
class RawOutput:
    """The output of an agent's own work, and the inputs that `@compose` shaped from it, by agent."""

    value: Any
    shaped: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentFunction:
    """The Python function of an agent. It gets copies, so it may change its arguments."""

    name: str
    function: Callable[..., Any]
    agents: frozenset[str] = frozenset()
    caller: Caller = call

    @property
    def has_processors(self) -> bool:
        """True if the function has `@pre_compose` processors."""
        return bool(processors_of(self.function))

    async def run_processors(self, input_data: Mapping[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        """Call the `@pre_compose` processors; return their results by key of `prepared_data`.

        The keys are `business_context`, `clean_user_input` and `others`. Changes that the processors make to
        `context` are kept for the function.
        """
        given, own, prepared = copy_containers(input_data), copy_containers(context), {}
        for processors in processors_of(self.function):
            for key, processor in processors._asdict().items():
                if processor is not None:
                    prepared[key] = await self.caller(processor, given, own)
        context.update(own)
        return prepared

    async def run(self, first: Any, input_data: Mapping[str, Any], context: Mapping[str, Any]) -> RawOutput:
        """Call the function as `f(first, input_data, context)`; return its output as JSON data. NOTES 8.1.

        `first` is the model's reply, the connector's response, or None for a plain programmatic agent.

        Raises:
            TypeError: the function is a generator.
            Exception: any exception of the function itself.
        """
        given = (copy_containers(first), copy_containers(input_data), copy_containers(context))
        value, shaped = await self.caller(call_with_compose, self.function, self.agents, *given)
        if inspect.isgenerator(value) or inspect.isasyncgen(value):
            raise TypeError(f"the function of agent '{self.name}' yields: it must return its output")
        return RawOutput(to_json(as_mapping(value)), {agent: to_json(each) for agent, each in shaped.items()})


async def post_process(function: AgentFunction | None, first: Any, start: Start, otherwise: Any) -> RawOutput:
    """Pass `first` to the agent's function; without one, return `otherwise`.

    HTTP requests of the function are intercepted.
    """
    if function is None:
        return RawOutput(otherwise)
    return await contained(within_effect(lambda: function.run(first, start.input, start.context)))
