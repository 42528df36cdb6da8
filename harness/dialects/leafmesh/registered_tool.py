"""Tools: functions with the decorator `@tool` or `@global_tool`. spec: "Tools"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from harness.dialects.leafmesh.decorators import Function, check_functions, copy_containers
from harness.engine.callables import call
from harness.graph.effects import ToolSpec

Caller = Callable[..., Awaitable[Any]]
"""Calls a function, synchronous or not: `await caller(function, *given, **named)`."""

_TOOLS: Final = "__leafmesh_tools__"


@dataclass(frozen=True)
class RegisteredTool:
    """A function that is registered as a tool.

    given_description      the description passed to the decorator; without one, the docstring is used
    allowed_agents         None if all agents may use it
    timeout_s              its own time limit in virtual seconds, if any
    requires_confirmation  has no effect: runs do not ask for confirmation
    unknown_arguments      arguments of the decorator that have no meaning here
    """

    function: Function
    name: str
    given_description: str | None = None
    category: str | None = None
    allowed_agents: tuple[str, ...] | None = None
    timeout_s: float | None = None
    requires_confirmation: bool = False
    unknown_arguments: tuple[str, ...] = ()
    caller: Caller = call

    @property
    def description(self) -> str:
        """The description that models see."""
        return self.spec.description

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as models see it, with the parameters of the function."""
        from harness.dialects.kit.tool_calls import spec_of_function

        return spec_of_function(self.function, self.name, self.given_description)

    async def call(self, args: Mapping[str, Any]) -> Any:
        """Call the function with copies of the arguments and return its result."""
        return await self.caller(self.function, **copy_containers(dict(args)))


def global_tool(
    name: str | Function | None = None,
    description: str | None = None,
    category: str | None = None,
    allowed_agents: str | Collection[str] | None = None,
    timeout_seconds: float | None = None,
    requires_confirmation: bool = False,
    **unknown_arguments: Any,
) -> Any:
    """Register a function as a tool, named `name` or else as the function. Parentheses are optional."""
    if callable(name):
        return global_tool()(name)
    allowed = (allowed_agents,) if isinstance(allowed_agents, str) else allowed_agents

    def decorate(function: Function) -> Function:
        check_functions("global_tool", [function])
        tool = RegisteredTool(
            function,
            str(name or function.__name__),
            description,
            category,
            None if allowed is None else tuple(allowed),
            timeout_seconds,
            requires_confirmation,
            tuple(unknown_arguments),
        )
        setattr(function, _TOOLS, (*registered_tools(function), tool))
        return function

    return decorate


def registered_tools(found: Any) -> tuple[RegisteredTool, ...]:
    """Return the tools that an object is registered as."""
    tools: tuple[RegisteredTool, ...] = getattr(found, "__dict__", {}).get(_TOOLS, ())
    return tools
