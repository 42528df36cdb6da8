"""The graph of a team (25.4.2): of each agent a node that calls its model, and one that runs the tools it calls.

The state has `messages`, the conversation with the user, and `speaker`, the agent that leads it; `threads`, what
agents said to each other, by sender and recipient; and `waiting`, the threads in which an answer is awaited, the
innermost last. `inputs`, `outputs` and `turn` are those of an agent (`agent_graph`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from harness.dialects.agentspec import agent_graph
from harness.dialects.agentspec.agents import Agent, AgenticComponent, Team, speaker_of
from harness.dialects.agentspec.data_flow import addressed, unique_name
from harness.dialects.agentspec.properties import scalar_types
from harness.dialects.agentspec.tools import Tool
from harness.dialects.agentspec.transforms import SUMMARIES
from harness.dialects.kit.tool_calls import BadArguments, RefusedCall, refuse
from harness.engine.callables import Call, bad_arguments, error_message, result_message
from harness.engine.context import NodeContext, RunContext
from harness.graph.messages import MessageLog, append_messages, message_text
from harness.graph.model import END, START, Channel, Edge, Graph, Lifecycle, Node, Routes, State, Update

SEND: Final = "send_message"
HAND_OFF: Final = "handoff_conversation"

_NEXT: Final = "next"
"""The key, for the router alone, of the node to go to and the condition of the edge."""

Thread = Sequence[str]
"""The node of the agent that asks, and the name by which it addresses the other. The user's is None."""
Threads = Mapping[str, Mapping[str, Sequence[BaseMessage]]]


def team_graph(team: Team) -> Graph:
    """Return the graph of a team, for a run of its own and for the nodes of flows that run it."""
    contacts = team.contacts()
    names: dict[Agent, str] = {}
    for agent in contacts:
        names[agent] = unique_name(agent.name, names.values())
    members: dict[str, _Member] = {}
    for agent, name in names.items():
        members[name] = _Member(team, agent, name, contacts[agent], names, members)
    lead = names[team.lead]
    edges = {(edge.source, edge.target, edge.condition): edge for edge in _edges(team, members, lead)}

    async def enter(state: State, _run: RunContext) -> Routes:
        return [edges[START, state["speaker"], None]]

    async def route(source: str, state: State, _run: RunContext) -> Routes:
        return [edges[source, *state[_NEXT]]]

    routers = {source: partial(route, source) for source, *_ in edges}
    lifecycle = _TeamLifecycle(team)
    return Graph(
        name=team.name,
        dialect="agentspec",
        nodes=tuple(node for member in members.values() for node in member.nodes()),
        edges=tuple(edges.values()),
        channels=(
            *agent_graph.CHANNELS,
            Channel("speaker", initial=lambda: lead),
            Channel("threads", _merged, dict),
            Channel("waiting", initial=list),
            *([SUMMARIES] if any(agent.transforms for agent in contacts) else ()),
        ),
        routers={**routers, START: enter},
        lifecycle=Lifecycle(accept=lifecycle.accept, finish=lifecycle.finish),
        recursion_limit=agent_graph.RECURSION_LIMIT,
        output_types=scalar_types(team.outputs),
    )


class _TeamLifecycle(agent_graph.AgentLifecycle):
    async def accept(self, value: Any, run: RunContext) -> Mapping[str, Any]:
        """Return the first state update. Nobody waits: a turn that failed may have left threads without an answer."""
        return {**await super().accept(value, run), "waiting": []}


def _edges(team: Team, members: Mapping[str, _Member], lead: str) -> Iterator[Edge]:
    speakers = [lead, *(name for name in members if name != lead)] if team.hands_off else [lead]
    yield from (Edge(START, name, span=team.span()) for name in speakers)
    for name, member in members.items():
        if member.speaking.agent.uses_tools:
            yield Edge(name, member.tools_name, "tool calls")
            yield Edge(member.tools_name, name)
        for other in dict.fromkeys(member.contacts.values()):
            if team.hands_off:
                yield Edge(member.tools_name, other, HAND_OFF)
            if team.sends_messages:
                yield Edge(member.tools_name, other, SEND)
                yield from (Edge(other, target, "answer") for target in (name, member.tools_name))
        if name in speakers:
            yield from [Edge(name, name, "outputs missing")] if team.outputs else ()
            yield Edge(name, END, "done")


