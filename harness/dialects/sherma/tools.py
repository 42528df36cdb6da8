"""Tools: the registry, Python tools, MCP tools, and the content of tool messages.

spec: `tools`, `mcp_servers` (tool registration), `sub_agents` (wrapped as tools), "Tool binding modes".
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as as_tool
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ValidationError

from harness.dialects.kit.manifest import UnimportedObject, is_class
from harness.dialects.kit.tool_calls import BadArguments, ToolReportedError, spec_of_tool
from harness.dialects.sherma import document as doc
from harness.engine.callables import call_with
from harness.engine.context import NodeContext
from harness.errors import HarnessError, ManifestError, Problem, Span
from harness.graph.effects import MCPCall, MCPEndpoint, ToolCall, ToolSpec
from harness.graph.to_json import to_json
from harness.source.display import did_you_mean
from harness.source.models import describe

_PLAIN: Final = re.compile(r"\d+(\.\d+)*")


def resolve_version(versions: Collection[str], wanted: str) -> str | None:
    """Return the wanted version as written, else the latest equal version; None if there is none."""
    if wanted in versions and wanted != "*":
        return wanted
    fitting = [version for version in versions if same_version(version, wanted)]
    return max(fitting, key=version_order, default=None)


def find_version(versions: Collection[str], wanted: str) -> str | None:
    """Return the version that `resolve_version` finds, else the latest in a range such as `>=1.0,<2` (PEP 440)."""
    found = resolve_version(versions, wanted)
    if found is not None:
        return found
    try:
        wanted_range = SpecifierSet(wanted)
        return max((version for version in versions if version in wanted_range), key=Version, default=None)
    except (InvalidSpecifier, InvalidVersion):
        return None


def same_version(one: str, other: str) -> bool:
    """True if two versions are equal, such as `1.0` and `1.0.0`. `*` equals any version."""
    if one == other or not {"*", ""}.isdisjoint((one, other)):
        return True
    plain = all(_PLAIN.fullmatch(version) for version in (one, other))
    return plain and _without_zeros(one) == _without_zeros(other)


def version_order(version: str) -> list[int]:
    """Return a sort key for versions: the numbers in it."""
    return [int(part) for part in re.findall(r"\d+", version)]


def _without_zeros(version: str) -> list[int]:
    numbers = version_order(version)
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


Arguments = Mapping[str, Any]


class ToolNotFound(HarnessError):
    """A reference to a tool that is not registered; it fails the node that uses it."""

    code = "unknown-tool"


class Origin(IntEnum):
    """The source of a tool; models get tools in this order."""

    SKILL = 0
    MCP_SERVER = 1
    MANIFEST = 2
    SUB_AGENT = 3


@dataclass(frozen=True)
class Tool:
    """A registered tool.

    id              its name in manifests and scenarios; models see `spec.name`
    call            calls it as an effect of the node; raises BadArguments
    has_known_name  False if it was not imported, so that its name for models is unknown
    function        what its import path names, or None
    """

    id: str
    version: str
    spec: ToolSpec
    call: Callable[[Arguments, NodeContext], Awaitable[Any]]
    origin: Origin = Origin.MANIFEST
    has_known_name: bool = True
    function: Any = None

    @property
    def name(self) -> str:
        """The name that models and hooks see."""
        return self.spec.name

    @property
    def description(self) -> str:
        """The description that models see."""
        return self.spec.description


class ToolRegistry:
    """Tools by id and version, in order of registration. A later tool of the same id and version wins."""

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
        """Return a new registry with the same tools."""
        twin = ToolRegistry()
        twin._versions = {id_: dict(versions) for id_, versions in self._versions.items()}
        return twin

    def all(self) -> list[Tool]:
        """Return every version of every tool, by origin, the latest version first."""
        found = [
            versions[version]
            for versions in self._versions.values()
            for version in sorted(versions, key=version_order, reverse=True)
        ]
        return sorted(found, key=lambda tool: tool.origin)

    def get(self, id_: str, version: str = "*") -> Tool:
        """Return a tool; `*` is its latest version. A tool declared without a version matches any.

        Raises:
            ToolNotFound: no such tool, or no such version of it.
        """
        versions = self._versions.get(id_)
        if versions is None:
            hint = did_you_mean(id_, self._versions)
            raise ToolNotFound(f"tool '{id_}' is not registered" + (f" ({hint})" if hint else ""))
        found = resolve_version(versions, version)
        if found is None:
            raise ToolNotFound(f"tool '{id_}' has no version '{version}' (it has {', '.join(versions)})")
        return versions[found]


def unique_by_name(tools: Iterable[Tool]) -> list[Tool]:
    """Return the tools without duplicate names; the first of a name is kept."""
    return list({tool.name: tool for tool in reversed(list(tools))}.values())[::-1]


def python_tool(
    id_: str,
    version: str,
    found: Any,
    *,
    native: Callable[[NodeContext], Any] | None = None,
    origin: Origin = Origin.MANIFEST,
) -> Tool:
    """Return a tool for a LangChain tool, or for a function, which is turned into one.

    `native` returns the function that a visit calls: such tools belong to the dialect and need no stub.
    """
    tool: BaseTool = found if isinstance(found, BaseTool) else as_tool(found)
    schema: Any = tool.tool_call_schema
    spec = spec_of_tool(tool)

    async def call(args: Arguments, ctx: NodeContext) -> Any:
        async def real() -> Any:
            return await call_with(tool if native is None else native(ctx), args)

        effect = ToolCall(name=id_, alias=tool.name, args=args, real=real, native=native is not None)
        return await ctx.perform(_validate_arguments(schema, effect))

    return Tool(id_, version, spec, call, origin, function=found)


def imported_tool(declared: doc.Tool, found: Any, where: Span, *, origin: Origin = Origin.MANIFEST) -> Tool:
    """Return a tool for the object that was found at its import path, which is written at `where`.

    Raises:
        ManifestError: the object is not a tool.
    """
    if is_class(found):
        text = f"'{declared.import_path}' is a class, not a tool"
        raise ManifestError(Problem("not-a-tool", text, where, "name an instance of it"))
    if isinstance(found, UnimportedObject):

        async def call(_args: Arguments, _ctx: NodeContext) -> Any:
            raise ToolNotFound(f"tool '{declared.id}' was not imported")

        name = found.tool_name
        spec = ToolSpec(name or declared.id, "", {"type": "object"})
        return Tool(declared.id, declared.version, spec, call, origin, has_known_name=name is not None)
    try:
        return python_tool(declared.id, declared.version, found, origin=origin)
    except Exception as error:
        text = f"this is not a tool: {type(error).__name__}: {error}"
        raise ManifestError(Problem("not-a-tool", text, where)) from None


def _validate_arguments(schema: Any, effect: ToolCall) -> ToolCall:
    """Return the call with validated arguments: defaults are filled in, unknown arguments dropped.

    Raises:
        BadArguments: they do not match the tool's signature.
    """
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return effect
    try:
        model = schema.model_validate(effect.args)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise BadArguments("\n".join(faults), effect) from None
    return replace(effect, args={name: to_json(getattr(model, name)) for name in type(model).model_fields})


_NO_MESSAGE: Final = "The tool failed, and did not say why."


def mcp_tool(endpoint: MCPEndpoint, server_version: str, prefix: str, listed: ToolSpec) -> Tool:
    """Return a tool of an MCP server, which checks the arguments itself. spec: "Tool registration"."""
    name = prefix + listed.name

    async def call(args: Arguments, ctx: NodeContext) -> Any:
        try:
            result = await ctx.perform(MCPCall(name=listed.name, endpoint=endpoint, args=args))
        except Exception as error:
            if ctx.is_fatal(error):
                raise
            raise ToolReportedError(f"Error: {error}") from error
        content = [_content_block(part) for part in result.content]
        if result.is_error:
            why = "\n".join(part["text"] for part in content if part.get("type") == "text") or _NO_MESSAGE
            raise ToolReportedError(why, content or [{"type": "text", "text": _NO_MESSAGE}])
        return content

    try:
        described = StructuredTool(
            name=name, description=listed.description, args_schema=dict(listed.schema), func=_never
        )
        spec = spec_of_tool(described)
    except (LookupError, ValueError, RecursionError):  # LangChain cannot resolve a reference
        spec = ToolSpec(name, listed.description, listed.schema)
    return Tool(name, server_version, spec, call, Origin.MCP_SERVER)


def _never() -> None:
    """Never called: LangChain requires a function."""


def _content_block(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert MCP content to a LangChain content block; audio is returned as it is."""
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


# Content blocks that a tool message may have; any other list is data.
_BLOCK_TYPES: Final = frozenset(
    {"text", "image_url", "image", "json", "search_result", "custom_tool_call_output", "document", "file"}
)


def as_content(result: Any) -> str | list[Any]:
    """Return the content of a tool message: text and content blocks as they are, other results as JSON."""
    if isinstance(result, str):
        return result
    blocks = result if isinstance(result, list) else ()
    if blocks and all(isinstance(block, dict) and block.get("type") in _BLOCK_TYPES for block in blocks):
        return list(blocks)
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError):
        return json.dumps(to_json(result), ensure_ascii=False)


def to_tool(tool: Any) -> Tool:
    """Return a tool for one that a hook put into its context: also a LangChain tool, or a function.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(tool, Tool):
        return tool
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not callable(tool) and not isinstance(tool, BaseTool):
        raise TypeError(f"hooks must leave 'tools' a list of tools, and {describe(tool)} is not a tool")
    return python_tool(str(name), "*", tool)
