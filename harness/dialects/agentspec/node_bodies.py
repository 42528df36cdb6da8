"""The bodies of node types: functions from a visit of the node to its result. `BODIES` has all of them.

spec: "Standard library of nodes to use in flows".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from langchain_core.messages import HumanMessage

from harness.dialects.agentspec import flows
from harness.dialects.agentspec.agents import Agent, SpecializedAgent
from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.confirmation import confirm
from harness.dialects.agentspec.data_flow import (
    Body,
    IncomingValue,
    MissingValue,
    NodeResult,
    UnfitValue,
    Visit,
    agent_message,
    answer_text,
    cast_values,
    is_single,
    outputs_from_reply,
    outputs_from_tool,
    parse_json,
    schema_of,
    user_message,
)
from harness.dialects.agentspec.flows import COLLECTED, ITERATED, MapNode
from harness.dialects.agentspec.properties import Property, as_text, render
from harness.dialects.agentspec.retry import perform_with_retries
from harness.dialects.agentspec.teams import Team, speaker_of
from harness.dialects.agentspec.tools import ClientTool, ListedTool, MCPTool, RemoteCall, RemoteTool, Tool
from harness.dialects.agentspec.transports import (
    ClientTransport,
    MutualTLSTransport,
    RemoteTransport,
    StdioTransport,
)
from harness.dialects.agentspec.types import is_list_of
from harness.dialects.kit.tool_calls import ToolReportedError, mcp_texts, refuse_all
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import (
    HTTPCall,
    HTTPReply,
    LLMReply,
    MCPCall,
    MCPEndpoint,
    ToolCall,
    ToolSpec,
)
from harness.graph.http_call import http_call
from harness.source.models import describe
from harness.time.gather import staggered_gather


class UnequalLists(HarnessError):
    """Iterated lists of different lengths.

    spec: "all the input lists must have the same length, otherwise a runtime error will be thrown".
    """

    code = "unequal-lengths"


class NothingToIterate(HarnessError):
    """A MapNode of which no input is a list of the type of the subflow's input."""

    code = "nothing-to-iterate"


class UrlNotAllowed(HarnessError):
    """A request to a URL that the allow list does not have."""

    code = "url-not-allowed"


async def run_map(visit: Visit) -> NodeResult:
    """Run the subflow for each element. The runs start in the order of the list and overlap while they wait.

    spec: "asynchronously map each value of a collection".
    """
    node: MapNode = visit.node
    results = await staggered_gather(
        visit.run_inside(node.subflow, inputs, key=str(index))
        for index, inputs in enumerate(_run_inputs(node, visit))
    )
    outputs = {
        COLLECTED + title: _reduce(node, title, [result.outputs[title] for result in results])
        for title in node.output_reducers
    }
    return NodeResult(outputs, messages=[message for result in results for message in result.messages])


def _run_inputs(node: MapNode, visit: Visit) -> Sequence[Mapping[str, Any]]:
    """Return the inputs of each run of the subflow: an element of each iterated list; other inputs are repeated."""
    inner = {ITERATED + title: item for title, item in node.subflow.inputs.items()}
    if not inner:
        return ()
    lists = {
        title: value
        for title, item in inner.items()
        if isinstance(value := visit.inputs[title], list)  # it may have been cast to another declared type
        and _is_iterated(visit.incoming[title], item)
    }
    lengths = {title: len(value) for title, value in lists.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"'{title}' has {length}" for title, length in lengths.items())
        raise UnequalLists(f"{node}: its lists must have the same length; {counts}")
    if not lists:
        inputs = ", ".join(f"'{title}'" for title in inner)
        raise NothingToIterate(f"{node}: none of its inputs is a list to walk through (they are {inputs})")
    count = next(iter(lengths.values()))
    return [
        {
            title.removeprefix(ITERATED): lists[title][index] if title in lists else visit.inputs[title]
            for title in inner
        }
        for index in range(count)
    ]


def _is_iterated(incoming: IncomingValue, inner: Property) -> bool:
    """True if a value is a list of elements for the subflow's input, by the type of its source.

    A default that is a list is iterated unless the subflow's input is an array itself.
    """
    if not isinstance(incoming.value, list):
        return False
    if incoming.source is None:
        return inner.schema.get("type") != "array"
    return is_list_of(incoming.source.type, inner.type)


_REDUCERS: Final[Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    "append": list,
    "sum": sum,
    "average": fmean,
    "max": max,
    "min": min,
}


def _reduce(node: MapNode, title: str, values: Sequence[Any]) -> Any:
    reducer = node.output_reducers[title]
    if not values and reducer in ("average", "max", "min"):
        collected = node.outputs[COLLECTED + title]
        if collected.has_default:
            return collected.default
        raise MissingValue(f"{node}: cannot take the {reducer} of '{title}', because its list is empty")
    return _REDUCERS[reducer](values)


_FORM: Final = "application/x-www-form-urlencoded"


