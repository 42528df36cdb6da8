"""The bodies of node types: functions from a visit of the node to its result. `BODIES` has all of them.

spec: "Standard library of nodes to use in flows".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from langchain_core.messages import HumanMessage

from harness.dialects.agentspec import flows, remote_calls, tool_calls
from harness.dialects.agentspec.agents import Agent
from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.conversation import agent_message, answer_text, user_message
from harness.dialects.agentspec.data_flow import UnfitValue
from harness.dialects.agentspec.map_node import run_map
from harness.dialects.agentspec.placeholders import render
from harness.dialects.agentspec.structured import (
    is_single_string,
    outputs_from_reply,
    outputs_from_tool,
    schema_of,
)
from harness.dialects.agentspec.visit import Body, NodeResult, Visit
from harness.dialects.kit.tool_calls import ToolReportedError, refuse_all
from harness.graph.effects import LLMReply


async def start(visit: Visit) -> NodeResult:
    """Run a StartNode: its outputs are the inputs of the flow."""
    return NodeResult(visit.inputs)


async def end(visit: Visit) -> NodeResult:
    """Run an EndNode: its inputs are the outputs of the flow, its `branch_name` the branch of the flow."""
    return NodeResult(visit.inputs, _node(visit, flows.EndNode).branch_name)


async def llm(visit: Visit) -> NodeResult:
    """Run an LlmNode: send one user message, the rendered prompt. The conversation is neither sent nor changed."""
    node = _node(visit, flows.LlmNode)
    prompt = str(render(node.prompt_template, visit.inputs))
    outputs = node.outputs
    wanted = None
    if outputs and not is_single_string(outputs):
        form = {"name": "structured_output", "schema": schema_of(outputs), "strict": False}
        wanted = {"type": "json_schema", "json_schema": form}
    call = node.llm_config.call([HumanMessage(content=prompt)], response_format=wanted)
    reply: LLMReply = await visit.ctx.perform(call)
    refuse_all(reply.tool_calls, visit.ctx)
    return NodeResult(outputs_from_reply(reply.text, outputs, str(node)))


async def api(visit: Visit) -> NodeResult:
    """Run an ApiNode: its outputs are top-level keys of the JSON response; the inferred `response` is all of it.

    A response that is not an object is the value of a single output, as for a RemoteTool.
    """
    node = _node(visit, flows.ApiNode)
    answer = await remote_calls.perform(node, visit.inputs, visit.ctx)
    if not isinstance(answer, Mapping):
        return NodeResult(outputs_from_tool(answer, node.outputs, str(node)))
    return NodeResult(
        {"response": answer} if node.outputs_whole_response and "response" not in answer else answer
    )


async def agent(visit: Visit) -> NodeResult:
    """Run an AgentNode: run the agent in this conversation until its outputs are known.

    schema: "If branches are configured, the agent will be prompted to select a branch".
    """
    node = _node(visit, flows.AgentNode)
    result = await visit.run_inside(node.agent, visit.inputs)
    if not isinstance(node.agent, Agent) or len(node.branches) < 2:
        return result
    names = ", ".join(node.branches)
    question = f"How does the flow go on? Answer with one of these and nothing else: {names}"
    conversation = [*visit.state["messages"], *result.messages, HumanMessage(content=question)]
    reply: LLMReply = await visit.ctx.perform(node.agent.llm_config.call(conversation))
    refuse_all(reply.tool_calls, visit.ctx)
    branch = reply.text.strip()
    if branch not in node.branches:
        raise UnfitValue(f"{node}: '{branch}' is not one of its branches ({names})")
    return replace(result, branch=branch)


async def tool(visit: Visit) -> NodeResult:
    """Run a ToolNode: call the tool. The text of an error that an MCP server reports becomes the output."""
    node = _node(visit, flows.ToolNode)
    try:
        returned = await tool_calls.call(node.tool, visit.inputs, visit.ctx)
    except ToolReportedError as error:
        visit.ctx.warn(f"{node}: the {node.tool} reports an error, which is handed on: {error}")
        returned = tool_calls.TextBlocks([str(error)])
    return NodeResult(tool_calls.outputs_of(node.tool, returned))


async def branching(visit: Visit) -> NodeResult:
    """Run a BranchingNode: "default … when … the input does not match any key in the mapping".

    The keys are text, so a value of another type matches none: an input declared as an integer takes `default`.
    """
    node = _node(visit, flows.BranchingNode)
    key = next(iter(visit.inputs.values()))
    return NodeResult(branch=node.mapping.get(key, flows.DEFAULT) if isinstance(key, str) else flows.DEFAULT)


async def input_message(visit: Visit) -> NodeResult:
    """Run an InputMessageNode: append its message, interrupt, and append the user's answer."""
    node = _node(visit, flows.InputMessageNode)
    question = None if node.message is None else str(render(node.message, visit.inputs))
    messages = [] if question is None else [agent_message(question, node.name)]
    answer = answer_text(await visit.ctx.pause(question, partial_update={"messages": messages}))
    return NodeResult(
        dict.fromkeys(node.outputs, answer), messages=[*messages, user_message(answer, node.name)]
    )


async def output_message(visit: Visit) -> NodeResult:
    """Run an OutputMessageNode: append its message."""
    node = _node(visit, flows.OutputMessageNode)
    return NodeResult(messages=[agent_message(str(render(node.message, visit.inputs)), node.name)])


async def flow(visit: Visit) -> NodeResult:
    """Run a FlowNode: its branch is that of the subflow's EndNode that was reached."""
    return await visit.run_inside(_node(visit, flows.FlowNode).subflow, visit.inputs)


BODIES: Final[Mapping[type[Component], Body]] = {
    flows.StartNode: start,
    flows.EndNode: end,
    flows.LlmNode: llm,
    flows.ApiNode: api,
    flows.AgentNode: agent,
    flows.FlowNode: flow,
    flows.MapNode: run_map,
    flows.BranchingNode: branching,
    flows.ToolNode: tool,
    flows.InputMessageNode: input_message,
    flows.OutputMessageNode: output_message,
}
"""The body of each node type of Agent Spec."""


def _node(visit: Visit, model: type[Any]) -> Any:
    assert isinstance(visit.node, model)
    return visit.node
