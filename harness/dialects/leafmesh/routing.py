"""Edges of a mesh, and the routers that call agents. NOTES 4, 11.

The router of an agent gets its `agents.AgentResult`: it stores the output and passes it to the called
agents. spec: "`can_call` Format", "Narration Routing".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.manifest import strip_code_fence
from harness.dialects.leafmesh import conditions
from harness.dialects.leafmesh.agency import Handover, MeshParts, dispatch
from harness.dialects.leafmesh.agents import RESULT, AgentResult
from harness.dialects.leafmesh.conditions import Condition
from harness.dialects.leafmesh.document import Agent, EntryPoint, Mesh
from harness.dialects.leafmesh.llm_agent import llm_call
from harness.dialects.leafmesh.session import Session, session_of, stored_yields
from harness.engine.context import RunContext
from harness.errors import HarnessError, WorldError
from harness.graph.effects import LLMReply
from harness.graph.events import Join
from harness.graph.model import GOTO, START, Dispatch, Edge, Rerun, Router, Routes, State
from harness.graph.to_json import compact_json, error_text, from_json
from harness.source.display import did_you_mean
from harness.source.document import Document

SUMMARIZER: Final = "summarizer"
"""The node name of its model calls. It is not an agent of the mesh and never in `path`. NOTES 2.3."""


def reads_narrations(mesh: Mesh) -> bool:
    """True if narrations have an effect. NOTES 12.4."""
    return mesh.manager.enabled and mesh.manager.can_intervene


def narrating(mesh: Mesh) -> list[str]:
    """Return the agents after which the Summarizer is asked, who may call any other."""
    return [name for name, agent in mesh.agents.items() if agent.narration and reads_narrations(mesh)]


async def recommended_agents(
    mesh: Mesh, name: str, output: Mapping[str, Any], state: State, run: RunContext
) -> list[str]:
    """Ask the Summarizer after an agent has settled; return the agents it recommends, in its order.

    If the call fails or the answer is malformed, the result is empty, with a warning.
    """
    agent = mesh.agents[name]
    call = llm_call(mesh.manager.model, mesh, _messages(mesh, name, agent, output))
    try:
        reply: LLMReply = await run.perform(call, state, SUMMARIZER)
    except WorldError:
        raise
    except Exception as error:
        run.warn(f"the Summarizer failed after agent '{name}', and calls nobody: {error_text(error)}")
        return []
    answer = from_json(strip_code_fence(reply.text))
    listed = answer.get("next_agents") if isinstance(answer, Mapping) else None
    if not isinstance(listed, list):
        run.warn(
            f"the Summarizer's answer after agent '{name}' has no list of next_agents, so it calls nobody"
        )
        return []
    named = list(dict.fromkeys(map(str, listed)))
    for each in named:
        if each not in mesh.agents:
            hint = did_you_mean(each, mesh.agents)
            text = f"the Summarizer recommends '{each}' after agent '{name}', and there is no such agent"
            run.warn(f"{text} ({hint})" if hint else text)
    return [each for each in named if each in mesh.agents]


def _messages(mesh: Mesh, name: str, agent: Agent, output: Mapping[str, Any]) -> list[BaseMessage]:
    manager = mesh.manager
    parts = [
        f"You coordinate a mesh of agents (domain: {manager.domain}). An agent has settled. Answer with JSON: "
        '{"next_agents": [names of agents to call beside those that its conditions call]}.',
        f"AGENTS\n{', '.join(mesh.agents)}",
        f"NARRATION OF {name}\n{agent.narration}",
    ]
    if manager.prompt:
        parts.append(f"EVALUATION CRITERIA\n{manager.prompt}")
    settled = compact_json({"agent": name, "output": output})
    return [SystemMessage(content="\n\n".join(parts)), HumanMessage(content=settled)]


class LeafMeshError(HarnessError):
    """An agent cannot be rerun: it has not run before, and no input is given."""

    code = "no-stored-input"


def rerun_dispatch(rerun: Rerun, session: Session) -> Dispatch:
    """Return the call that reruns the agent. Its output is stored and routed as usual.

    Raises:
        LeafMeshError: the agent has no stored input.
    """
    before = session.starts.get(rerun.node)
    if rerun.input is not None:
        given = dict(rerun.input)
    elif before is not None:
        given = before.plain_input
    else:
        text = f"agent '{rerun.node}' has not run in this session, so it has no input to be run again with"
        raise LeafMeshError(text)
    review = None
    if rerun.feedback is not None or rerun.reason:
        previous = None if before is None else before.call.output
        review = {"previous_output": previous, "feedback": rerun.feedback, "reason": rerun.reason}
    return dispatch(Edge(START, rerun.node), Handover(given, previous_start=before, rerun=review))


def incompletable_joins(name: str, called: Mapping[str, Sequence[str]], parts: MeshParts) -> frozenset[str]:
    """Return the fan-in agents whose joins cannot be completed by the rerun of an agent.

    Their joins have fired in this session, and a new join would wait in vain for the members that do not
    rerun. `called` has the callees of each agent. None are returned if a narration may call any agent.
    """
    mesh, joins = parts.mesh, parts.joins
    reached: set[str] = set()
    more = {name}
    while more:
        reached |= more
        targets = {(caller, target) for caller in reached for target in called[caller]}
        held = {target for target, join in joins.items() if join.missing(reached) is not None}
        more = {
            target for caller, target in targets if target not in held or caller not in joins[target].members
        } - reached
    if not reached.isdisjoint(narrating(mesh)):
        return frozenset()
    return frozenset(joins.keys() - reached)


_ALWAYS: Final = conditions.parse(True)


@dataclass(frozen=True)
class CanCallEntry:
    """An entry of an agent's `can_call`, written or implied by a fan-in agent (NOTES 11.3)."""

    position: int
    edge: Edge
    condition: Condition


