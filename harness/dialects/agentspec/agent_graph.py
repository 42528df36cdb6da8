"""The graph of an agent: a node that calls the model, and a node that runs the tools it calls. spec: "Agent".

The state has `messages`, the conversation without the system prompt; `inputs`; `outputs`, once they are known; and
`turn`, the party that continues after a reply without tool calls.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from harness.dialects.agentspec import tool_calls
from harness.dialects.agentspec.agents import Agent, AgenticComponent, RemoteAgent
from harness.dialects.agentspec.connections import perform_with_retries
from harness.dialects.agentspec.data_flow import (
    USER,
    MissingValue,
    UnfitValue,
    addressed,
    agent_message,
    answer_text,
    cast_values,
    first_update,
    outputs_from_reply,
    parse_json,
    runtime_message,
    schema_of,
    unique_name,
    user_message,
)
from harness.dialects.agentspec.properties import as_text, render, scalar_types
from harness.dialects.agentspec.tool_calls import tools_of
from harness.dialects.agentspec.tools import ListedTool, MCPToolBox, Tool
from harness.dialects.agentspec.transforms import SUMMARIES, Summaries
from harness.dialects.kit.tool_calls import BadArguments, answer_call, answer_calls, refuse_all, to_ai_message
from harness.engine.callables import unknown_tool
from harness.engine.context import NodeContext, RunContext
from harness.errors import HarnessError
from harness.graph.effects import AgentCall, HumanCall, LLMReply
from harness.graph.messages import MessageLog, append_messages, message_text
from harness.graph.model import END, START, Channel, Dispatch, Edge, Graph, Lifecycle, Node, State, Update
from harness.matchers.json_schema import schema_errors

RECURSION_LIMIT = 200
"""The maximum number of node visits (model calls and rounds of tools) in one run."""

CHANNELS = (
    Channel("messages", append_messages, MessageLog),
    Channel("inputs", operator.or_, dict),  # a later turn replaces only the inputs it has
    Channel("outputs"),
    Channel("turn"),
)

MODEL: Final = "model"
NOBODY: Final = "nobody"

Updated = Callable[[Sequence[BaseMessage]], Mapping[str, Any]]


def agent_graph(agent: Agent) -> Graph:
    """Return the graph of an agent, for a run of its own and for the nodes of flows that run it."""
    functions = AgentNodes(agent)
    name = unique_name(agent.name)
    tools_name = f"{agent.name}_tools"
    nodes = [Node(name, "Agent", functions.call_model, agent.span())]
    to_tools = Edge(name, tools_name, "tool calls")
    to_itself = Edge(name, name, "outputs missing")
    to_end = Edge(name, END, "done")
    edges = [Edge(START, name, span=agent.span())]
    if agent.uses_tools:
        nodes.append(Node(tools_name, "tools", functions.use_tools, agent.span("tools")))
        edges += [to_tools, Edge(tools_name, name)]
    if agent.outputs:
        edges.append(to_itself)

    async def route(state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
        if agent.uses_tools and tool_calls_of(state["messages"]):
            return [to_tools]
        return [to_end if state["turn"] == NOBODY else to_itself]

    return Graph(
        name=agent.name,
        dialect="agentspec",
        nodes=tuple(nodes),
        edges=(*edges, to_end),
        channels=(*CHANNELS, SUMMARIES) if agent.transforms else CHANNELS,
        routers={name: route},
        lifecycle=Lifecycle(accept=functions.accept, finish=functions.finish),
        recursion_limit=RECURSION_LIMIT,
        output_types=scalar_types(agent.outputs),
    )


def tool_calls_of(messages: Sequence[BaseMessage]) -> Sequence[Any]:
    """Return the tool calls of the last message of a conversation."""
    last = messages[-1]
    return last.tool_calls if isinstance(last, AIMessage) else ()


class AgentLifecycle:
    """The lifecycle that graphs of agents and of remote agents share."""

    def __init__(self, agent: AgenticComponent) -> None:
        self.agent = agent

    async def accept(self, value: Any, run: RunContext) -> Mapping[str, Any]:
        """Return the first state update. Text is a message of the user, a mapping has the agent's inputs."""
        return {"turn": MODEL, **first_update(self.agent, value, run)}

    async def finish(self, state: State, _run: RunContext) -> Any:
        """Return the agent's outputs; the text of the last message if it has none."""
        if self.agent.outputs:
            return state["outputs"]
        return message_text(state["messages"][-1])

    def inputs(self, state: State) -> dict[str, Any]:
        """Return the values of the agent's inputs."""
        return cast_values(self.agent.inputs, state["inputs"], f"{self.agent}: input")


