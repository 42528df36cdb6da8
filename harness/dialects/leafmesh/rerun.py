"""An agent that is run again in its session, with feedback or with another input. spec: "Rerunning an agent"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.dialects.leafmesh.parts import Handover, Parts, handing
from harness.dialects.leafmesh.session import Session
from harness.dialects.leafmesh.summarizer import reads_narrations
from harness.errors import HarnessError
from harness.graph.model import START, Dispatch, Edge, Rerun


class LeafMeshError(HarnessError):
    """An agent that cannot be run again, since it never ran and no input is given."""

    code = "no-stored-input"


def repeating(rerun: Rerun, session: Session) -> Dispatch:
    """The call that runs the agent again. What it puts out is stored and routed as ever.

    Raises:
        LeafMeshError: see there.
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
    return handing(Edge(START, rerun.node), Handover(given, repeated=before, rerun=review))


def out_of_reach(name: str, called: Mapping[str, Sequence[str]], parts: Parts) -> frozenset[str]:
    """The fan-in agents whose joins the rerun of an agent cannot complete; `called` has the callees of each agent.

    These joins have fired in the session, and would wait in vain for their other members. A narration may lead to any
    agent.
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
