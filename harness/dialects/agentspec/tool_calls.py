"""Calls of tools, and requests: their effects, and the values of what comes back. spec: "Tools", "ApiNode".

Some need the confirmation of the user (25.4.2): the request for it, and the decision, have the form that LangChain
gives to them. The tools of toolboxes are those that MCP servers list when an agent first needs them (25.4.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.dialects.agentspec import connections, data_flow, tools
from harness.dialects.agentspec.properties import as_text, render
from harness.dialects.agentspec.types import same_type, type_of
from harness.dialects.kit.tool_calls import ToolReportedError, mcp_texts
from harness.engine.context import NodeContext, RunContext
from harness.errors import HarnessError
from harness.graph.effects import (
    HTTPCall,
    HTTPReply,
    MCPCall,
    MCPEndpoint,
    ToolCall,
    ToolSpec,
)
from harness.graph.http_call import http_call
from harness.graph.to_json import to_json
from harness.source.models import describe

# ------------------------------------------------------------------ confirmation by the user


_APPROVE: Final = "approve"
_REJECT: Final = "reject"


class ToolDenied(HarnessError):
    """A tool that the user did not allow to run."""

    code = "tool-denied"


class BadDecision(HarnessError):
    """An answer to the request for a confirmation that is no decision."""

    code = "bad-decision"


async def confirm(
    tool: tools.Tool, args: Mapping[str, Any], ctx: NodeContext, partial_update: Mapping[str, Any] | None
) -> None:
    """Pause for the user's decision, and return if it is to run the tool.

    Raises:
        ToolDenied: the user rejects it.
        BadDecision: the answer is not `{decisions: [{type: approve | reject, reason?}]}`.
    """
    request = {
        "action_requests": [{"name": tool.name, "arguments": to_json(dict(args))}],
        "review_configs": [{"action_name": tool.name, "allowed_decisions": [_APPROVE, _REJECT]}],
    }
    decision = _decision(tool, await ctx.pause(request, partial_update=partial_update))
    if decision["type"] == _REJECT:
        reason = decision.get("reason", "No reason was provided.")
        raise ToolDenied(f"the {tool} was denied by the user (reason: {reason})")


def _decision(tool: tools.Tool, answer: Any) -> Mapping[str, Any]:
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    only = decisions[0] if isinstance(decisions, list) and len(decisions) == 1 else None
    if isinstance(only, Mapping) and only.get("type") in (_APPROVE, _REJECT):
        return only
    wanted = f"{{decisions: [{{type: {_APPROVE}}}]}}, or {_REJECT} with a reason"
    raise BadDecision(f"the {tool}: expected the decision {wanted}; found {describe(answer)}")


# ------------------------------------------------------------------ requests


class UrlNotAllowed(HarnessError):
    """A request to a URL that the allow list does not have."""

    code = "url-not-allowed"


_FORM: Final = "application/x-www-form-urlencoded"


def request(component: tools.RemoteCall, values: Mapping[str, Any]) -> HTTPCall:
    """Return the request with placeholders filled.

    The body is sent as text if it is text, as a form if the Content-Type says so, else as JSON.
    """
    headers = {str(name): str(value) for name, value in render(component.all_headers, values).items()}
    data = render(component.data, values) or None
    types = [value for name, value in headers.items() if name.lower() == "content-type"]
    is_form = isinstance(data, Mapping) and any(_FORM in value.lower() for value in types)
    return http_call(
        str(render(component.http_method, values)).upper(),
        str(render(component.url, values)),
        json=None if is_form or isinstance(data, str) else data,
        form=data if is_form else None,
        text=data if isinstance(data, str) else "",
        query=render(component.query_params, values),
        headers=headers,
    )


async def perform(component: tools.RemoteCall, values: Mapping[str, Any], ctx: NodeContext) -> Any:
    """Send the request, and return the JSON of the response, else its text. An error status is a warning.

    Raises:
        UrlNotAllowed: the URL is not in the allow list.
    """
    call = request(component, values)
    if not component.allows(call.name):
        raise UrlNotAllowed(f"{component}: {call.name} is not in its url_allow_list")
    reply: HTTPReply = await connections.perform_with_retries(call, component.retry_policy, ctx)
    if reply.status >= 400:
        ctx.warn(f"{component}: {call.args['method']} {call.name} answered {reply.status}")
    return reply.text if reply.json is None else reply.json


# ------------------------------------------------------------------ calls


def spec_of(tool: tools.Tool) -> ToolSpec:
    """Return the description of a tool for models."""
    if isinstance(tool, tools.ListedTool):
        return tool.spec
    return ToolSpec(tool.name, tool.description or "", data_flow.schema_of(tool.inputs))


def endpoint_of(transport: connections.ClientTransport) -> MCPEndpoint:
    """Return the MCP server of a transport. Scenarios name it by the transport's id or name."""
    stdio = transport if isinstance(transport, connections.StdioTransport) else None
    remote = transport if isinstance(transport, connections.RemoteTransport) else None
    return MCPEndpoint(
        id=transport.id or transport.name,
        transport=transport.protocol,
        url=remote.url if remote else None,
        headers=remote.all_headers if remote else {},
        command=stdio.command if stdio else None,
        args=stdio.args if stdio else (),
        env=(stdio.env if stdio else None) or {},
        cwd=stdio.cwd if stdio else None,
        read_timeout_s=transport.session_parameters.read_timeout_seconds,
        client_certificate=isinstance(transport, connections.MutualTLSTransport),
        alias=transport.name,
    )


