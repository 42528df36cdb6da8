"""Flows, their nodes and their edges. spec: "Execution flows"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Final, Literal, cast

from pydantic import Field, field_validator

from harness.dialects.agentspec import placeholders
from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.agentspec.component import Component, ComponentField, ComponentWithIO, text_properties
from harness.dialects.agentspec.llm_configs import LlmConfig
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.tools import RemoteCall, Tool

NEXT: Final = "next"
DEFAULT: Final = "default"
ITERATED: Final = "iterated_"
COLLECTED: Final = "collected_"
_RESPONSE: Final = {"title": "response"}


class Node(ComponentWithIO, title="a node"):
    """spec: "Node". Branches that are not declared, or null, are inferred."""

    declared_branches: list[str] | None = Field(None, alias="branches")

    @cached_property
    def branches(self) -> Sequence[str]:
        """Its outgoing branches, in order."""
        return list(dict.fromkeys(self.declared_branches or self.inferred_branches()))

    def inferred_branches(self) -> Sequence[str]:
        """The branches its configuration leads to. spec: "One, the default next", unless its type says otherwise."""
        return (NEXT,)


# ------------------------------------------------------------------ edges


class ControlFlowEdge(Component, title="a ControlFlowEdge"):
    """spec: "Control edges". `from_branch` null is the branch `next`."""

    from_node: Annotated[Node, ComponentField(Node)]
    from_branch: str | None = None
    to_node: Annotated[Node, ComponentField(Node)]

    @property
    def branch(self) -> str:
        """The branch of `from_node` where it starts."""
        return NEXT if self.from_branch is None else self.from_branch


class DataFlowEdge(Component, title="a DataFlowEdge"):
    """spec: "Data relationships"."""

    source_node: Annotated[Node, ComponentField(Node)]
    source_output: str
    destination_node: Annotated[Node, ComponentField(Node)]
    destination_input: str


# ------------------------------------------------------------------ nodes with their inputs, outputs and branches


class BoundaryNode(Node):
    """A StartNode or an EndNode: inputs and outputs are the same list, and need be written only once."""

    def inferred_inputs(self) -> Sequence[Property]:
        return self.declared_inputs or self.declared_outputs or ()

    def inferred_outputs(self) -> Sequence[Property]:
        return self.declared_outputs or self.declared_inputs or ()


class StartNode(BoundaryNode, title="a StartNode"):
    """spec: StartNode."""


class EndNode(BoundaryNode, title="an EndNode"):
    """spec: EndNode. `branch_name` is the branch of the flow; the node itself has no branch."""

    branch_name: str = NEXT

    @field_validator("branch_name", mode="before")
    @classmethod
    def _null_is_next(cls, name: Any) -> Any:
        return NEXT if name is None else name

    def inferred_branches(self) -> Sequence[str]:
        return ()


class LlmNode(Node, title="an LlmNode"):
    """spec: LlmNode. One output is the generated text; other outputs ask for structured generation (25.4.2)."""

    llm_config: Annotated[LlmConfig, ComponentField(LlmConfig)]
    prompt_template: str

    def inferred_inputs(self) -> Sequence[Property]:
        return text_properties(placeholders.names(self.prompt_template))

    def inferred_outputs(self) -> Sequence[Property]:
        return self.declared_outputs or text_properties(["generated_text"])


class ApiNode(Node, RemoteCall, title="an ApiNode"):
    """spec: ApiNode. Outputs are those declared, as no API specification is fetched."""

    @property
    def outputs_whole_response(self) -> bool:
        """True if its one output is the whole response, which is the default.

        Configurations that a program wrote declare that output as well.
        """
        return [item.schema for item in self.outputs.values()] == [_RESPONSE]

    def inferred_outputs(self) -> Sequence[Property]:
        return [Property(_RESPONSE)] if self.declared_outputs is None else self.declared_outputs


class WrapperNode(Node):
    """A node that runs another component, and has the inputs and outputs of that."""

    @property
    def wrapped(self) -> ComponentWithIO:
        """The component it runs: the first in its fields."""
        return cast(ComponentWithIO, next(self.parts()))

    def inferred_inputs(self) -> Sequence[Property]:
        return list(self.wrapped.inputs.values())

    def inferred_outputs(self) -> Sequence[Property]:
        return list(self.wrapped.outputs.values())


class AgentNode(WrapperNode, title="an AgentNode"):
    """spec: AgentNode. Inputs and outputs are "the ones defined by the Agent"."""

    agent: Annotated[AgenticComponent, ComponentField(AgenticComponent)]


class ToolNode(WrapperNode, title="a ToolNode"):
    """spec: ToolNode. Inputs and outputs are "inferred from the definition of the tool to execute"."""

    tool: Annotated[Tool, ComponentField(Tool)]


class BranchingNode(Node, title="a BranchingNode"):
    """spec: BranchingNode. Its one input, of any name, is looked up in the mapping; no match is `default`."""

    mapping: dict[str, str]

    def inferred_inputs(self) -> Sequence[Property]:
        return text_properties(
            [self.declared_inputs[0].title if self.declared_inputs else "branching_mapping_key"]
        )

    def inferred_outputs(self) -> Sequence[Property]:
        return ()

    def inferred_branches(self) -> Sequence[str]:
        return [*self.mapping.values(), DEFAULT]


class InputMessageNode(Node, title="an InputMessageNode"):
    """spec: InputMessageNode. Its one output, of any name, is the user's message."""

    message: str | None = None

    def inferred_inputs(self) -> Sequence[Property]:
        return text_properties(placeholders.names(self.message))

    def inferred_outputs(self) -> Sequence[Property]:
        return text_properties([self.declared_outputs[0].title if self.declared_outputs else "user_input"])


