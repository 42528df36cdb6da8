"""Calls of LangChain tools in an app: each is an effect, which stubs and faults answer, or else the tool itself.

`BaseTool.run` and `arun` are wrapped once in a process. In a run they give the tool, the first time it is called, an
implementation that performs the effect. LangChain calls it after it has validated the arguments, and makes a
`ToolMessage` of what it returns, so a stub's answer takes the way of a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import ModuleType
from typing import Any

from langchain_core.tools import BaseTool

from harness.engine.native_visits import active_visits, current_node
from harness.graph.effects import ToolCall
from harness.graph.to_json import to_json
from harness.time.rebinding import when_imported


@cache
def wrap_tools() -> None:
    """Wrap the functions through which LangChain calls tools, once in a process."""
    run, arun = BaseTool.run, BaseTool.arun

    @wraps(run)
    def replaced(self: BaseTool, *args: Any, **options: Any) -> Any:
        if active_visits() is not None:
            _prepare(self)
        return run(self, *args, **options)

    @wraps(arun)
    async def replaced_async(self: BaseTool, *args: Any, **options: Any) -> Any:
        if active_visits() is not None:
            _prepare(self)
        return await arun(self, *args, **options)

    BaseTool.run, BaseTool.arun = replaced, replaced_async  # type: ignore[method-assign]
    _record_refusals()


def _record_refusals() -> None:
    """Record the calls that are not made: with arguments that are not valid, or of a tool that does not exist."""
    parse = BaseTool._parse_input

    @wraps(parse)
    def parsed(self: BaseTool, tool_input: Any, *args: Any, **options: Any) -> Any:
        try:
            return parse(self, tool_input, *args, **options)
        except Exception as error:
            given = tool_input if isinstance(tool_input, Mapping) else {}
            _refuse(_effect(self, (), given, None), error)
            raise

    BaseTool._parse_input = parsed  # type: ignore[method-assign]
    for module in ("langgraph.prebuilt.tool_node", "langchain.tools.tool_node"):
        when_imported(module, _record_unknown_tools)


def _record_unknown_tools(module: ModuleType) -> None:
    """Record the calls of tools that a node for tools does not have. LangChain 1.0 has such a node of its own."""
    for node in (getattr(module, name, None) for name in ("ToolNode", "_ToolNode")):
        if node is not None and node.__module__ == module.__name__ and hasattr(node, "_validate_tool_call"):
            node._validate_tool_call = _validated(node._validate_tool_call)


def _validated(validate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(validate)
    def validated(self: Any, call: Any) -> Any:
        message = validate(self, call)
        if message is not None:
            effect = ToolCall(node=current_node(), name=call["name"], args=to_json(call["args"]), native=True)
            _refuse(effect, ValueError(message.content))
        return message

    return validated


def _refuse(effect: ToolCall, why: Exception) -> None:
    if (visits := active_visits()) is not None:
        visits.run.refuse(effect, why, effect.node)


def _prepare(tool: BaseTool) -> None:
    """Give a tool the implementations that perform effects. A copy of a tool has those of the original."""
    own = tool.__dict__
    if getattr(own.get("_run"), "of_tool", None) is tool:
        return
    kind = type(tool)
    own["_run"] = _blocking(tool, kind._run.__get__(tool))
    # LangChain's own `_arun` runs `_run` in a thread.
    if kind._arun is not BaseTool._arun:
        own["_arun"] = _awaiting(tool, kind._arun.__get__(tool))


def _blocking(tool: BaseTool, really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    def run(*args: Any, **named: Any) -> Any:
        visits = active_visits()
        if visits is None:
            return really(*args, **named)

        async def perform() -> Any:
            return really(*args, **named)

        return visits.perform_blocking(_effect(tool, args, named, perform))

    run.of_tool = tool  # type: ignore[attr-defined]
    return run


def _awaiting(tool: BaseTool, really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    async def arun(*args: Any, **named: Any) -> Any:
        visits = active_visits()
        if visits is None:
            return await really(*args, **named)

        async def perform() -> Any:
            return await really(*args, **named)

        return await visits.perform(_effect(tool, args, named, perform))

    return arun


def _effect(tool: BaseTool, args: Any, named: Mapping[str, Any], real: Any) -> ToolCall:
    visible = _parameters(tool)
    given = dict(zip(visible, args, strict=False)) | {key: named[key] for key in visible if key in named}
    return ToolCall(node=current_node(), name=tool.name, args=to_json(given), native=True, real=real)


def _parameters(tool: BaseTool) -> list[str]:
    """Return the names of the arguments that a model sees."""
    schema: Any = tool.tool_call_schema
    return list(schema.get("properties", ()) if isinstance(schema, dict) else schema.model_fields)
