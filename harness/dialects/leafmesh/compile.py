"""Compiles a mesh to an EventGraph: one node per agent, entered at the entry point of the request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.dialects.kit.manifest import input_values, refuse_deep_nesting
from harness.dialects.leafmesh import wait_for
from harness.dialects.leafmesh.agency import Agency
from harness.dialects.leafmesh.agents import node_function
from harness.dialects.leafmesh.document import EntryPoint, HumanAgent, Mesh
from harness.dialects.leafmesh.escalation import escalation_edges
from harness.dialects.leafmesh.failures import WaitForTimeout, handle_failure, run_failure
from harness.dialects.leafmesh.mesh_file import MeshFile, open_mesh
from harness.dialects.leafmesh.parts import MeshParts, input_of
from harness.dialects.leafmesh.response import response
from harness.dialects.leafmesh.routing import (
    agent_router,
    can_call_entries,
    narration_router,
    start_edges,
    start_router,
)
from harness.dialects.leafmesh.session import Task, session_of
from harness.dialects.leafmesh.summarizer import reads_narrations
from harness.dialects.leafmesh.unused_parts import unused_parts
from harness.dialects.leafmesh.vocabulary import vocabulary
from harness.dialects.request import LoadRequest
from harness.engine.context import RunContext
from harness.errors import ManifestError, Problem
from harness.graph.events import ConcurrencyLimit, EventGraph
from harness.graph.joins import Join
from harness.graph.model import START, Channel, Edge, Entry, Lifecycle, Node, Rerun, State
from harness.source.suggest import did_you_mean

MAX_STARTS = 1000
"""The most starts of agents in one run. NOTES 2.5."""


def load(request: LoadRequest) -> EventGraph:
    """Return the graph of a mesh, entered where the request says.

    Raises:
        ManifestError: lists all errors of the mesh file; or a file of its agency cannot be imported.
    """
    with refuse_deep_nesting(request.path, "its values are nested too deep"):
        mesh_file = open_mesh(request)
        entry = _entry_point(mesh_file, request)
        agency = Agency.of(mesh_file.mesh, mesh_file.document, request)
        return _build_graph(mesh_file, entry, agency, request.env)


def _entry_point(mesh_file: MeshFile, request: LoadRequest) -> EntryPoint:
    """Return the entry point that the request names; the name of an agent enters that agent. NOTES 3.1."""
    mesh, wanted = mesh_file.mesh, request.agent
    by_name = {entry.name: entry for entry in mesh.entry_points}
    where = request.agent_at or mesh_file.document.span()
    if wanted is None:
        if len(by_name) == 1:
            return mesh.entry_points[0]
        names = ", ".join(by_name)
        text = (
            f"this mesh has {len(by_name)} entry points, and none is named"
            if by_name
            else "no entry point is named"
        )
        hint = f"name one with `entry_point:`: {names}" if by_name else "name an agent with `agent:`"
        raise ManifestError(Problem("unknown-agent", text, where, hint))
    if (found := mesh.entry(wanted)) is not None:
        return found
    text = f"there is no entry point or agent '{wanted}'"
    raise ManifestError(Problem("unknown-agent", text, where, did_you_mean(wanted, [*by_name, *mesh.agents])))


def _build_graph(
    mesh_file: MeshFile, entry: EntryPoint, agency: Agency, env: Mapping[str, str]
) -> EventGraph:
    mesh, document = mesh_file.mesh, mesh_file.document
    joins = _joins(mesh)
    parts = MeshParts(mesh, agency, mesh_file.connectors, joins, env)
    own = can_call_entries(mesh, joins, document)
    starts = start_edges(mesh, document)
    starts.setdefault(entry.name, Edge(START, entry.target))
    edges = (*starts.values(), *(each.edge for name in own for each in own[name]), *escalation_edges(mesh))
    narrated = [name for name, agent in mesh.agents.items() if agent.narration and reads_narrations(mesh)]
    return EventGraph(
        name=mesh.name,
        dialect="leafmesh",
        nodes=tuple(
            Node(
                name,
                agent.agent_type,
                node_function(name, agent, parts),
                document.key_span(("agents", name)),
            )
            for name, agent in mesh.agents.items()
        ),
        edges=edges,
        channels=tuple(Channel(name) for name in mesh.agents),
        routers={
            START: start_router(entry, starts, own, parts),
            **{name: agent_router(name, own[name], parts) for name in own},
        },
        late_routers={name: narration_router(name, own[name], parts) for name in narrated},
        goto_anywhere=frozenset(narrated),
        lifecycle=_lifecycle(mesh),
        recursion_limit=MAX_STARTS,
        may_pause=any(isinstance(agent, HumanAgent) for agent in mesh.agents.values()),
        warnings=(*mesh_file.warnings, *agency.warnings, *unused_parts(mesh_file, edges, joins, agency)),
        notes=mesh_file.notes,
        import_folders=agency.import_folders,
        vocabulary=lambda: vocabulary(parts),
        takes_hooks=False,
        reruns=True,
        entries=(*(each.name for each in mesh.entry_points), *mesh.agents),
        joins=joins,
        limits=_limits(mesh),
        input_of=input_of,
        on_failure=partial(handle_failure, parts),
        run_failure=partial(run_failure, parts),
    )


def _joins(mesh: Mesh) -> dict[str, Join]:
    """Return the join of each fan-in agent. spec: "Fan-In Patterns (wait_for)"."""
    return {
        name: Join(requirement, agent.wait_for_timeout, WaitForTimeout)
        for name, agent in mesh.agents.items()
        if (requirement := wait_for.parse(agent.wait_for, mesh.agents)) is not None
    }


def _limits(mesh: Mesh) -> tuple[ConcurrencyLimit, ...]:
    """Return the limits on concurrent calls of one agent. spec: `parallel`, `max_concurrent`; NOTES 2.4."""
    at_once = {name: agent.max_concurrent if agent.parallel else 1 for name, agent in mesh.agents.items()}
    return tuple(
        ConcurrencyLimit(most, frozenset({name})) for name, most in at_once.items() if most is not None
    )


def _lifecycle(mesh: Mesh) -> Lifecycle:
    async def accept(value: Any, run: RunContext) -> Mapping[str, Any]:
        if isinstance(value, Rerun):
            session = session_of(run)
            session.task = Task(rerun=value, upstream_yields=dict(session.task.upstream_yields))
            return {}
        entry, value = (value.name, value.input) if isinstance(value, Entry) else (None, value)
        given = input_values(value, "message", "an input is text (message) or a mapping of fields")
        session_of(run).task = Task(dict(given), entry)
        return {}

    async def finish(_state: State, run: RunContext) -> Any:
        return response(mesh, session_of(run).task)

    async def salvage(run: RunContext) -> Any:
        task = session_of(run).task
        # A branch may fail after the entry agent has answered.
        return response(mesh, task) if task.calls else None

    async def so_far(run: RunContext) -> Any:
        return response(mesh, session_of(run).task, whole=True)

    return Lifecycle(accept=accept, finish=finish, salvage=salvage, so_far=so_far)
