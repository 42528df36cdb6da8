"""Tools: functions that `@tool` or `@global_tool` decorates. spec: "Tools"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from harness.dialects.leafmesh.decorators import Function, check_functions, copied
from harness.engine.callables import call
from harness.graph.effects import ToolSpec

Caller = Callable[..., Awaitable[Any]]
"""Calls a function, synchronous or not: `await caller(function, *given, **named)`."""

_TOOLS: Final = "__leafmesh_tools__"


@dataclass(frozen=True)
class RegisteredTool:
    """A function that is a tool.

    `described` is the description it was given; else it is the docstring. `allowed_agents` is None where all are,
    `timeout_s` (in virtual seconds) where it has no limit of its own. Runs do not ask for confirmation. `others` are
    arguments of the decorator that mean nothing here.
    """

    function: Function
    name: str
    described: str | None = None
    category: str | None = None
    allowed_agents: tuple[str, ...] | None = None
    timeout_s: float | None = None
    requires_confirmation: bool = False
    others: tuple[str, ...] = ()
    caller: Caller = call

    @property
    def description(self) -> str:
        """Its description for models."""
        return self.spec.description

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it; its parameters are those of the function."""
        from harness.dialects.kit.tool_specs import spec_of_function

        return spec_of_function(self.function, self.name, self.described)

    async def call(self, args: Mapping[str, Any]) -> Any:
        """What the function returns."""
        return await self.caller(self.function, **copied(dict(args)))


def global_tool(
    name: str | Function | None = None,
    description: str | None = None,
    category: str | None = None,
    allowed_agents: str | Collection[str] | None = None,
    timeout_seconds: float | None = None,
    requires_confirmation: bool = False,
    **others: Any,
) -> Any:
    """Register a function as a tool, under its own name unless it is given another. May stand without parentheses."""
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
            tuple(others),
        )
        setattr(function, _TOOLS, (*registered_tools(function), tool))
        return function

    return decorate


def registered_tools(found: Any) -> tuple[RegisteredTool, ...]:
    """The tools that an object was registered as."""
    tools: tuple[RegisteredTool, ...] = getattr(found, "__dict__", {}).get(_TOOLS, ())
    return tools