def can_call_entries(
    mesh: Mesh, joins: Mapping[str, Join], document: Document
) -> dict[str, list[CanCallEntry]]:
    """Return the `can_call` entries of each agent: the written ones, then those that fan-in agents imply.

    No entry is implied for an agent that waits for itself: it would run forever. NOTES 11.3.
    """
    found: dict[str, list[CanCallEntry]] = {}
    for name, agent in mesh.agents.items():
        own = []
        for at, call in enumerate(agent.can_call):
            condition = conditions.parse(call.condition)
            where = document.span(("agents", name, "can_call", at))
            own.append(CanCallEntry(at, Edge(name, call.agent, condition.text, span=where), condition))
        named = {call.agent for call in agent.can_call}
        for fan_in, join in joins.items():
            if name in join.members and fan_in not in (*named, name):
                where = document.span(("agents", fan_in, "wait_for"))
                own.append(CanCallEntry(len(own), Edge(name, fan_in, span=where), _ALWAYS))
        found[name] = own
    return found


def start_router(
    first: EntryPoint, edges: Mapping[str, Edge], own: Mapping[str, Sequence[CanCallEntry]], parts: MeshParts
) -> Router:
    """Return the start router: it calls the target if the entry point's condition holds. NOTES 3.1, 3.2.

    Inputs enter at `first` unless they name another entry. `edges` are those of the entry points, by name.
    """

    async def enter(_state: State, run: RunContext) -> Routes:
        session = session_of(run)
        task = session.task
        if task.rerun is not None:
            called = {name: [each.edge.target for each in entries] for name, entries in own.items()}
            task.incompletable_joins = incompletable_joins(task.rerun.node, called, parts)
            return [rerun_dispatch(task.rerun, session)]
        entry = (parts.mesh.entry(task.entry) if task.entry is not None else None) or first
        condition = conditions.parse(entry.condition, of_input=True)
        if not condition.holds(task.input):
            text = f"entry point '{entry.name}' does not accept the input, so nothing is started"
            run.warn(f"{text}: `{condition.text}` does not hold")
            return []
        edge = edges.get(entry.name) or Edge(START, entry.target)
        return [dispatch(edge, Handover(task.input))]

    return enter


def agent_router(name: str, own: Sequence[CanCallEntry], parts: MeshParts) -> Router:
    """Return the router of an agent: it stores the output and calls the targets of its conditions. NOTES 4."""
    agent = parts.mesh.agents[name]

    async def settle(state: State, run: RunContext) -> Routes:
        result: AgentResult = state[RESULT]
        session = session_of(run)
        result.call.output = result.output
        session.timeouts.pop(name, None)
        if agent.auto_store_yields:
            session.task.upstream_yields[name] = deepcopy(stored_yields(agent, result.output))
        if agent.memory:
            session.add_posts(name, result.user_message, compact_json(result.output))
        calls = []
        for entry in _called_entries(own, result.output):
            target = entry.edge.target
            if target in session.task.incompletable_joins and name in parts.joins[target].members:
                missing = f"it waits for {parts.joins[target].missing({name})}, too"
                run.warn(
                    f"agent '{target}' is not called by '{name}': {missing}, and this rerun does not run that"
                )
            else:
                calls.append(call_dispatch(entry.edge, result, entry.position))
        return calls

    return settle


def narration_router(name: str, own: Sequence[CanCallEntry], parts: MeshParts) -> Router:
    """Return the late router of an agent with a narration: it calls what the Summarizer adds. NOTES 12."""

    async def add(state: State, run: RunContext) -> Routes:
        result: AgentResult = state[RESULT]
        called = {entry.edge.target for entry in _called_entries(own, result.output)}
        names = await recommended_agents(parts.mesh, name, result.output, state, run)
        return [call_dispatch(Edge(name, other, GOTO), result) for other in names if other not in called]

    return add


def _called_entries(own: Sequence[CanCallEntry], output: Mapping[str, Any]) -> list[CanCallEntry]:
    """Return the entries whose condition holds, the first for each target."""
    called: dict[str, CanCallEntry] = {}
    for entry in own:
        if entry.condition.holds(output):
            called.setdefault(entry.edge.target, entry)
    return list(called.values())


def call_dispatch(edge: Edge, result: AgentResult, position: int | None = None) -> Dispatch:
    """Return a call with the caller's output, or the input that `@compose` shaped for the target. NOTES 8.6."""
    shaped = result.shaped.get(edge.target, result.output)
    given = shaped if isinstance(shaped, Mapping) else {"result": shaped}
    return dispatch(edge, Handover(given, result.output, result.call, position))


def start_edges(mesh: Mesh, document: Document) -> dict[str, Edge]:
    """Return the edges from the start to the target of each entry point, by the name of the entry point."""
    edges = {}
    for at, entry in enumerate(mesh.entry_points):
        condition = conditions.parse(entry.condition, of_input=True)
        where = document.span(("entry_points", at))
        label = entry.name if condition.text is None else f"{entry.name}: {condition.text}"
        edges[entry.name] = Edge(START, entry.target, label, span=where)
    return edges
