"""The start and end of a run: hooks, MCP servers, schemas of input and output, the answer.

spec: "Agents" (input_schema, output_schema), "Hooks", `mcp_servers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage

from harness.dialects.kit.manifest import input_values, refusing, warn_dropped_inputs
from harness.dialects.kit.rules import warning
from harness.dialects.sherma import document as doc
from harness.dialects.sherma import hooks as hook
from harness.dialects.sherma import sub_agents as a2a
from harness.dialects.sherma.agent import (
    LEGACY_CONDITION,
    Agent,
    AgentSession,
    Skills,
    hook_state,
    remote_skill,
)
from harness.dialects.sherma.call_llm import channel_updates
from harness.dialects.sherma.nodes import make_fetch, skill_tools
from harness.dialects.sherma.server_hooks import TOOL_PREFIX
from harness.dialects.sherma.sub_agents import sub_agent_tool
from harness.dialects.sherma.tools import mcp_tool
from harness.engine.context import NodeContext, RunContext
from harness.errors import ExpressionError, HarnessError, Span, WorldError
from harness.graph.effects import AgentCall
from harness.graph.messages import to_messages
from harness.graph.model import END, START, Dispatch, Edge, Lifecycle, Router, State
from harness.matchers.json_schema import schema_errors
from harness.source.document import Document
from harness.source.models import describe


class SchemaValidationError(HarnessError):
    """Data does not match the agent's `input_schema` or `output_schema`."""

    code = "schema"

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


def lifecycle(agent: Agent) -> Lifecycle:
    """Return the lifecycle of an agent."""
    of = _AgentLifecycle(agent)
    return Lifecycle(
        prepare=of.prepare, accept=of.accept, answer=of.answer, rescue=of.rescue, finish=of.finish
    )