def effect_of(tool: tools.Tool, args: Mapping[str, Any]) -> ToolCall | MCPCall:
    """Return the effect of a refused call. That of a RemoteTool, which has no URL yet, is a call by its name."""
    return _mcp_call(tool, args) if isinstance(tool, tools.MCPTool) else _tool_call(tool, args)


def is_for_client(tool: tools.Tool, ctx: NodeContext) -> bool:
    """True if a call of the tool pauses the run. spec: "ClientTools are not executed by the executor"."""
    return isinstance(tool, tools.ClientTool) and not ctx.run.world.answers_for(_tool_call(tool, {}))


async def call(
    tool: tools.Tool,
    args: Mapping[str, Any],
    ctx: NodeContext,
    partial_update: Mapping[str, Any] | None = None,
    *,
    nth: int = 0,
) -> Any:
    """Call a tool and return its result.

    A tool that requires confirmation pauses the run, which is resumed with the decision. A ClientTool that the
    scenario does not answer pauses it too; it is resumed with the result.

    Args:
        tool: the tool.
        args: the values of its inputs, cast to their types.
        ctx: the context of the visit.
        partial_update: the state update while the run is paused; see `NodeContext.pause`.
        nth: the number of this call among those of the visit that may pause.

    Raises:
        ToolDenied: the user did not confirm the call.
        ToolReportedError: an MCP server reports that its tool failed.
        Exception: the error that the tool raised.
    """
    if tool.requires_confirmation:
        await confirm(tool, args, ctx, partial_update)
    if is_for_client(tool, ctx):
        return await ctx.pause({"tool": tool.name, "args": dict(args)}, partial_update=partial_update)
    if tool.requires_confirmation:  # a later call may pause too, and must not run this one again
        return await ctx.once(f"confirmed {nth}", lambda: _run(tool, args, ctx))
    return await _run(tool, args, ctx)


async def _run(tool: tools.Tool, args: Mapping[str, Any], ctx: NodeContext) -> Any:
    if isinstance(tool, tools.RemoteTool):
        return await perform(tool, args, ctx)
    if isinstance(tool, tools.MCPTool):
        policy = tool.retry_policy
        if policy is None and isinstance(tool.client_transport, connections.RemoteTransport):
            policy = tool.client_transport.retry_policy
        return _mcp_value(tool, await connections.perform_with_retries(_mcp_call(tool, args), policy, ctx))
    return await ctx.perform(_tool_call(tool, args))


def _tool_call(tool: tools.Tool, args: Mapping[str, Any]) -> ToolCall:
    return ToolCall(name=tool.name, alias=tool.id, args=args)