class OutputMessageNode(Node, title="an OutputMessageNode"):
    """spec: OutputMessageNode."""

    message: str

    def inferred_inputs(self) -> Sequence[Property]:
        return text_properties(placeholders.names(self.message))

    def inferred_outputs(self) -> Sequence[Property]:
        return ()


# ------------------------------------------------------------------ flows, and the nodes that run them


class Flow(AgenticComponent, title="a Flow"):
    """spec: "Flow". Without `data_flow_connections`, values flow by name."""

    start_node: Annotated[Node, ComponentField(Node)]
    nodes: list[Annotated[Node, ComponentField(Node)]]
    control_flow_connections: list[Annotated[ControlFlowEdge, ComponentField(ControlFlowEdge)]]
    data_flow_connections: list[Annotated[DataFlowEdge, ComponentField(DataFlowEdge)]] | None = None

    @cached_property
    def end_nodes(self) -> Sequence[EndNode]:
        """Its EndNodes, in order."""
        return [node for node in self.nodes if isinstance(node, EndNode)]

    def inferred_inputs(self) -> Sequence[Property]:
        """spec: "a flow must expose all the inputs that are defined in its StartNode"."""
        return list(self.start_node.inputs.values())

    def inferred_outputs(self) -> Sequence[Property]:
        """The outputs that every EndNode has. A flow may declare others that have defaults."""
        if self.declared_outputs is not None:
            return self.declared_outputs
        if not self.end_nodes:
            return ()
        first, *others = self.end_nodes
        return [item for title, item in first.outputs.items() if all(title in end.outputs for end in others)]


class FlowNode(WrapperNode, title="a FlowNode"):
    """spec: FlowNode. One branch for each branch name of the inner EndNodes."""

    subflow: Annotated[Flow, ComponentField(Flow)]

    def inferred_branches(self) -> Sequence[str]:
        return sorted({end.branch_name for end in self.subflow.end_nodes}) or (NEXT,)


class MapNode(Node, title="a MapNode"):
    """spec: MapNode. A reducer collects an output; without any reducers, all outputs are appended."""

    subflow: Annotated[Flow, ComponentField(Flow)]
    reducers: dict[str, Literal["append", "sum", "average", "max", "min"]] | None = None

    @cached_property
    def output_reducers(self) -> dict[str, str]:
        """The reducer of each collected output, by its name in the inner flow."""
        if self.reducers is None:
            return dict.fromkeys(self.subflow.outputs, "append")
        return {title: self.reducers[title] for title in self.subflow.outputs if title in self.reducers}

    def inferred_inputs(self) -> Sequence[Property]:
        return [
            Property(
                {
                    "title": ITERATED + title,
                    "anyOf": [_type_of(inner), {"type": "array", "items": _type_of(inner)}],
                }
            )
            for title, inner in self.subflow.inputs.items()
        ]

    def inferred_outputs(self) -> Sequence[Property]:
        collected = {title: _type_of(self.subflow.outputs[title]) for title in self.output_reducers}
        return [
            Property(
                {"title": COLLECTED + title, "type": "array", "items": kind}
                if self.output_reducers[title] == "append"
                else {**kind, "title": COLLECTED + title}
            )
            for title, kind in collected.items()
        ]


def _type_of(item: Property) -> dict[str, Any]:
    """The schema of a property without its name and default."""
    return {
        key: value for key, value in item.schema.items() if key not in ("title", "default", "description")
    }
