"""Tool calls of ToolNodes and agents. spec: "Tools"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.dialects.agentspec import remote_calls
from harness.dialects.agentspec.casts import as_text
from harness.dialects.agentspec.data_flow import cast_values
from harness.dialects.agentspec.structured import is_single_string, outputs_from_tool, schema_of
from harness.dialects.agentspec.tools import ClientTool, MCPTool, RemoteTool, Tool
from harness.dialects.agentspec.transports import (
    ClientTransport,
    RemoteTransport,
    SSEmTLSTransport,
    StdioTransport,
    StreamableHTTPmTLSTransport,
)
from harness.dialects.kit.tool_calls import ToolReportedError, mcp_texts
from harness.engine.context import NodeContext
from harness.graph.effects import MCPCall, MCPEndpoint, ToolCall, ToolSpec


def spec_of(tool: Tool) -> ToolSpec:
    """Return the description of a tool for models."""
    return ToolSpec(tool.name, tool.description or "", schema_of(tool.inputs))


def endpoint_of(transport: ClientTransport) -> MCPEndpoint:
    """Return the MCP server of a transport. Scenarios name it by the transport's id or name."""
    stdio = transport if isinstance(transport, StdioTransport) else None
    remote = transport if isinstance(transport, RemoteTransport) else None
    return MCPEndpoint(
        id=transport.id or transport.name,
        transport=transport.protocol,
        url=remote.url if remote else None,
        headers=(remote.headers if remote else None) or {},
        command=stdio.command if stdio else None,
        args=stdio.args if stdio else (),
        env=(stdio.env if stdio else None) or {},
        cwd=stdio.cwd if stdio else None,
        read_timeout_s=transport.session_parameters.read_timeout_seconds,
        client_certificate=isinstance(transport, SSEmTLSTransport | StreamableHTTPmTLSTransport),
        alias=transport.name,
    )


def effect_of(tool: Tool, args: Mapping[str, Any]) -> ToolCall | MCPCall:
    """Return the effect of a refused call. That of a RemoteTool, which has no URL yet, is a call by its name."""
    return _mcp_call(tool, args) if isinstance(tool, MCPTool) else _tool_call(tool, args)


def is_for_client(tool: Tool, ctx: NodeContext) -> bool:
    """True if a call of the tool pauses the run. spec: "ClientTools are not executed by the executor"."""
    return isinstance(tool, ClientTool) and not ctx.run.world.answers_for(_tool_call(tool, {}))


async def call(
    tool: Tool, args: Mapping[str, Any], ctx: NodeContext, partial_update: Mapping[str, Any] | None = None
) -> Any:
    """Call a tool and return its result.

    A ClientTool that the scenario does not answer pauses the run, which is resumed with the result.

    Args:
        tool: the tool.
        args: the values of its inputs, cast to their types.
        ctx: the context of the visit.
        partial_update: the state update while the run is paused; see `NodeContext.pause`.

    Raises:
        ToolReportedError: an MCP server reports that its tool failed.
        Exception: the error that the tool raised.
    """
    if is_for_client(tool, ctx):
        return await ctx.pause({"tool": tool.name, "args": dict(args)}, partial_update=partial_update)
    if isinstance(tool, RemoteTool):
        return await remote_calls.perform(tool, args, ctx)
    if isinstance(tool, MCPTool):
        return _mcp_value(tool, await ctx.perform(_mcp_call(tool, args)))
    return await ctx.perform(_tool_call(tool, args))


def _tool_call(tool: Tool, args: Mapping[str, Any]) -> ToolCall:
    return ToolCall(name=tool.name, alias=tool.id, args=args)


def _mcp_call(tool: MCPTool, args: Mapping[str, Any]) -> MCPCall:
    return MCPCall(name=tool.name, endpoint=endpoint_of(tool.client_transport), args=args)


def _mcp_value(tool: MCPTool, result: Any) -> Any:
    """Return the value of an MCP result: the structured content, else the text blocks."""
    texts = mcp_texts(result.content)
    if result.is_error:
        raise ToolReportedError("\n".join(texts) or f"{tool} failed")
    if isinstance(result.structured, Mapping) and not is_single_string(tool.outputs):
        only_result = set(result.structured) == {"result"} and "result" not in tool.outputs
        return result.structured["result"] if only_result else result.structured
    return TextBlocks(texts)


@dataclass(frozen=True)
class TextBlocks:
    """The text blocks of an MCP result."""

    blocks: Sequence[str]


def _blocks_to_outputs(tool: Tool, blocks: Sequence[str]) -> Any:
    """Return a block for each output, in order. A single block may hold all outputs as JSON."""
    if len(blocks) == 1 and not is_single_string(tool.outputs):
        try:
            return json.loads(blocks[0])
        except (ValueError, RecursionError):
            return blocks[0]
    return dict(zip(tool.outputs, blocks, strict=False))


def outputs_of(tool: Tool, returned: Any) -> dict[str, Any]:
    """Return the values of a tool's outputs from its result.

    Raises:
        HarnessError: a value is missing or does not fit.
    """
    owner = f"{tool}: output"
    if isinstance(returned, TextBlocks):
        if not returned.blocks:
            return cast_values(tool.outputs, {}, owner)
        returned = _blocks_to_outputs(tool, returned.blocks)
    return cast_values(tool.outputs, outputs_from_tool(returned, tool.outputs, str(tool)), owner)


def as_text_for_model(returned: Any) -> str:
    """Return the result of a tool as text for a model."""
    return "\n".join(returned.blocks) if isinstance(returned, TextBlocks) else as_text(returned)