class _AgentLifecycle:
    """The steps of an agent's lifecycle."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def prepare(self, run: RunContext) -> None:
        """Create the run's session: hooks, models, remote skills, tools of MCP servers, remote agents."""
        hooks = hook.Hooks([await installed.instance(run) for installed in self.agent.hooks])
        session = AgentSession(self.agent, hooks, self.agent.tools.copy())
        run.resources["session"] = session
        await self._fetch_skills(session, run)
        if hooks:
            session.invocation["models"] = await self._create_models(hooks)
        await self._register_mcp_tools(session, run)
        await self._describe_remote_agents(session, run)

    async def _register_mcp_tools(self, session: AgentSession, run: RunContext) -> None:
        """List the tools of the MCP servers and register them. spec: `mcp_servers`, "Tool registration"."""
        for server, span in self.agent.mcp_servers:
            endpoint = server.endpoint(server.id)
            with refusing("mcp-server", f"MCP server '{server.id}' cannot be used", span):
                listed = await run.world.mcp_tools(endpoint)
            for listed_tool in listed:
                if listed_tool.name.startswith(TOOL_PREFIX):
                    continue
                tool = mcp_tool(endpoint, server.version, server.tool_prefix or "", listed_tool)
                if tool.id in session.tools:
                    text = f"MCP server '{server.id}' provides a second tool '{tool.id}'"
                    hint = "give the server a 'tool_prefix'"
                    run.warn(warning("second-tool", text, span, hint).one_line)
                session.tools.add(tool)

    async def _describe_remote_agents(self, session: AgentSession, run: RunContext) -> None:
        """Add tools for remote agents, described by their cards; skipped for agents that stubs answer for."""
        ctx = NodeContext(run, "__start__", {})
        for agent in self.agent.sub_agents:
            if agent.url is None or run.world.answers_for(AgentCall(name=agent.id)):
                continue
            try:
                description = await a2a.description(agent.id, agent.url, ctx)
            except WorldError:
                raise
            except Exception as error:
                run.warn(f"nothing is known about agent '{agent.id}': {error}")
                continue
            if description:
                session.tools.add(sub_agent_tool(replace(agent, description=description)))

    async def _fetch_skills(self, session: AgentSession, run: RunContext) -> None:
        """Fetch the cards of remote skills and add these to the local ones. spec: `skills`, url."""
        if not self.agent.remote_skills:
            return
        fetch = make_fetch(NodeContext(run, "__start__", {}))
        fetched = []
        for declared, span in self.agent.remote_skills:
            with refusing("remote-skill", f"the card of skill '{declared.id}' cannot be used", span):
                fetched.append(remote_skill(declared, await fetch(str(declared.url)), self.agent.folders))
        skills = Skills([*self.agent.skills.skills, *fetched])
        listed = {skill["id"]: skill for skill in skills.listed()}
        variables = {**self.agent.variables, "skills": listed}
        session.agent = replace(self.agent, skills=skills, variables=variables)
        for tool in (*skill_tools(skills), *(tool for skill in fetched for tool in skill.tools)):
            session.tools.add(tool)

    async def _create_models(self, hooks: hook.Hooks) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return name and parameters of each model, which hooks may set. spec: on_chat_model_create."""
        models = {}
        for llm in self.agent.llms.values():
            given = {"model": llm.model_name}
            context = hook.ChatModelCreateContext(llm.id, llm.provider, llm.model_name, given)
            context = await hooks.run("on_chat_model_create", context)
            params = {key: value for key, value in context.kwargs.items() if key != "model"}
            name = context.model_name if context.model_name != llm.model_name else context.kwargs.get("model")
            models[llm.id] = (str(name or llm.model_name), params)
        return models

    async def accept(self, value: Any, run: RunContext) -> Mapping[str, Any]:
        """Return the state update of an input: text is one human message, a mapping gives initial values."""
        session = AgentSession.of(run)
        ctx = NodeContext(run, "__start__", {})
        values = input_values(value, "messages", "an input is text or a mapping of state fields")
        fields = [field.name for field in self.agent.definition.state.fields_]
        unknown = [name for name in values if name not in fields]
        warn_dropped_inputs(unknown, fields, "the agent's state has no such field", run)
        update = channel_updates(values, self.agent, ctx)
        self._validate(update.get("messages", ()), "agent_input", "input_schema")
        if not session.hooks:
            return update
        invoked = await self._before_invoke(session, run, update)
        return channel_updates(invoked.input, self.agent, ctx)

    async def _before_invoke(
        self, session: AgentSession, run: RunContext, update: Mapping[str, Any]
    ) -> hook.GraphInvokeContext:
        """Run the hooks before an invocation; each input and each resume is one. spec: before_graph_invoke."""
        config = {"recursion_limit": run.graph.recursion_limit, "configurable": {"thread_id": run.thread_id}}
        context = hook.GraphInvokeContext(self.agent.name, run.thread_id, config, dict(update))
        invoked = await session.hooks.run("before_graph_invoke", context)
        run.recursion_limit = int(invoked.config.get("recursion_limit", run.graph.recursion_limit))
        session.invocation.update(config=invoked.config, input=invoked.input)
        return invoked

    def _invocation(self, session: AgentSession, run: RunContext) -> tuple[str, str, Any, Any]:
        """Return the fields of `GraphInvokeContext` for the current invocation."""
        invocation = session.invocation
        return self.agent.name, run.thread_id, invocation.get("config", {}), invocation.get("input", {})

    async def answer(self, value: Any, run: RunContext) -> Any:
        """Return the answer for a paused node: `{messages: […]}` becomes messages, other values are kept."""
        session = AgentSession.of(run)
        answer, messages = value, [value]
        if isinstance(value, Mapping) and set(value) == {"messages"}:
            ctx = NodeContext(run, "__start__", {})
            answer = messages = channel_updates(dict(value), self.agent, ctx)["messages"]
            self._validate(messages, "agent_input", "input_schema")
        if session.hooks:
            await self._before_invoke(session, run, {"messages": messages})
        return answer

    async def rescue(self, error: Exception, run: RunContext) -> Exception | None:
        """Run the `on_error` hooks; None if they swallow the error. They never get a SchemaValidationError."""
        session = run.resources.get("session")
        if session is None or not session.hooks or isinstance(error, SchemaValidationError):
            return error
        context = hook.OnErrorContext(*self._invocation(session, run), error)
        seen = (await session.hooks.run("on_error", context)).error
        return seen if seen is None or isinstance(seen, Exception) else error

    async def finish(self, state: State, run: RunContext) -> Any:
        """Return the agent's answer: the content of the last message."""
        session = AgentSession.of(run)
        result: Mapping[str, Any] = state
        if session.hooks:
            context = hook.AfterGraphInvokeContext(*self._invocation(session, run), hook_state(state))
            result = (await session.hooks.run("after_graph_invoke", context)).result or {}
        messages = to_messages(result.get("messages") or []) if self.agent.definition.keeps_messages else []
        self._validate(messages[-1:], "agent_output", "output_schema")
        return messages[-1].content if messages else None

    def _validate(self, messages: Any, mark: str, key: str) -> None:
        """Validate DataParts tagged `agent_input` or `agent_output`. spec: input_schema, output_schema."""
        schema: Mapping[str, Any] | None = getattr(self.agent.definition, key)
        if schema is None:
            return
        for data in _marked_data(messages, mark):
            errors = schema_errors(schema, data)
            if errors:
                text = f"{schema.get('title', mark)}: {'; '.join(errors)}"
                raise SchemaValidationError(text, self.agent.document.span((key,)))


def _marked_data(messages: Any, mark: str) -> Iterator[Any]:
    for message in messages:
        content: Any = message.content if isinstance(message, BaseMessage) else ()
        for block in content if isinstance(content, list) else ():
            match block:
                case {"type": "data", "metadata": dict(metadata)} if metadata.get(mark) is True:
                    yield block.get("data")


