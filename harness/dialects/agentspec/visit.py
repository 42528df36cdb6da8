"""One visit of a flow's node: the argument and the result of a node body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.agentspec.conversation import Handoff
from harness.dialects.agentspec.data_flow import IncomingValue
from harness.dialects.agentspec.flows import NEXT, Flow, Node
from harness.engine.context import NodeContext
from harness.engine.nested import run_inside
from harness.graph.model import Graph, State

GraphOf = Callable[[AgenticComponent], Graph]


@dataclass(frozen=True)
class NodeResult:
    """The result of a node: the values of its outputs, its outgoing branch, and messages for the conversation."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    branch: str = NEXT
    messages: Sequence[BaseMessage] = ()


@dataclass(frozen=True)
class Visit:
    """A visit of a node.

    node      the node
    inputs    the values of its inputs, cast to their types
    incoming  the same before they are cast, with their sources
    state     the state of the flow
    ctx       the context of the visit
    graph_of  compiles a flow or an agent
    """

    node: Node
    inputs: Mapping[str, Any]
    incoming: Mapping[str, IncomingValue]
    state: State
    ctx: NodeContext
    graph_of: GraphOf

    async def run_inside(
        self, component: AgenticComponent, inputs: Mapping[str, Any], *, key: str = ""
    ) -> NodeResult:
        """Run a flow or an agent in this conversation. An agent's calls are attributed to the node.

        Returns its outputs, the branch name of the EndNode that it reached, and the messages that it added.
        """

        def added(state: State) -> Sequence[BaseMessage]:
            messages: Sequence[BaseMessage] = state["messages"][len(self.state["messages"]) :]
            return messages

        ending = await run_inside(
            self.ctx,
            self.graph_of(component),
            Handoff(inputs, self.state["messages"]),
            key=key,
            attribute_to_caller=not isinstance(component, Flow),
            partial_update=lambda state: {"messages": added(state)},
        )
        outputs = ending.output if component.outputs else {}
        return NodeResult(outputs, ending.state.get("left_by", NEXT), added(ending.state))


Body = Callable[[Visit], Awaitable[NodeResult]]
