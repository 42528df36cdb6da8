"""The bodies of node types: functions from a visit of the node to its result. `BODIES` has all of them.

spec: "Standard library of nodes to use in flows".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Final

from langchain_core.messages import HumanMessage

from harness.dialects.agentspec import data_flow, flows, tool_calls
from harness.dialects.agentspec.agents import Agent, SpecializedAgent, Team, speaker_of
from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.connections import perform_with_retries
from harness.dialects.agentspec.data_flow import NodeResult, Visit
from harness.dialects.agentspec.flows import COLLECTED, ITERATED, MapNode
from harness.dialects.agentspec.properties import Property, render
from harness.dialects.agentspec.types import is_list_of
from harness.dialects.kit.tool_calls import ToolReportedError, refuse_all
from harness.errors import HarnessError
from harness.graph.effects import LLMReply
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


def _is_iterated(incoming: data_flow.IncomingValue, inner: Property) -> bool:
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
        raise data_flow.MissingValue(
            f"{node}: cannot take the {reducer} of '{title}', because its list is empty"
        )
    return _REDUCERS[reducer](values)


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
    if outputs and not data_flow.is_single("string", outputs):
        form = {"name": "structured_output", "schema": data_flow.schema_of(outputs), "strict": False}
        wanted = {"type": "json_schema", "json_schema": form}
    call = node.llm_config.call([HumanMessage(content=prompt)], response_format=wanted)
    reply: LLMReply = await perform_with_retries(call, node.llm_config.retry_policy, visit.ctx)
    refuse_all(reply.tool_calls, visit.ctx)
    return NodeResult(data_flow.outputs_from_reply(reply.text, outputs, str(node)))


async def api(visit: Visit) -> NodeResult:
    """Run an ApiNode: its outputs are top-level keys of the JSON response; the inferred `response` is all of it.

    A response that is not an object is the value of a single output, as for a RemoteTool.
    """
    node: flows.ApiNode = visit.node
    answer = await tool_calls.perform(node, visit.inputs, visit.ctx)
    if not isinstance(answer, Mapping):
        return NodeResult(data_flow.outputs_from_tool(answer, node.outputs, str(node)))
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
        raise data_flow.UnfitValue(f"{node}: '{branch}' is not one of its branches ({names})")
    return replace(result, branch=branch)


async def tool(visit: Visit) -> NodeResult:
    """Run a ToolNode: call the tool. The text of an error that an MCP server reports becomes the output."""
    node: flows.ToolNode = visit.node
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
    messages = [] if question is None else [data_flow.agent_message(question, node.name)]
    answer = data_flow.answer_text(await visit.ctx.pause(question, partial_update={"messages": messages}))
    return NodeResult(
        dict.fromkeys(node.outputs, answer), messages=[*messages, data_flow.user_message(answer, node.name)]
    )


async def output_message(visit: Visit) -> NodeResult:
    """Run an OutputMessageNode: append its message."""
    node: flows.OutputMessageNode = visit.node
    return NodeResult(messages=[data_flow.agent_message(str(render(node.message, visit.inputs)), node.name)])


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


BODIES: Final[Mapping[type[Component], data_flow.Body]] = {
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
