"""Tools: what a model may call, where it comes from, and what its result looks like to the model.

spec: `tools`, `mcp_servers` (tool registration), `sub_agents` (wrapped as tools), "Tool binding modes".
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as as_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError

from harness.dialects.kit.tool_calls import BadArguments, ToolReportedError
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.callables import call_with
from harness.graph.effects import MCPCall, MCPEndpoint, ToolCall, ToolSpec
from harness.graph.to_json import to_json
from harness.source.suggest import did_you_mean

Arguments = Mapping[str, Any]


class ToolNotFound(HarnessError):
    """A reference to a tool that is not registered. It fails the node that makes it, when it runs."""

    code = "unknown-tool"


class Origin(IntEnum):
    """Where a tool comes from; models are told of all tools in this order."""

    SKILL = 0
    MCP_SERVER = 1
    MANIFEST = 2
    SUB_AGENT = 3


@dataclass(frozen=True)
class Tool:
    """A registered tool.

    `id` is what manifests and scenarios call it, `spec.name` what the model sees. `call` performs it, as
    an effect of the node, with the arguments a model gave, or raises BadArguments.
    """

    id: str
    version: str
    spec: ToolSpec
    call: Callable[[Arguments, NodeContext], Awaitable[Any]]
    origin: Origin = Origin.MANIFEST

    @property
    def name(self) -> str:
        """What the model sees; hooks know tools by it."""
        return self.spec.name

    @property
    def description(self) -> str:
        """What the model is told about it."""
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

    def copy(self) -> ToolRegistry:
        """A registry with the same tools, to be added to."""
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
        """A tool; `*` is its latest version, anything else exact.

        Raises:
            ToolNotFound: no such tool, or no such version of it.
        """
        versions = self._versions.get(id_)
        if versions is None:
            hint = did_you_mean(id_, self._versions)
            raise ToolNotFound(f"tool '{id_}' is not registered" + (f" ({hint})" if hint else ""))
        if version == "*":
            return _latest(versions)
        if version not in versions:
            known = ", ".join(versions)
            raise ToolNotFound(f"tool '{id_}' has no version '{version}' (it has {known})")
        return versions[version]


def _latest(versions: Mapping[str, Tool]) -> Tool:
    return versions[max(versions, key=version_order)]


def version_order(version: str) -> list[int]:
    """A key that sorts versions by their numbers."""
    return [int(part) for part in re.findall(r"\d+", version)]


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
    """A Python tool: a LangChain tool, or a function, which is made into one.

    `native` makes what is really called, for a visit; such tools belong to the dialect and need no stub.
    """
    tool: BaseTool = found if isinstance(found, BaseTool) else as_tool(found)
    schema: Any = tool.tool_call_schema
    spec = _spec_of(tool)

    async def call(args: Arguments, ctx: NodeContext) -> Any:
        async def real() -> Any:
            return await call_with(tool if native is None else native(ctx), args)

        asked = _checked(schema, args)
        return await ctx.perform(
            ToolCall(name=id_, alias=tool.name, args=asked, real=real, native=native is not None)
        )

    return Tool(id_, version, spec, call, origin)


def _spec_of(tool: BaseTool) -> ToolSpec:
    """A tool as LangChain tells models of it: without the titles that pydantic gives, references resolved."""
    function = convert_to_openai_tool(tool)["function"]
    return ToolSpec(
        tool.name, function.get("description", ""), function.get("parameters", {"type": "object"})
    )


def _checked(schema: Any, args: Arguments) -> Arguments:
    """The arguments as the tool takes them, as plain data: defaults filled in, strangers left out.

    Raises:
        BadArguments: they do not fit its signature.
    """
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return args
    try:
        model = schema.model_validate(args)
    except ValidationError as error:
        raise BadArguments(_complaints(error)) from None
    return {name: to_json(getattr(model, name)) for name in type(model).model_fields}


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
            raise ToolReportedError(_SILENT, content or [{"type": "text", "text": _SILENT}])
        return content

    return Tool(name, server_version, _mcp_spec(name, listed), call, Origin.MCP_SERVER)


def _block(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """MCP's content as LangChain's content block, which its clients translate for their models. Audio stays."""
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
        """LangChain wants a function; nobody calls this one."""

    try:
        return _spec_of(
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
    """What a tool message says: text stays text, content blocks stay blocks, the rest becomes JSON."""
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


def as_tool_of_ours(tool: Any) -> Tool:
    """A tool a hook left: ours, or a LangChain one it added."""
    return tool if isinstance(tool, Tool) else python_tool(tool.name, "*", tool)


def bound_specs(tools: Sequence[Tool]) -> list[ToolSpec]:
    """What the model is told of its tools."""
    return [tool.spec for tool in tools]
