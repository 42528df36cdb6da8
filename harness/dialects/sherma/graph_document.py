"""The models of a manifest's `graph`: nodes of eight types, error handling, edges and branches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from harness.dialects.sherma.section import Expression, Ref, Section
from harness.graph.model import START
from harness.source.models import Mistake, mistaken


class PromptItem(Section, title="a prompt item"):
    """spec: `call_llm`, prompt. `content` is CEL: text, or, for the role `messages`, messages."""

    role: Literal["system", "human", "ai", "messages"]
    content: Expression


class ResponseFormat(Section, title="a response format"):
    """A structured answer; `schema` is JSON Schema. Undocumented, but part of sherma."""

    name: str
    description: str = ""
    schema_: dict[str, Any] = Field(alias="schema")


class CallLLM(Section, title="the args of a call_llm node"):
    """spec: `call_llm`."""

    llm: Ref | None = None
    prompt: list[PromptItem] = Field(
        examples=[
            "prompt: [{role: system, content: '\"Be kind.\"'}, {role: messages, content: state.messages}]"
        ]
    )
    tools: list[Ref] | None = None
    use_tools_from_registry: bool = False
    use_tools_from_loaded_skills: bool = False
    use_sub_agents_as_tools: bool | Literal["all"] | list[Ref] = False
    response_format: ResponseFormat | None = None
    state_updates: dict[str, Expression] = Field(examples=["state_updates: {messages: '[llm_response]'}"])

    @property
    def flags(self) -> list[str]:
        """The names of the dynamic tool flags that are set."""
        names = ("use_tools_from_registry", "use_tools_from_loaded_skills", "use_sub_agents_as_tools")
        return [name for name in names if getattr(self, name)]

    @property
    def binds_tools(self) -> bool:
        """True if the model gets any tools."""
        return bool(self.tools or self.flags)


class ToolNode(Section, title="the args of a tool_node node"):
    """spec: `tool_node`. Without `tools` it serves every registered tool."""

    tools: list[Ref] | None = None


class CallAgent(Section, title="the args of a call_agent node"):
    """spec: `call_agent`. `input` is CEL; its value is sent as text."""

    agent: Ref
    input: Expression


class DataTransform(Section, title="the args of a data_transform node"):
    """spec: `data_transform`. `expression` is CEL; its value is a map of updates."""

    expression: Expression


class SetState(Section, title="the args of a set_state node"):
    """spec: `set_state`. Each value is CEL."""

    values: dict[str, Expression]


class Interrupt(Section, title="the args of an interrupt node"):
    """spec: `interrupt`. `value` is CEL and required."""

    value: Expression


class LoadSkills(Section, title="the args of a load_skills node"):
    """spec: `load_skills`. `skill_ids` is CEL; its value is a list of `{id, version?}`."""

    skill_ids: Expression


class Custom(Section, title="the args of a custom node"):
    """spec: `custom`. `metadata` is for hooks and may be any value."""

    metadata: Any = Field(default_factory=dict)


class Retry(Section, title="a retry policy"):
    """spec: `on_error`, retry. `max_attempts` includes the first attempt; delays are in seconds."""

    max_attempts: int = 3
    strategy: Literal["fixed", "exponential"] = "exponential"
    delay: float = 1.0
    max_delay: float = 30.0


class OnError(Section, title="an on_error block"):
    """spec: `on_error`."""

    retry: Retry | None = None
    fallback: str | None = None


class _Node(Section):
    name: str
    on_error: OnError | None = None


class CallLLMNode(_Node, title="a call_llm node"):
    """spec: `call_llm`."""

    type: Literal["call_llm"]
    args: CallLLM


class ToolNodeNode(_Node, title="a tool_node node"):
    """spec: `tool_node`."""

    type: Literal["tool_node"]
    args: ToolNode = Field(default_factory=ToolNode)


class CallAgentNode(_Node, title="a call_agent node"):
    """spec: `call_agent`."""

    type: Literal["call_agent"]
    args: CallAgent


class DataTransformNode(_Node, title="a data_transform node"):
    """spec: `data_transform`."""

    type: Literal["data_transform"]
    args: DataTransform


class SetStateNode(_Node, title="a set_state node"):
    """spec: `set_state`."""

    type: Literal["set_state"]
    args: SetState


class InterruptNode(_Node, title="an interrupt node"):
    """spec: `interrupt`."""

    type: Literal["interrupt"]
    args: Interrupt


class LoadSkillsNode(_Node, title="a load_skills node"):
    """spec: `load_skills`."""

    type: Literal["load_skills"]
    args: LoadSkills


class CustomNode(_Node, title="a custom node"):
    """spec: `custom`."""

    type: Literal["custom"]
    args: Custom = Field(default_factory=Custom)


Node = Annotated[
    CallLLMNode
    | ToolNodeNode
    | CallAgentNode
    | DataTransformNode
    | SetStateNode
    | InterruptNode
    | LoadSkillsNode
    | CustomNode,
    Field(discriminator="type"),
]


class Branch(Section, title="a branch"):
    """spec: branches. `condition` is CEL and must be a boolean."""

    condition: Expression
    target: str


class Edge(Section, title="an edge"):
    """spec: `edges`. Either a `target`, or `branches` with an optional `default`."""

    source: str
    target: str | None = None
    branches: list[Branch] | None = None
    default: str | None = None


class Graph(Section, title="a graph"):
    """spec: `graph`. Either `entry_point`, or edges from `__start__`."""

    entry_point: str | None = None
    nodes: list[Node]
    edges: list[Edge]

    @cached_property
    def injected(self) -> Mapping[str, str]:
        """The name of the injected tool node, by call_llm node. spec: "Auto-injected tool_node".

        Nodes with tools and without branches of their own get one.
        """
        branching = {edge.source for edge in self.edges if edge.branches}
        return {
            node.name: f"{node.name}_tools"
            for node in self.nodes
            if node.type == "call_llm" and node.args.binds_tools and node.name not in branching
        }

    @property
    def has_tool_node(self) -> bool:
        """True if the graph has a tool node, declared or injected."""
        return bool(self.injected) or any(node.type == "tool_node" for node in self.nodes)

    @model_validator(mode="after")
    def _one_entry(self) -> Graph:
        starts = [at for at, edge in enumerate(self.edges) if edge.source == START]
        if self.entry_point is None and not starts:
            text = "the graph has no entry: it needs 'entry_point' or an edge whose source is '__start__'"
            raise mistaken(Mistake(text, code="entry-point"))
        if self.entry_point is not None and starts:
            text = "'entry_point' must be omitted when edges start at '__start__'"
            raise mistaken(Mistake(text, ("entry_point",), on_key=True, code="entry-point"))
        return self