Condition = Callable[[State, Agent], bool]

HAS_TOOL_CALLS = "has tool calls"
DEFAULT = "default"
"""The labels of edges that no condition of the manifest chooses."""


class NotABoolean(ExpressionError):
    """The value of a branch condition is not a boolean."""

    code = "not-a-boolean"


@dataclass(frozen=True)
class Choice:
    """The branches of an edge: the first whose condition holds is followed, else the default."""

    branches: tuple[tuple[Condition, Edge], ...]
    default: Edge

    def select(self, state: State, agent: Agent) -> Edge:
        """Return the edge to follow. Conditions after the first that holds are not evaluated."""
        return next((edge for holds, edge in self.branches if holds(state, agent)), self.default)

    @property
    def edges(self) -> list[Edge]:
        """All edges: those of the branches, and the default."""
        return [*(edge for _, edge in self.branches), self.default]


def edges_and_routers(agent: Agent) -> tuple[list[Edge], Mapping[str, Router]]:
    """Return the edges of an agent's graph, and routers for the nodes that have conditional edges."""
    graph = agent.definition.graph
    edges: list[Edge] = []
    routers: dict[str, Router] = {}
    written: dict[str, list[int]] = {}
    for at, written_edge in enumerate(graph.edges):
        written.setdefault(written_edge.source, []).append(at)

    def follow(source: str, *first: Choice) -> None:
        choices = [*first, *_choices_after(agent, source, written.get(source, ()))]
        edges.extend(edge for choice in choices for edge in choice.edges)
        if any(choice.branches for choice in choices):
            routers[source] = _router(choices)

    if graph.entry_point is not None:
        edges.append(Edge(START, graph.entry_point, span=agent.document.span(("graph", "entry_point"))))
    for source in (START, *(node.name for node in graph.nodes)):
        follow(source)
    for node in graph.nodes:
        if node.name in graph.injected:
            tools = graph.injected[node.name]
            follow(tools, Choice((), Edge(tools, node.name)))
        if node.on_error is not None and node.on_error.fallback is not None:
            edges.append(Edge(node.name, node.on_error.fallback, on_error=True))
    return edges, routers


def _choices_after(agent: Agent, source: str, positions: Sequence[int]) -> list[Choice]:
    """Return the choices after a node: one per edge (at these positions), all of which are followed."""
    graph = agent.definition.graph
    choices = [_choice(agent.document.at(("graph", "edges", at)), graph.edges[at]) for at in positions]
    if source not in graph.injected:
        return choices
    # spec: "Auto-injected tool_node": to the tools on tool calls, otherwise along the first edge.
    after = choices[0].default.target if choices else END
    tools = Edge(source, graph.injected[source], HAS_TOOL_CALLS)
    return [Choice(((_has_tool_calls, tools),), Edge(source, after, DEFAULT)), *choices[1:]]


def _has_tool_calls(state: State, _agent: Agent) -> bool:
    messages = state.get("messages")
    return bool(getattr(messages[-1], "tool_calls", None)) if messages else False


def _choice(part: Document, edge: doc.Edge) -> Choice:
    if not edge.branches:
        return Choice((), Edge(edge.source, edge.target or END, span=part.span()))
    branches = []
    for number, branch in enumerate(edge.branches):
        span = part.span(("branches", number))
        chosen = Edge(edge.source, branch.target, branch.condition.strip(), span=span)
        place = partial(part.span_within, ("branches", number, "condition"))
        branches.append((_condition(edge.source, branch.condition, place), chosen))
    return Choice(tuple(branches), Edge(edge.source, edge.default or END, DEFAULT, span=part.span()))


def _condition(source: str, text: str, place: Callable[[int, int], Span]) -> Condition:
    """Return the function of a branch condition. spec: branches.

    A value that is not a boolean, or a CEL error, fails the run.
    """
    if text.strip() == LEGACY_CONDITION:
        return _has_tool_calls

    def holds(state: State, agent: Agent) -> bool:
        where = f"condition {text.strip()!r} after {source!r}"
        try:
            value = agent.evaluate(text, state)
        except ExpressionError as error:
            failed, at = ExpressionError(f"{where}: {error}", source=text), (error.line, error.column)
        else:
            if isinstance(value, bool):
                return value
            failed, at = NotABoolean(f"{where} gave {describe(value)}, not a boolean", source=text), (1, 1)
        failed.span = place(*at)
        raise failed

    return holds


def _router(choices: Sequence[Choice]) -> Router:
    async def follow(state: State, run: RunContext) -> Sequence[Edge | Dispatch]:
        agent = AgentSession.of(run).agent
        return [choice.select(state, agent) for choice in choices]

    return follow
