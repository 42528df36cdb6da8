"""The models of flows, nodes and edges. spec: "Execution flows"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Final, Literal, cast

from pydantic import Field, field_validator

from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.agentspec.component import Component, ComponentField, ComponentWithIO, text_properties
from harness.dialects.agentspec.connections import Model
from harness.dialects.agentspec.properties import Property, placeholder_names
from harness.dialects.agentspec.tools import RemoteCall, Tool

NEXT: Final = "next"
DEFAULT: Final = "default"
ITERATED: Final = "iterated_"
COLLECTED: Final = "collected_"
CAUGHT: Final = "caught_exception_branch"
CAUGHT_INFO: Final = "caught_exception_info"
_RESPONSE: Final = {"title": "response"}


class Node(ComponentWithIO, title="a node"):
    """Base class of nodes. spec: "Node". Branches that are not declared, or null, are inferred."""

    declared_branches: list[str] | None = Field(None, alias="branches")

    @cached_property
    def branches(self) -> Sequence[str]:
        """The outgoing branches, in order."""
        return list(dict.fromkeys(self.declared_branches or self.inferred_branches()))

    def inferred_branches(self) -> Sequence[str]:
        """Return the branches that the configuration implies. spec: "One, the default next" for most node types."""
        return (NEXT,)


# ------------------------------------------------------------------ edges


class ControlFlowEdge(Component, title="a ControlFlowEdge"):
    """A control edge. spec: "Control edges". A null `from_branch` is the branch `next`."""

    from_node: Annotated[Node, ComponentField(Node)]
    from_branch: str | None = None
    to_node: Annotated[Node, ComponentField(Node)]

    @property
    def branch(self) -> str:
        """The branch of `from_node` at which the edge starts."""
        return NEXT if self.from_branch is None else self.from_branch


class DataFlowEdge(Component, title="a DataFlowEdge"):
    """A data edge. spec: "Data relationships"."""

    source_node: Annotated[Node, ComponentField(Node)]
    source_output: str
    destination_node: Annotated[Node, ComponentField(Node)]
    destination_input: str


# ------------------------------------------------------------------ nodes with their inputs, outputs and branches


class BoundaryNode(Node):
    """Base class of StartNode and EndNode, whose inputs and outputs are the same list, written at least once."""

    def inferred_inputs(self) -> Sequence[Property]:
        return self.declared_inputs or self.declared_outputs or ()

    def inferred_outputs(self) -> Sequence[Property]:
        return self.declared_outputs or self.declared_inputs or ()


class StartNode(BoundaryNode, title="a StartNode"):
    """The node with the inputs of the flow. spec: StartNode."""


class EndNode(BoundaryNode, title="an EndNode"):
    """A node that ends the flow. spec: EndNode. `branch_name` is a branch of the flow; the node itself has none."""

    branch_name: str = NEXT

    @field_validator("branch_name", mode="before")
    @classmethod
    def _null_is_next(cls, name: Any) -> Any:
        return NEXT if name is None else name

    def inferred_branches(self) -> Sequence[str]:
        return ()


class LlmNode(Node, title="an LlmNode"):
    """A node that calls a model. spec: LlmNode.

    A single string output is the generated text. Other outputs require structured generation (25.4.2).
    """

    llm_config: Annotated[Model, ComponentField(Model)]
    prompt_template: str

    def inferred_inputs(self) -> Sequence[Property]:
        return text_properties(placeholder_names(self.prompt_template))

    def inferred_outputs(self) -> Sequence[Property]:
        return self.declared_outputs or text_properties(["generated_text"])


class ApiNode(Node, RemoteCall, title="an ApiNode"):
    """A node that sends an HTTP request. spec: ApiNode. `api_spec_uri` is not fetched to infer outputs."""

    @property
    def outputs_whole_response(self) -> bool:
        """True if the single output is the whole response, which is the default.

        Serialized configurations declare that output explicitly.
        """
        return [item.schema for item in self.outputs.values()] == [_RESPONSE]

    def inferred_outputs(self) -> Sequence[Property]:
        return [Property(_RESPONSE)] if self.declared_outputs is None else self.declared_outputs


class WrapperNode(Node):
    """Base class of nodes that run another component and have its inputs and outputs."""

    @property
    def wrapped(self) -> ComponentWithIO:
        """The component that the node runs: the first in its fields."""
        return cast(ComponentWithIO, next(self.parts()))

    def inferred_inputs(self) -> Sequence[Property]:
        return list(self.wrapped.inputs.values())

    def inferred_outputs(self) -> Sequence[Property]:
        return list(self.wrapped.outputs.values())


class AgentNode(WrapperNode, title="an AgentNode"):
    """A node that runs an agent. spec: AgentNode. Inputs and outputs are "the ones defined by the Agent"."""

    agent: Annotated[AgenticComponent, ComponentField(AgenticComponent)]


class ToolNode(WrapperNode, title="a ToolNode"):
    """A node that runs a tool. spec: ToolNode, "inferred from the definition of the tool to execute"."""

    tool: Annotated[Tool, ComponentField(Tool)]


class BranchingNode(Node, title="a BranchingNode"):
    """A node that selects a branch. spec: BranchingNode.

    Its first input, of any name, is looked up in `mapping`; without a match the branch is `default`.
    """

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
    """A node that asks the user. spec: InputMessageNode. Its single output, of any name, is the user's message."""

    message: str | None = None

    def inferred_inputs(self) -> Sequence[Property]:
        return text_properties(placeholder_names(self.message))

    def inferred_outputs(self) -> Sequence[Property]:
        return text_properties([self.declared_outputs[0].title if self.declared_outputs else "user_input"])


