"""An agent that is run again in its session, with feedback or with another input. spec: "Rerunning an agent"."""

from __future__ import annotations

from harness.dialects.leafmesh.parts import Handover, handing
from harness.dialects.leafmesh.session import Session
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
    told = None
    if rerun.feedback is not None or rerun.reason:
        previous = None if before is None else before.call.output
        told = {"previous_output": previous, "feedback": rerun.feedback, "reason": rerun.reason}
    return handing(Edge(START, rerun.node), Handover(given, repeated=before, rerun=told))