def _merged(left: Threads, right: Threads) -> Threads:
    """Append messages to threads: the reducer of the channel."""
    merged = {sender: dict(threads) for sender, threads in left.items()}
    for sender, threads in right.items():
        own = merged.setdefault(sender, {})
        for called, messages in threads.items():
            own[called] = append_messages(MessageLog(own.get(called, ())), messages)
    return merged


def _current(state: State) -> Thread | None:
    return state["waiting"][-1] if state["waiting"] else None


def _messages(state: State, thread: Thread | None) -> Sequence[BaseMessage]:
    found: Sequence[BaseMessage] = (
        state["messages"] if thread is None else state["threads"][thread[0]][thread[1]]
    )
    return found


def _said(thread: Thread | None, messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """Return the state update for messages in a thread."""
    return {"messages": messages} if thread is None else {"threads": {thread[0]: {thread[1]: messages}}}


def _both(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state update for messages in two threads."""
    threads = _merged(first.get("threads", {}), second.get("threads", {}))
    return {**first, **second, **({"threads": threads} if threads else {})}


def _open_calls(messages: Sequence[BaseMessage]) -> list[Any]:
    """Return the calls of an agent's last message that have no answer yet."""
    answered = set[str]()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return [call for call in message.tool_calls if call["id"] not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return []


class _Member:
    """An agent of a team. `speaking` and `asked` are its nodes in the conversation with the user, and in threads."""

    def __init__(
        self,
        team: Team,
        agent: Agent,
        name: str,
        contacts: Mapping[str, AgenticComponent],
        names: Mapping[Agent, str],
        members: Mapping[str, _Member],
    ) -> None:
        self.name, self.tools_name = name, f"{name}_tools"
        self.agent = agent
        self.contacts = {called: names[speaker_of(it)] for called, it in contacts.items()}
        self._members = members
        asking = {SEND: _sending(contacts)} if team.sends_messages and contacts else {}
        handing = {HAND_OFF: _handing_off(contacts)} if team.hands_off and contacts else {}
        outputs = [dict(item.schema) for item in team.outputs.values()]
        self._talking = {**asking, **handing}
        self.speaking = self._nodes(contacts, self._talking, outputs, "speaking")
        self.asked = self._nodes(contacts, asking, [], "asked")

    def _nodes(
        self,
        contacts: Mapping[str, AgenticComponent],
        talking: Mapping[str, Tool],
        outputs: Sequence[Any],
        role: str,
    ) -> agent_graph.AgentNodes:
        known = [f"- {called}: {it.description or ''}".rstrip(": ") for called, it in contacts.items()]
        told = "\n".join(["You work with these agents, whom the user does not know:", *known])
        agent = self.agent.changed(
            system_prompt="\n\n".join([self.agent.system_prompt, *([told] if talking else [])]),
            tools=[*self.agent.tools, *talking.values()],
            outputs=outputs,
        )
        return agent_graph.AgentNodes(agent, f"tools of {self.name}, {role}")

    def nodes(self) -> Iterator[Node]:
        """Yield its nodes in the graph."""
        yield Node(self.name, "Agent", self.call_model, self.agent.span())
        if self.speaking.agent.uses_tools:
            yield Node(self.tools_name, "tools", self.use_tools, self.agent.span("tools"))

    async def call_model(self, state: State, ctx: NodeContext) -> Update:
        """Call the model with the thread that it is in. A reply without tool calls ends the thread."""
        thread = _current(state)
        nodes = self.speaking if thread is None else self.asked
        view = {**state, "messages": _messages(state, thread)}
        if thread is not None:
            view["turn"] = agent_graph.MODEL
        name = " → ".join(thread or ())  # each thread has summaries of its own
        view[SUMMARIES.name] = state.get(SUMMARIES.name, {}).get(name, {})
        made = {**(await nodes.call_model(view, ctx)).values}
        summaries = {SUMMARIES.name: {name: made.pop(SUMMARIES.name)}} if SUMMARIES.name in made else {}
        messages = made["messages"]
        if nodes.agent.uses_tools and agent_graph.tool_calls_of(messages):
            update, following = (
                made if thread is None else _said(thread, messages),
                (self.tools_name, "tool calls"),
            )
        elif thread is None:
            done = made["turn"] == agent_graph.NOBODY
            update, following = made, (END, "done") if done else (self.name, "outputs missing")
        else:
            update, following = self._answered(thread, messages, state)
        return Update({**update, **summaries}, routing_values={_NEXT: following})

    def _answered(
        self, thread: Thread, messages: Sequence[BaseMessage], state: State
    ) -> tuple[dict[str, Any], tuple[str, str]]:
        """Return the state update for the answer to another agent, and its node that goes on, with the condition."""
        sender, outer = self._members[thread[0]], state["waiting"][:-1]
        asked_in = outer[-1] if outer else None
        call, *others = [
            call for call in _open_calls(_messages(state, asked_in)) if call["name"] in sender._talking
        ]
        answer = result_message(call, message_text(messages[-1]))
        told = _said(asked_in, [addressed(answer, self.agent.name, sender.agent.name)])
        update = {**_both(_said(thread, messages), told), "waiting": outer}
        return update, (sender.tools_name if others else sender.name, "answer")

    async def use_tools(self, state: State, ctx: NodeContext) -> Update:
        """Answer the open tool calls up to the first that addresses another agent, who goes on.

        A handoff is the last call of a reply: those after it are refused.
        """
        thread = _current(state)
        nodes = self.speaking if thread is None else self.asked
        offered = {tool.name: tool for tool in nodes.agent.tools if self._talking.get(tool.name) is tool}
        calls = _open_calls(_messages(state, thread))
        names = [call["name"] for call in calls]
        end = names.index(HAND_OFF) + 1 if HAND_OFF in offered and HAND_OFF in names else len(calls)
        answers = await nodes.answer(
            [call for call in calls[:end] if call["name"] not in offered], ctx, partial(_said, thread)
        )
        answers += [self._refused(call, "the conversation was handed over", ctx) for call in calls[end:]]
        for call in calls[:end]:
            if call["name"] in offered:
                args = self._arguments(call, offered[call["name"]], state, ctx)
                if not isinstance(args, ToolMessage):
                    return self._addressed(call, args, answers, state)
                answers.append(args)
        return Update(_said(thread, answers), routing_values={_NEXT: (self.name, None)})

    def _arguments(
        self, call: Call, tool: Tool, state: State, ctx: NodeContext
    ) -> Mapping[str, Any] | ToolMessage:
        """Return the arguments of a call that addresses another agent; the answer to it if it is refused."""
        try:
            args = agent_graph.check_arguments(tool, call["args"])
        except BadArguments as error:
            ctx.refuse(error.effect, error)
            return bad_arguments(call, error)
        called, thread = args["recipient"], _current(state)
        if thread is not None and self.contacts[called] == thread[0]:
            return self._refused(call, f"{called} waits for your answer", ctx)
        if [self.name, called] in state["waiting"]:
            return self._refused(call, f"{called} has not answered yet", ctx)
        return args

    def _refused(self, call: Call, why: str, ctx: NodeContext) -> ToolMessage:
        refuse(call, RefusedCall(why), ctx)
        return error_message(call, f"{call['name']} was not called: {why}.")

    def _addressed(
        self, call: Call, args: Mapping[str, Any], answers: Sequence[BaseMessage], state: State
    ) -> Update:
        """Return the update for a call that addresses another agent. `answers` are those to earlier calls."""
        called, thread = args["recipient"], _current(state)
        other = self.contacts[called]
        if call["name"] == HAND_OFF:
            taken = result_message(call, f"{called} goes on with the conversation.")
            update = {**_said(thread, [*answers, taken]), "speaker": other}
        else:
            message = addressed(HumanMessage(content=args["message"]), self.agent.name, called)
            inner = [self.name, called]
            update = _both(_said(thread, answers), _said(inner, [message]))
            update["waiting"] = [*state["waiting"], inner]
        return Update(update, routing_values={_NEXT: (other, call["name"])})


def _sending(contacts: Collection[str]) -> Tool:
    text = (
        "Ask another agent, and wait for its answer. It sees nothing but what you and it say to each other."
    )
    return _talking_tool(SEND, text, {"message": {}, "recipient": {"enum": list(contacts)}})


def _handing_off(contacts: Collection[str]) -> Tool:
    text = "Hand the conversation with the user over to another agent, which goes on instead of you."
    return _talking_tool(HAND_OFF, text, {"recipient": {"enum": list(contacts)}})


def _talking_tool(name: str, description: str, inputs: Mapping[str, Mapping[str, Any]]) -> Tool:
    written = [{"title": title, "type": "string", **more} for title, more in inputs.items()]
    return Tool.model_validate({"name": name, "description": description, "inputs": written, "outputs": []})