class OutputMessageNode(Node, title="an OutputMessageNode"):
    """A node that sends a message to the user. spec: OutputMessageNode."""

    message: str

    def inferred_inputs(self) -> Sequence[Property]:
        return text_properties(placeholder_names(self.message))

    def inferred_outputs(self) -> Sequence[Property]:
        return ()


# ------------------------------------------------------------------ flows, and the nodes that run them


class Flow(AgenticComponent, title="a Flow"):
    """A flow. spec: "Flow". Without `data_flow_connections`, values flow by name."""

    start_node: Annotated[Node, ComponentField(Node)]
    nodes: list[Annotated[Node, ComponentField(Node)]]
    control_flow_connections: list[Annotated[ControlFlowEdge, ComponentField(ControlFlowEdge)]]
    data_flow_connections: list[Annotated[DataFlowEdge, ComponentField(DataFlowEdge)]] | None = None

    @cached_property
    def end_nodes(self) -> Sequence[EndNode]:
        """The EndNodes, in order."""
        return [node for node in self.nodes if isinstance(node, EndNode)]

    def inferred_inputs(self) -> Sequence[Property]:
        """Return the StartNode's inputs. spec: "must expose all the inputs that are defined in its StartNode"."""
        return list(self.start_node.inputs.values())

    def inferred_outputs(self) -> Sequence[Property]:
        """Return the outputs that every EndNode has. A flow may declare others that have defaults."""
        if self.declared_outputs is not None:
            return self.declared_outputs
        if not self.end_nodes:
            return ()
        first, *others = self.end_nodes
        return [item for title, item in first.outputs.items() if all(title in end.outputs for end in others)]


class FlowNode(WrapperNode, title="a FlowNode"):
    """A node that runs a flow. spec: FlowNode. It has a branch for each branch name of the flow's EndNodes."""

    subflow: Annotated[Flow, ComponentField(Flow)]

    def inferred_branches(self) -> Sequence[str]:
        return sorted({end.branch_name for end in self.subflow.end_nodes}) or (NEXT,)


class CatchExceptionNode(FlowNode, title="a CatchExceptionNode"):
    """A node that runs a flow and goes on if it fails (26.1.2).

    It then takes its branch `caught_exception_branch`, and its outputs have their defaults; the output
    `caught_exception_info` is the text of the error, else null.
    """

    def inferred_branches(self) -> Sequence[str]:
        return [CAUGHT, *super().inferred_branches()]

    def inferred_outputs(self) -> Sequence[Property]:
        info = {"title": CAUGHT_INFO, "anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
        return [*super().inferred_outputs(), Property(info)]


class ParallelFlowNode(Node, title="a ParallelFlowNode"):
    """A node that runs flows side by side (25.4.2). It has the inputs and outputs of them all."""

    subflows: list[Annotated[Flow, ComponentField(Flow)]] = Field(default_factory=list)

    def inferred_inputs(self) -> Sequence[Property]:
        found: dict[str, Property] = {}
        for subflow in self.subflows:
            for title, item in subflow.inputs.items():
                found.setdefault(title, item)
        return list(found.values())

    def inferred_outputs(self) -> Sequence[Property]:
        return list(
            {title: item for subflow in self.subflows for title, item in subflow.outputs.items()}.values()
        )


class MapNode(Node, title="a MapNode"):
    """A node that runs a flow for each element of lists. spec: MapNode.

    Each output with a reducer is collected; without `reducers`, all outputs are appended to lists.
    """

    subflow: Annotated[Flow, ComponentField(Flow)]
    reducers: dict[str, Literal["append", "sum", "average", "max", "min"]] | None = None

    @cached_property
    def output_reducers(self) -> dict[str, str]:
        """The reducer of each collected output, by its name in the subflow."""
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


class ParallelMapNode(MapNode, title="a ParallelMapNode"):
    """A MapNode whose runs may be side by side (25.4.2), as those of a MapNode are here."""


def _type_of(item: Property) -> dict[str, Any]:
    """Return the schema of a property without its title, default and description."""
    return {
        key: value for key, value in item.schema.items() if key not in ("title", "default", "description")
    }
