"""The parts of a runnable mesh, and the data that calls pass to agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.dialects.leafmesh.agency import Agency
from harness.dialects.leafmesh.connector_document import Connector
from harness.dialects.leafmesh.document import Mesh
from harness.dialects.leafmesh.session import Call, Output, Start
from harness.graph.events import Arrival
from harness.graph.joins import Join
from harness.graph.model import Dispatch, Edge, State

INPUT: Final = "input_data"

ARRIVALS: Final = "__arrived__"
"""The state key under which a node finds its `Arrivals`."""


@dataclass(frozen=True)
class MeshParts:
    """A runnable mesh: the mesh file, its Python, its connectors by agent, its joins by fan-in agent.

    `env` has the values of its variables.
    """

    mesh: Mesh
    agency: Agency
    connectors: Mapping[str, Connector]
    joins: Mapping[str, Join]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Handover:
    """The data that a call passes to the called agent.

    input           its input, before the keys that every callee gets are added
    caller_output   the whole output of the caller; None for an entry point
    caller          the call that settled or failed; None for an entry point
    position        of the can_call entry; None for calls by the Summarizer or an escalation
    previous_start  the last start of an agent that is rerun, if it ran before
    rerun           the feedback for an agent that is rerun, if any
    """

    input: Output
    caller_output: Output | None = None
    caller: Call | None = None
    position: int | None = None
    is_escalation: bool = False
    previous_start: Start | None = None
    rerun: Mapping[str, Any] | None = None


@dataclass(eq=False)
class Arrivals:
    """The handovers of one start of an agent, in order of arrival, and its call once it has started."""

    handovers: tuple[Handover, ...]
    call: Call | None = None

    @property
    def is_escalation(self) -> bool:
        """True if the call comes from an escalation."""
        return any(handover.is_escalation for handover in self.handovers)

    @property
    def callers(self) -> list[Call]:
        """The calls that settled and called this agent; entry points and escalations are not among them."""
        return [each.caller for each in self.handovers if each.caller is not None and not each.is_escalation]


def dispatch(edge: Edge, handover: Handover) -> Dispatch:
    """Return the dispatch of a handover along an edge."""
    return Dispatch(edge, {ARRIVALS: handover})


def input_of(arrivals: Sequence[Arrival], state: State) -> State:
    """Return the state of a node: outputs so far, and its input, merged in order of arrival. NOTES 3.3."""
    handovers = tuple(arrival.state[ARRIVALS] for arrival in arrivals if arrival.state is not None)
    merged = {key: value for handover in handovers for key, value in handover.input.items()}
    return {**state, INPUT: merged, ARRIVALS: Arrivals(handovers)}
