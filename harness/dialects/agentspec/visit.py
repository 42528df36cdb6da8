"""One visit of a node of a flow: what its body is given, and what it leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from harness.dialects.agentspec.data_flow import Arrived
from harness.dialects.agentspec.flows import NEXT, Node
from harness.graph.context import NodeContext
from harness.graph.model import State

if TYPE_CHECKING:
    from harness.dialects.agentspec.graphs import Graphs


@dataclass(frozen=True)
class NodeResult:
    """What a node leaves: values of its outputs, the branch it is left by, messages for the conversation."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    branch: str = NEXT
    messages: Sequence[BaseMessage] = ()


@dataclass(frozen=True)
class Visit:
    """`inputs` are cast to the types of the node's inputs; `arrived` has them as they came, with their sources."""

    node: Node
    inputs: Mapping[str, Any]
    arrived: Mapping[str, Arrived]
    state: State
    ctx: NodeContext
    graphs: Graphs


Body = Callable[[Visit], Awaitable[NodeResult]]