class AgentNodes(AgentLifecycle):
    """The node functions of an agent's graph."""

    def __init__(self, agent: Agent, key: str = "tools") -> None:
        """`key` is that of the agent's tools in the resources of a run."""
        self.agent: Agent = agent
        self._key = key

    async def _tools(self, run: RunContext) -> Mapping[str, Tool]:
        """Return the tools by name, the first of each. Those of toolboxes are listed once in a run."""
        found: dict[str, Tool] = run.resources.get(self._key, {})
        if not found:
            listed = [
                tool
                for box in self.agent.toolboxes
                if isinstance(box, MCPToolBox)
                for tool in await tools_of(box, run)
            ]
            for tool in [*self.agent.tools, *listed]:
                found.setdefault(tool.name, tool)
            run.resources[self._key] = found
        return found

    async def call_model(self, state: State, ctx: NodeContext) -> Update:
        """Pause for the user's answer if it is the user's turn, then call the model."""
        agent = self.agent
        answer: list[BaseMessage] = []
        if state["turn"] == USER:
            question = message_text(state["messages"][-1])
            answer = [user_message(answer_text(await ctx.pause(question)), agent.name)]
        system = SystemMessage(content=self._system_prompt(state))
        summaries: Summaries = dict(state.get(SUMMARIES.name, {}))
        conversation: Sequence[BaseMessage] = [*state["messages"], *answer]
        for transform in agent.transforms:
            conversation = await transform.apply(conversation, summaries, ctx)
        kept = {SUMMARIES.name: summaries} if agent.transforms else {}
        tools = await self._tools(ctx.run)
        listed = [tool for tool in tools.values() if isinstance(tool, ListedTool)]
        specs = [tool_calls.spec_of(tool) for tool in (*agent.tools, *listed)]
        call = agent.llm_config.call([system, *conversation], tools=specs)
        reply: LLMReply = await perform_with_retries(call, agent.llm_config.retry_policy, ctx)
        message = to_ai_message(reply, ctx.new_id)
        called = dict.fromkeys(call["name"] for call in message.tool_calls)
        addressed(message, agent.name, ", ".join(called) or USER)
        if not agent.uses_tools:
            refuse_all(message.tool_calls, ctx)
        outcome = self._outcome(message)
        if outcome["turn"] == USER and not _has_answer(message_text(message), state, ctx):
            text = f"{agent}: the reply has none of its outputs ({', '.join(agent.outputs)})"
            ctx.warn(f"{text}, so it is a question, and the run pauses")
        return Update({**outcome, **kept, "messages": [*answer, message, *outcome.get("messages", ())]})

    def _system_prompt(self, state: State) -> str:
        """Return the rendered prompt, with the schema of the outputs if there are any."""
        prompt = str(render(self.agent.system_prompt, self.inputs(state)))
        if not self.agent.outputs:
            return prompt
        schema = json.dumps(schema_of(self.agent.outputs), ensure_ascii=False)
        return f"{prompt}\n\nWhen you know them all, answer with nothing but a JSON object of this schema: {schema}"

    def _outcome(self, message: AIMessage) -> dict[str, Any]:
        """Return the state update for a reply.

        It has the outputs if the reply has them, or a correction for the model if they do not fit. Any other text is
        a question to the user.
        """
        if not self.agent.outputs or (message.tool_calls and self.agent.uses_tools):
            return {"turn": NOBODY}
        found = parse_json(message_text(message), None)
        found = found if isinstance(found, dict) else None
        if found is None and message.tool_calls:  # the agent has no tools
            calls = message.tool_calls
            answers = [addressed(unknown_tool(call, ()), call["name"], self.agent.name) for call in calls]
            return {"turn": MODEL, "messages": answers}
        if found is None or (found and not self.agent.outputs.keys() & found.keys()):
            return {"turn": USER} if self.agent.human_in_the_loop else self._reminder()
        try:
            return {"turn": NOBODY, "outputs": cast_values(self.agent.outputs, found, "output")}
        except (MissingValue, UnfitValue) as error:
            text = f"These are not the outputs: {error}. Please give them all again."
            return {"turn": MODEL, "messages": [runtime_message(text, self.agent.name)]}

    def _reminder(self) -> dict[str, Any]:
        """Return the state update for a question of an agent that has nobody to ask."""
        text = "Nobody can answer. Please go on by yourself, and answer with nothing but the JSON object."
        return {"turn": MODEL, "messages": [runtime_message(text, self.agent.name)]}

    async def use_tools(self, state: State, ctx: NodeContext) -> Update:
        """Answer the tool calls of the last message."""
        calls = tool_calls_of(state["messages"])
        return Update({"messages": await self.answer(calls, ctx, lambda messages: {"messages": messages})})

    async def answer(self, calls: Sequence[Any], ctx: NodeContext, updated: Updated) -> list[ToolMessage]:
        """Answer tool calls concurrently, then those that may pause one after the other.

        `updated` makes the state update of messages, for a pause.
        """
        tools = await self._tools(ctx.run)
        answers: dict[int, ToolMessage] = {}

        async def use(tool: Tool, args: Mapping[str, Any]) -> str:
            so_far = updated([answers[index] for index in sorted(answers)])
            checked = check_arguments(tool, args)
            returned = await tool_calls.call(tool, checked, ctx, partial_update=so_far, nth=len(answers))
            return tool_calls.as_text_for_model(returned)

        pausing = [
            index for index, call in enumerate(calls) if _may_pause(tools.get(call["name"]), call, ctx)
        ]
        others = [index for index in range(len(calls)) if index not in pausing]
        # A node that paused is re-run from its start, and must not run these tools a second time.
        made = await ctx.once(
            "tools", lambda: answer_calls((calls[index] for index in others), tools, use, ctx)
        )
        for index, answer in zip(others, made, strict=True):
            answers[index] = addressed(answer, calls[index]["name"], self.agent.name)
        for index in pausing:
            answer = await answer_call(calls[index], tools, use, ctx)
            answers[index] = addressed(answer, calls[index]["name"], self.agent.name)
        return [answers[index] for index in sorted(answers)]