def request(component: RemoteCall, values: Mapping[str, Any]) -> HTTPCall:
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


async def perform(component: RemoteCall, values: Mapping[str, Any], ctx: NodeContext) -> Any:
    """Send the request, and return the JSON of the response, else its text. An error status is a warning.

    Raises:
        UrlNotAllowed: the URL is not in the allow list.
    """
    call = request(component, values)
    if not component.allows(call.name):
        raise UrlNotAllowed(f"{component}: {call.name} is not in its url_allow_list")
    reply: HTTPReply = await perform_with_retries(call, component.retry_policy, ctx)
    if reply.status >= 400:
        ctx.warn(f"{component}: {call.args['method']} {call.name} answered {reply.status}")
    return reply.text if reply.json is None else reply.json


def spec_of(tool: Tool) -> ToolSpec:
    """Return the description of a tool for models."""
    if isinstance(tool, ListedTool):
        return tool.spec
    return ToolSpec(tool.name, tool.description or "", schema_of(tool.inputs))


def endpoint_of(transport: ClientTransport) -> MCPEndpoint:
    """Return the MCP server of a transport. Scenarios name it by the transport's id or name."""
    stdio = transport if isinstance(transport, StdioTransport) else None
    remote = transport if isinstance(transport, RemoteTransport) else None
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
        client_certificate=isinstance(transport, MutualTLSTransport),
        alias=transport.name,
    )


def effect_of(tool: Tool, args: Mapping[str, Any]) -> ToolCall | MCPCall:
    """Return the effect of a refused call. That of a RemoteTool, which has no URL yet, is a call by its name."""
    return _mcp_call(tool, args) if isinstance(tool, MCPTool) else _tool_call(tool, args)


def is_for_client(tool: Tool, ctx: NodeContext) -> bool:
    """True if a call of the tool pauses the run. spec: "ClientTools are not executed by the executor"."""
    return isinstance(tool, ClientTool) and not ctx.run.world.answers_for(_tool_call(tool, {}))


