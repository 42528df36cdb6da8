"""Tools: the registry, tools of Python and of MCP servers, and the content of their results.

spec: `tools`, `mcp_servers` (tool registration), `sub_agents` (wrapped as tools), "Tool binding modes".
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as as_tool
from pydantic import BaseModel, ValidationError

from harness.dialects.kit.manifest import UnimportedObject
from harness.dialects.kit.tool_calls import BadArguments, ToolReportedError
from harness.dialects.kit.tool_specs import spec_of_tool
from harness.dialects.sherma.versions import chosen_version, version_order
from harness.engine.callables import call_with
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import MCPCall, MCPEndpoint, ToolCall, ToolSpec
from harness.graph.to_json import to_json
from harness.source.models import describe
from harness.source.suggest import did_you_mean

Arguments = Mapping[str, Any]


class ToolNotFound(HarnessError):
    """A reference to a tool that is not registered. It fails the node that uses it."""

    code = "unknown-tool"


class Origin(IntEnum):
    """The source of a tool. Models get all tools in this order."""

    SKILL = 0
    MCP_SERVER = 1
    MANIFEST = 2
    SUB_AGENT = 3


@dataclass(frozen=True)
class Tool:
    """A registered tool.

    Manifests and scenarios call it by its `id`, models by `spec.name`. `call` performs it, as an effect of the node,
    with a model's arguments, or raises BadArguments. `is_named`: its name for models is known.
    """

    id: str
    version: str
    spec: ToolSpec
    call: Callable[[Arguments, NodeContext], Awaitable[Any]]
    origin: Origin = Origin.MANIFEST
    is_named: bool = True

    @property
    def name(self) -> str:
        """Its name for models and hooks."""
        return self.spec.name

    @property
    def description(self) -> str:
        """Its description for models."""
        return self.spec.description


class ToolRegistry:
    """Tools by id and version, in the order they were registered. A later one of the same id and version wins."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._versions: dict[str, dict[str, Tool]] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Register a tool."""
        self._versions.setdefault(tool.id, {})[tool.version] = tool

    def __contains__(self, id_: str) -> bool:
        return id_ in self._versions

    def copy(self) -> ToolRegistry:
        """A new registry with the same tools."""
        twin = ToolRegistry()
        twin._versions = {id_: dict(versions) for id_, versions in self._versions.items()}
        return twin

    def all(self) -> list[Tool]:
        """Every version of every tool, by their origin, the latest of each first."""
        found = [
            versions[version]
            for versions in self._versions.values()
            for version in sorted(versions, key=version_order, reverse=True)
        ]
        return sorted(found, key=lambda tool: tool.origin)

    def get(self, id_: str, version: str = "*") -> Tool:
        """A tool; `*` is its latest version. One that was declared without a version is of any.

        Raises:
            ToolNotFound: no such tool, or no such version of it.
        """
        versions = self._versions.get(id_)
        if versions is None:
            hint = did_you_mean(id_, self._versions)
            raise ToolNotFound(f"tool '{id_}' is not registered" + (f" ({hint})" if hint else ""))
        found = chosen_version(versions, version)
        if found is None:
            raise ToolNotFound(f"tool '{id_}' has no version '{version}' (it has {', '.join(versions)})")
        return versions[found]


def distinct(tools: Iterable[Tool]) -> list[Tool]:
    """The tools, the first of each name."""
    return list({tool.name: tool for tool in reversed(list(tools))}.values())[::-1]


def python_tool(
    id_: str,
    version: str,
    found: Any,
    *,
    native: Callable[[NodeContext], Any] | None = None,
    origin: Origin = Origin.MANIFEST,
) -> Tool:
    """A Python tool: a LangChain tool, or a function, which becomes one.

    `native` makes the function that a visit calls: such tools belong to the dialect and need no stub.
    """
    tool: BaseTool = found if isinstance(found, BaseTool) else as_tool(found)
    schema: Any = tool.tool_call_schema
    spec = spec_of_tool(tool)

    async def call(args: Arguments, ctx: NodeContext) -> Any:
        async def real() -> Any:
            return await call_with(tool if native is None else native(ctx), args)

        effect = ToolCall(name=id_, alias=tool.name, args=args, real=real, native=native is not None)
        return await ctx.perform(_checked(schema, effect))

    return Tool(id_, version, spec, call, origin)


