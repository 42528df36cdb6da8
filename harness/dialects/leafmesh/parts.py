"""What the agents of a mesh are made of, and what one start of an agent is given."""

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

CALLER_OUTPUT: Final = "calling_agent_response"
UPSTREAM: Final = "upstream_yields"
INPUT: Final = "input_data"

ARRIVED: Final = "__arrived__"
"""Under this key of its state a node finds what it was handed."""


@dataclass(frozen=True)
class Parts:
    """A mesh that can run: its file, its Python, its connectors by agent, and the joins of its fan-in agents."""

    mesh: Mesh
    agency: Agency
    connectors: Mapping[str, Connector]
    joins: Mapping[str, Join]


@dataclass(frozen=True)
class Handover:
    """What a call hands to the agent it calls.

    input     its input, before the keys that every callee gets
    whole     the whole output of the caller; None where an entry point calls
    caller    the call that settled, or failed; None where an entry point calls
    position  of the can_call entry; None where the Summarizer or an escalation calls
    repeated  the last start of an agent that is run again, where it had one
    rerun     the feedback for an agent that is run again, if any
    """

    input: Output
    whole: Output | None = None
    caller: Call | None = None
    position: int | None = None
    is_escalation: bool = False
    repeated: Start | None = None
    rerun: Mapping[str, Any] | None = None


@dataclass(eq=False)
class Arrived:
    """What one start of an agent was handed, in order of arrival, and the call it became when it started."""

    handovers: tuple[Handover, ...]
    call: Call | None = None

    @property
    def is_escalation(self) -> bool:
        """True if an escalation calls."""
        return any(handover.is_escalation for handover in self.handovers)

    @property
    def callers(self) -> list[Call]:
        """The calls that settled and led here; none of an entry point or an escalation."""
        return [each.caller for each in self.handovers if each.caller is not None and not each.is_escalation]


def handing(edge: Edge, handover: Handover) -> Dispatch:
    """The call of an agent along an edge."""
    return Dispatch(edge, {ARRIVED: handover})


def input_of(arrivals: Sequence[Arrival], state: State) -> State:
    """The state of a node: what agents put out so far, and its input, merged in order of arrival. NOTES 3.3."""
    handovers = tuple(arrival.state[ARRIVED] for arrival in arrivals if arrival.state is not None)
    merged = {key: value for handover in handovers for key, value in handover.input.items()}
    return {**state, INPUT: merged, ARRIVED: Arrived(handovers)}