def _mcp_call(tool: tools.MCPTool, args: Mapping[str, Any]) -> MCPCall:
    return MCPCall(name=tool.name, endpoint=endpoint_of(tool.client_transport), args=args)


def _mcp_value(tool: tools.MCPTool, result: Any) -> Any:
    """Return the value of an MCP result: the structured content, else the text blocks."""
    texts = mcp_texts(result.content)
    if result.is_error:
        raise ToolReportedError("\n".join(texts) or f"{tool} failed")
    if isinstance(result.structured, Mapping) and not data_flow.is_single("string", tool.outputs):
        only_result = set(result.structured) == {"result"} and "result" not in tool.outputs
        return result.structured["result"] if only_result else result.structured
    return TextBlocks(texts)


@dataclass(frozen=True)
class TextBlocks:
    """The text blocks of an MCP result."""

    blocks: Sequence[str]


def _blocks_to_outputs(tool: tools.Tool, blocks: Sequence[str]) -> Any:
    """Return a block for each output, in order. A single block may hold all outputs as JSON."""
    if len(blocks) == 1 and not data_flow.is_single("string", tool.outputs):
        return data_flow.parse_json(blocks[0], blocks[0])
    return dict(zip(tool.outputs, blocks, strict=False))


def outputs_of(tool: tools.Tool, returned: Any) -> dict[str, Any]:
    """Return the values of a tool's outputs from its result.

    Raises:
        HarnessError: a value is missing or does not fit.
    """
    owner = f"{tool}: output"
    if isinstance(returned, TextBlocks):
        if not returned.blocks:
            return data_flow.cast_values(tool.outputs, {}, owner)
        returned = _blocks_to_outputs(tool, returned.blocks)
    return data_flow.cast_values(
        tool.outputs, data_flow.outputs_from_tool(returned, tool.outputs, str(tool)), owner
    )


def as_text_for_model(returned: Any) -> str:
    """Return the result of a tool as text for a model."""
    return "\n".join(returned.blocks) if isinstance(returned, TextBlocks) else as_text(returned)


# ------------------------------------------------------------------ toolboxes


class ToolboxMismatch(HarnessError):
    """A tool in the filter of a toolbox that its server does not list, or lists with other inputs."""

    code = "toolbox-mismatch"


async def tools_of(box: tools.MCPToolBox, run: RunContext) -> list[tools.ListedTool]:
    """Return the tools of a toolbox: those in its filter, in that order, else all that the server lists.

    Raises:
        ToolboxMismatch: the filter does not fit what the server lists.
        Exception: the server cannot be reached.
    """
    listed = {spec.name: spec for spec in await run.world.mcp_tools(endpoint_of(box.client_transport))}
    if not box.filtered:  # an empty filter is none
        return [tools.ListedTool.of(box, spec, None) for spec in listed.values()]
    missing = sorted(box.filtered.keys() - listed.keys())
    if missing:
        raise ToolboxMismatch(f"{box}: its server does not list {', '.join(missing)}")
    for name, wanted in box.filtered.items():
        if wanted is not None:
            _check_inputs(box, wanted, listed[name])
    return [tools.ListedTool.of(box, listed[name], wanted) for name, wanted in box.filtered.items()]


def _check_inputs(box: tools.MCPToolBox, wanted: tools.MCPToolSpec, listed: ToolSpec) -> None:
    """Raise an error if the inputs of a tool, with their types, are not those that its server lists."""
    properties = listed.schema.get("properties")
    found = properties if isinstance(properties, Mapping) else {}
    if wanted.inputs.keys() != found.keys() or not all(
        same_type(item.type, type_of(found[title])) for title, item in wanted.inputs.items()
    ):
        own = ", ".join(f"{title}: {item.type}" for title, item in wanted.inputs.items())
        others = ", ".join(f"{title}: {type_of(schema)}" for title, schema in found.items())
        text = f"{box}: '{wanted.name}' has the inputs ({own}), and its server lists ({others})"
        raise ToolboxMismatch(text)
