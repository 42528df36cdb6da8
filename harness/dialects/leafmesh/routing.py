"""Edges of a mesh, and the routers that call agents. NOTES 4, 11.

The router of an agent gets its `agents.Settled` result: it stores the output and passes it to the called
agents. spec: "`can_call` Format", "Narration Routing".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from harness.dialects.leafmesh import conditions
from harness.dialects.leafmesh.agents import SETTLED, Settled
from harness.dialects.leafmesh.conditions import Condition
from harness.dialects.leafmesh.document import EntryPoint, Mesh
from harness.dialects.leafmesh.parts import Handover, Parts, handing
from harness.dialects.leafmesh.rerun import out_of_reach, repeating
from harness.dialects.leafmesh.session import session_of
from harness.dialects.leafmesh.summarizer import recommended
from harness.dialects.leafmesh.yields import declared_part
from harness.engine.context import RunContext
from harness.graph.joins import Join
from harness.graph.model import GOTO, START, Dispatch, Edge, Router, Routes, State
from harness.graph.to_json import compact_json
from harness.source.document import Document

_ALWAYS: Final = conditions.parse(True)


@dataclass(frozen=True)
class Entry:
    """An entry of an agent's `can_call`, written or implied by a fan-in agent (NOTES 11.3)."""

    position: int
    edge: Edge
    condition: Condition


def entries(mesh: Mesh, joins: Mapping[str, Join], document: Document) -> dict[str, list[Entry]]:
    """Return the `can_call` entries of each agent: the written ones, then those that fan-in agents imply.

    No entry is implied for an agent that waits for itself: it would run forever. NOTES 11.3.
    """
    found: dict[str, list[Entry]] = {}
    for name, agent in mesh.agents.items():
        own = []
        for at, call in enumerate(agent.can_call):
            condition = conditions.parse(call.condition)
            where = document.span(("agents", name, "can_call", at))
            own.append(Entry(at, Edge(name, call.agent, condition.text, span=where), condition))
        named = {call.agent for call in agent.can_call}
        for fan_in, join in joins.items():
            if name in join.members and fan_in not in (*named, name):
                where = document.span(("agents", fan_in, "wait_for"))
                own.append(Entry(len(own), Edge(name, fan_in, span=where), _ALWAYS))
        found[name] = own
    return found


def entering(entry: EntryPoint, edge: Edge, own: Mapping[str, Sequence[Entry]], parts: Parts) -> Router:
    """Return the start router: it calls the target if the entry point's condition holds. NOTES 3.1, 3.2."""
    condition = conditions.parse(entry.condition, of_input=True)

    async def enter(_state: State, run: RunContext) -> Routes:
        session = session_of(run)
        task = session.task
        if task.rerun is not None:
            called = {name: [each.edge.target for each in entries] for name, entries in own.items()}
            task.left_alone = out_of_reach(task.rerun.node, called, parts)
            return [repeating(task.rerun, session)]
        if not condition.holds(task.input):
            run.warn(
                f"entry point '{entry.name}' lets the input not in, and nothing is started: `{condition.text}` does "
                "not hold"
            )
            return []
        return [handing(edge, Handover(task.input))]

    return enter


def settling(name: str, own: Sequence[Entry], parts: Parts) -> Router:
    """Return the router of an agent: it stores the output and calls the targets of its conditions. NOTES 4."""
    agent = parts.mesh.agents[name]

    async def settle(state: State, run: RunContext) -> Routes:
        settled: Settled = state[SETTLED]
        session = session_of(run)
        settled.call.output = settled.output
        session.timeouts.pop(name, None)
        if agent.auto_store_yields:
            session.task.upstream_yields[name] = deepcopy(declared_part(agent, settled.output))
        if agent.memory:
            session.remember(name, settled.user_message, compact_json(settled.output))
        calls = []
        for entry in _called(own, settled.output):
            target = entry.edge.target
            if target in session.task.left_alone and name in parts.joins[target].members:
                run.warn(
                    f"agent '{target}' is not called by '{name}': it waits for "
                    f"{parts.joins[target].missing({name})}, too, and this rerun does not run that"
                )
            else:
                calls.append(handed(entry.edge, settled, entry.position))
        return calls

    return settle


def narrating(name: str, own: Sequence[Entry], parts: Parts) -> Router:
    """Return the late router of an agent with a narration: it calls what the Summarizer adds. NOTES 12."""

    async def add(state: State, run: RunContext) -> Routes:
        settled: Settled = state[SETTLED]
        called = {entry.edge.target for entry in _called(own, settled.output)}
        names = await recommended(parts.mesh, name, settled.output, state, run)
        return [handed(Edge(name, other, GOTO), settled) for other in names if other not in called]

    return add


def _called(own: Sequence[Entry], output: Mapping[str, Any]) -> list[Entry]:
    """Return the entries whose condition holds, the first for each target."""
    called: dict[str, Entry] = {}
    for entry in own:
        if entry.condition.holds(output):
            called.setdefault(entry.edge.target, entry)
    return list(called.values())


def handed(edge: Edge, settled: Settled, position: int | None = None) -> Dispatch:
    """Return a call with the caller's output, or the input that `@compose` shaped for the target. NOTES 8.6."""
    shaped = settled.shaped.get(edge.target, settled.output)
    given = shaped if isinstance(shaped, Mapping) else {"result": shaped}
    return handing(edge, Handover(given, settled.output, settled.call, position))


def start_edges(mesh: Mesh, document: Document) -> dict[str, Edge]:
    """Return the edges from the start to the target of each entry point, by the name of the entry point."""
    edges = {}
    for at, entry in enumerate(mesh.entry_points):
        condition = conditions.parse(entry.condition, of_input=True)
        where = document.span(("entry_points", at))
        label = entry.name if condition.text is None else f"{entry.name}: {condition.text}"
        edges[entry.name] = Edge(START, entry.target, label, span=where)
    return edges
