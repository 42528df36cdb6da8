"""Rerun of an agent in its session, with feedback or a new input. spec: "Rerunning an agent"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.dialects.leafmesh.parts import Handover, MeshParts, dispatch
from harness.dialects.leafmesh.session import Session
from harness.dialects.leafmesh.summarizer import reads_narrations
from harness.errors import HarnessError
from harness.graph.model import START, Dispatch, Edge, Rerun


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
        more = {
            target
            for caller, target in targets
            if target not in joins
            or caller not in joins[target].members
            or joins[target].missing(reached) is None
        } - reached
    if reads_narrations(mesh) and any(mesh.agents[each].narration for each in reached):
        return frozenset()
    return frozenset(joins.keys() - reached)