def unimported_tool(
    id_: str, version: str, found: UnimportedObject, *, origin: Origin = Origin.MANIFEST
) -> Tool:
    """A Python tool that was not imported: it can be named, and not called."""

    async def call(_args: Arguments, _ctx: NodeContext) -> Any:
        raise ToolNotFound(f"tool '{id_}' was not imported")

    spec = ToolSpec(found.tool_name or id_, "", {"type": "object"})
    return Tool(id_, version, spec, call, origin, is_named=found.tool_name is not None)


def _checked(schema: Any, effect: ToolCall) -> ToolCall:
    """The call with its arguments as plain data: defaults filled in, unknown ones dropped.

    Raises:
        BadArguments: they do not fit its signature.
    """
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return effect
    try:
        model = schema.model_validate(effect.args)
    except ValidationError as error:
        raise BadArguments(_complaints(error), effect) from None
    return replace(effect, args={name: to_json(getattr(model, name)) for name in type(model).model_fields})


def _complaints(error: ValidationError) -> str:
    return "\n".join(f"{'.'.join(str(at) for at in item['loc'])}: {item['msg']}" for item in error.errors())


_SILENT: Final = "The tool failed, and did not say why."


def mcp_tool(endpoint: MCPEndpoint, server_version: str, prefix: str, listed: ToolSpec) -> Tool:
    """A tool of an MCP server; its arguments are checked by the server. spec: "Tool registration"."""
    name = prefix + listed.name

    async def call(args: Arguments, ctx: NodeContext) -> Any:
        try:
            result = await ctx.perform(MCPCall(name=listed.name, endpoint=endpoint, args=args))
        except Exception as error:
            if ctx.is_fatal(error):
                raise
            raise ToolReportedError(f"Error: {error}") from error
        content = [_block(part) for part in result.content]
        if result.is_error:
            why = "\n".join(part["text"] for part in content if part.get("type") == "text") or _SILENT
            raise ToolReportedError(why, content or [{"type": "text", "text": _SILENT}])
        return content

    return Tool(name, server_version, _mcp_spec(name, listed), call, Origin.MCP_SERVER)


def _block(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """MCP's content as a content block of LangChain, which its clients translate for models. Audio stays."""
    mime_type = part.get("resource", part).get("mimeType")
    typed = {"mime_type": mime_type} if mime_type else {}
    kind = "image" if str(mime_type).startswith("image/") else "file"
    match part:
        case {"type": "text", "text": text} | {"type": "resource", "resource": {"text": text}}:
            return {"type": "text", "text": text}
        case {"type": "image", "data": data}:
            return {"type": "image", "base64": data, **typed}
        case {"type": "resource", "resource": {"blob": data}}:
            return {"type": kind, "base64": data, **typed}
        case {"type": "resource_link", "uri": uri}:
            return {"type": kind, "url": uri, **typed}
    return part


def _mcp_spec(name: str, listed: ToolSpec) -> ToolSpec:
    def never() -> None:
        """LangChain requires a function; this one is never called."""

    try:
        return spec_of_tool(
            StructuredTool(
                name=name, description=listed.description, args_schema=dict(listed.schema), func=never
            )
        )
    except (LookupError, ValueError, RecursionError):  # a reference LangChain cannot follow
        return ToolSpec(name, listed.description, listed.schema)


# Content blocks a tool message may consist of; any other list is data.
_BLOCK_TYPES = {
    "text",
    "image_url",
    "image",
    "json",
    "search_result",
    "custom_tool_call_output",
    "document",
    "file",
}


def as_content(result: Any) -> str | list[Any]:
    """The content of a tool message: text and content blocks stay, any other result becomes JSON."""
    if isinstance(result, str):
        return result
    if (
        isinstance(result, list)
        and result
        and all(isinstance(block, dict) and block.get("type") in _BLOCK_TYPES for block in result)
    ):
        return result
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError):
        return json.dumps(to_json(result), ensure_ascii=False)


def to_tool(tool: Any) -> Tool:
    """A tool from a hook's context, where it may have added one of LangChain, or a function.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(tool, Tool):
        return tool
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not callable(tool) and not isinstance(tool, BaseTool):
        raise TypeError(f"hooks must leave 'tools' a list of tools, and {describe(tool)} is none")
    return python_tool(str(name), "*", tool)


def bound_specs(tools: Sequence[Tool]) -> list[ToolSpec]:
    """The descriptions of tools for the model."""
    return [tool.spec for tool in tools]