def _may_pause(tool: Tool | None, call: Any, ctx: NodeContext) -> bool:
    """True if a call of a tool asks the user or the client."""
    if tool is None or not (tool.requires_confirmation or tool_calls.is_for_client(tool, ctx)):
        return False
    return not _cast_arguments(tool, call["args"])[1]  # wrong arguments are refused without a pause


def _has_answer(question: str, state: State, ctx: NodeContext) -> bool:
    """True if the scenario's `human` answers this question of an agent, or of the node that runs it."""
    caller = ctx.run.caller
    asks = caller.top if caller else ctx.name
    return ctx.run.world.has_answers([HumanCall(node=asks, name=asks, args={"value": question})], state)


def check_arguments(tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Cast the arguments of a call to the types of the tool's inputs, and add defaults.

    Raises:
        BadArguments: they do not fit.
    """
    found, wrong = _cast_arguments(tool, args)
    if wrong:
        raise BadArguments("\n".join(wrong), tool_calls.effect_of(tool, args))
    return found


def _cast_arguments(tool: Tool, args: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return the arguments of a call, cast and with defaults, and a message for each that does not fit."""
    if isinstance(tool, ListedTool):  # its server casts them
        return args, schema_errors(tool.spec.schema, args)
    try:
        found = cast_values(tool.inputs, args, "argument")
    except HarnessError as error:
        return {}, [str(error)]
    return found, [
        f"{title}: {error}"
        for title, value in found.items()
        for error in schema_errors(tool.inputs[title].schema, value)
    ]


# ------------------------------------------------------------------ remote agents


def remote_agent_graph(agent: RemoteAgent) -> Graph:
    """Return the graph of a remote agent, for which a scenario's `agents` answer. spec: "RemoteAgent"."""
    functions = _RemoteAgentNode(agent)
    name = unique_name(agent.name)
    return Graph(
        name=agent.name,
        dialect="agentspec",
        nodes=(Node(name, agent.component_type, functions.ask, agent.span()),),
        edges=(Edge(START, name, span=agent.span()), Edge(name, END)),
        channels=CHANNELS,
        lifecycle=Lifecycle(accept=functions.accept, finish=functions.finish),
        output_types=scalar_types(agent.outputs),
    )


class _RemoteAgentNode(AgentLifecycle):
    """The node function of a remote agent's graph."""

    def __init__(self, agent: RemoteAgent) -> None:
        self.agent: RemoteAgent = agent

    async def ask(self, state: State, ctx: NodeContext) -> Update:
        """Send the user's last message to the agent; if it has inputs, a JSON object with these and the message."""
        agent = self.agent
        human = [message for message in state["messages"] if message.type == "human"]
        text = message_text(human[-1]) if human else ""
        inputs = self.inputs(state)
        if inputs:
            text = as_text({**inputs, **({"message": text} if text else {})})
        hint = "the harness does not call remote agents"
        call = AgentCall(name=agent.name, alias=agent.id, args={"input": text}, hint=hint)
        found = answer = await perform_with_retries(call, agent.retries, ctx)
        reply = as_text(answer)
        if not isinstance(answer, Mapping):
            found = outputs_from_reply(reply, agent.outputs, str(agent))
        outputs = cast_values(agent.outputs, found, f"{agent}: output")
        return Update({"messages": [agent_message(reply, agent.name)], "outputs": outputs})