async def call(
    tool: Tool,
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


async def _run(tool: Tool, args: Mapping[str, Any], ctx: NodeContext) -> Any:
    if isinstance(tool, RemoteTool):
        return await perform(tool, args, ctx)
    if isinstance(tool, MCPTool):
        policy = tool.retry_policy
        if policy is None and isinstance(tool.client_transport, RemoteTransport):
            policy = tool.client_transport.retry_policy
        return _mcp_value(tool, await perform_with_retries(_mcp_call(tool, args), policy, ctx))
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
    if isinstance(result.structured, Mapping) and not is_single("string", tool.outputs):
        only_result = set(result.structured) == {"result"} and "result" not in tool.outputs
        return result.structured["result"] if only_result else result.structured
    return TextBlocks(texts)


@dataclass(frozen=True)
class TextBlocks:
    """The text blocks of an MCP result."""

    blocks: Sequence[str]


def _blocks_to_outputs(tool: Tool, blocks: Sequence[str]) -> Any:
    """Return a block for each output, in order. A single block may hold all outputs as JSON."""
    if len(blocks) == 1 and not is_single("string", tool.outputs):
        return parse_json(blocks[0], blocks[0])
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


async def start(visit: Visit) -> NodeResult:
    """Run a StartNode: its outputs are the inputs of the flow."""
    return NodeResult(visit.inputs)


async def end(visit: Visit) -> NodeResult:
    """Run an EndNode: its inputs are the outputs of the flow, its `branch_name` the branch of the flow."""
    return NodeResult(visit.inputs, visit.node.branch_name)


async def llm(visit: Visit) -> NodeResult:
    """Run an LlmNode: send one user message, the rendered prompt. The conversation is neither sent nor changed."""
    node: flows.LlmNode = visit.node
    prompt = str(render(node.prompt_template, visit.inputs))
    outputs = node.outputs
    wanted = None
    if outputs and not is_single("string", outputs):
        form = {"name": "structured_output", "schema": schema_of(outputs), "strict": False}
        wanted = {"type": "json_schema", "json_schema": form}
    call = node.llm_config.call([HumanMessage(content=prompt)], response_format=wanted)
    reply: LLMReply = await perform_with_retries(call, node.llm_config.retry_policy, visit.ctx)
    refuse_all(reply.tool_calls, visit.ctx)
    return NodeResult(outputs_from_reply(reply.text, outputs, str(node)))


async def api(visit: Visit) -> NodeResult:
    """Run an ApiNode: its outputs are top-level keys of the JSON response; the inferred `response` is all of it.

    A response that is not an object is the value of a single output, as for a RemoteTool.
    """
    node: flows.ApiNode = visit.node
    answer = await perform(node, visit.inputs, visit.ctx)
    if not isinstance(answer, Mapping):
        return NodeResult(outputs_from_tool(answer, node.outputs, str(node)))
    return NodeResult(
        {"response": answer} if node.outputs_whole_response and "response" not in answer else answer
    )


async def agent(visit: Visit) -> NodeResult:
    """Run an AgentNode: run the agent in this conversation until its outputs are known.

    schema: "If branches are configured, the agent will be prompted to select a branch".
    """
    node: flows.AgentNode = visit.node
    result = await visit.run_inside(node.agent, visit.inputs)
    asked = speaker_of(node.agent) if isinstance(node.agent, SpecializedAgent | Team) else node.agent
    if not isinstance(asked, Agent) or len(node.branches) < 2:
        return result
    names = ", ".join(node.branches)
    question = f"How does the flow go on? Answer with one of these and nothing else: {names}"
    conversation = [*visit.state["messages"], *result.messages, HumanMessage(content=question)]
    model = asked.llm_config
    reply: LLMReply = await perform_with_retries(model.call(conversation), model.retry_policy, visit.ctx)
    refuse_all(reply.tool_calls, visit.ctx)
    branch = reply.text.strip()
    if branch not in node.branches:
        raise UnfitValue(f"{node}: '{branch}' is not one of its branches ({names})")
    return replace(result, branch=branch)


async def tool(visit: Visit) -> NodeResult:
    """Run a ToolNode: call the tool. The text of an error that an MCP server reports becomes the output."""
    node: flows.ToolNode = visit.node
    try:
        returned = await call(node.tool, visit.inputs, visit.ctx)
    except ToolReportedError as error:
        visit.ctx.warn(f"{node}: the {node.tool} reports an error, which is handed on: {error}")
        returned = TextBlocks([str(error)])
    return NodeResult(outputs_of(node.tool, returned))


async def branching(visit: Visit) -> NodeResult:
    """Run a BranchingNode: "default … when … the input does not match any key in the mapping".

    The keys are text, so a value of another type matches none: an input declared as an integer takes `default`.
    """
    node: flows.BranchingNode = visit.node
    key = next(iter(visit.inputs.values()))
    if isinstance(key, str) and key in node.mapping:
        return NodeResult(branch=node.mapping[key])
    shown = f"'{key}'" if isinstance(key, str) else describe(key)
    visit.ctx.because(f"{shown} is no key of its mapping: {', '.join(node.mapping)}", "branch")
    return NodeResult(branch=flows.DEFAULT)


async def input_message(visit: Visit) -> NodeResult:
    """Run an InputMessageNode: append its message, interrupt, and append the user's answer."""
    node: flows.InputMessageNode = visit.node
    question = None if node.message is None else str(render(node.message, visit.inputs))
    messages = [] if question is None else [agent_message(question, node.name)]
    answer = answer_text(await visit.ctx.pause(question, partial_update={"messages": messages}))
    return NodeResult(
        dict.fromkeys(node.outputs, answer), messages=[*messages, user_message(answer, node.name)]
    )


async def output_message(visit: Visit) -> NodeResult:
    """Run an OutputMessageNode: append its message."""
    node: flows.OutputMessageNode = visit.node
    return NodeResult(messages=[agent_message(str(render(node.message, visit.inputs)), node.name)])


async def flow(visit: Visit) -> NodeResult:
    """Run a FlowNode: its branch is that of the subflow's EndNode that was reached."""
    return await visit.run_inside(visit.node.subflow, visit.inputs)


async def parallel_flows(visit: Visit) -> NodeResult:
    """Run a ParallelFlowNode. The flows start in their order and overlap while they wait."""
    node: flows.ParallelFlowNode = visit.node
    results = await staggered_gather(
        visit.run_inside(subflow, {title: visit.inputs[title] for title in subflow.inputs}, key=str(index))
        for index, subflow in enumerate(node.subflows)
    )
    outputs = {title: value for result in results for title, value in result.outputs.items()}
    return NodeResult(outputs, messages=[message for result in results for message in result.messages])


async def catch_exception(visit: Visit) -> NodeResult:
    """Run a CatchExceptionNode: a flow that fails leaves no messages, and its outputs have their defaults."""
    try:
        result = await flow(visit)
    except Exception as error:
        if visit.ctx.is_fatal(error):
            raise
        visit.ctx.because(error, "branch")
        return NodeResult({flows.CAUGHT_INFO: str(error)}, flows.CAUGHT)
    return replace(result, outputs={**result.outputs, flows.CAUGHT_INFO: None})


BODIES: Final[Mapping[type[Component], Body]] = {
    flows.StartNode: start,
    flows.EndNode: end,
    flows.LlmNode: llm,
    flows.ApiNode: api,
    flows.AgentNode: agent,
    flows.FlowNode: flow,
    flows.CatchExceptionNode: catch_exception,
    flows.ParallelFlowNode: parallel_flows,
    flows.MapNode: run_map,
    flows.ParallelMapNode: run_map,
    flows.BranchingNode: branching,
    flows.ToolNode: tool,
    flows.InputMessageNode: input_message,
    flows.OutputMessageNode: output_message,
}
"""The body of each node type of Agent Spec."""
