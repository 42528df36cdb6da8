"""What a manifest may say under `graph`: nodes of eight types, error handling, edges and branches."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from harness.dialects.sherma.section import Ref, Section
from harness.graph.model import START
from harness.source.models import Mistake, mistaken


class PromptItem(Section):
    """spec: `call_llm`, prompt. `content` is CEL: text, or, for the role `messages`, messages."""

    model_config = ConfigDict(title="a prompt item")

    role: Literal["system", "human", "ai", "messages"]
    content: str


class ResponseFormat(Section):
    """A structured answer: `schema` is JSON Schema. Not in the document; the reference runtime has it."""

    model_config = ConfigDict(title="a response format")

    name: str
    description: str = ""
    schema_: dict[str, Any] = Field(alias="schema")


class CallLLM(Section):
    """spec: `call_llm`."""

    model_config = ConfigDict(title="the args of a call_llm node")

    llm: Ref | None = None
    prompt: list[PromptItem]
    tools: list[Ref] | None = None
    use_tools_from_registry: bool = False
    use_tools_from_loaded_skills: bool = False
    use_sub_agents_as_tools: bool | Literal["all"] | list[Ref] = False
    response_format: ResponseFormat | None = None
    state_updates: dict[str, str]

    @property
    def flags(self) -> list[str]:
        """The dynamic tool flags that are set."""
        names = ("use_tools_from_registry", "use_tools_from_loaded_skills", "use_sub_agents_as_tools")
        return [name for name in names if getattr(self, name)]

    @property
    def binds_tools(self) -> bool:
        """Whether the model is given any tools."""
        return bool(self.tools or self.flags)


class ToolNode(Section):
    """spec: `tool_node`. Without `tools` it serves every registered tool."""

    model_config = ConfigDict(title="the args of a tool_node node")

    tools: list[Ref] | None = None


class CallAgent(Section):
    """spec: `call_agent`. `input` is CEL; its value is sent as text."""

    model_config = ConfigDict(title="the args of a call_agent node")

    agent: Ref
    input: str


class DataTransform(Section):
    """spec: `data_transform`. `expression` is CEL that gives a map of updates."""

    model_config = ConfigDict(title="the args of a data_transform node")

    expression: str


class SetState(Section):
    """spec: `set_state`. Each value is CEL."""

    model_config = ConfigDict(title="the args of a set_state node")

    values: dict[str, str]


class Interrupt(Section):
    """spec: `interrupt`. `value` is CEL and required."""

    model_config = ConfigDict(title="the args of an interrupt node")

    value: str


class LoadSkills(Section):
    """spec: `load_skills`. `skill_ids` is CEL that gives a list of `{id, version?}`."""

    model_config = ConfigDict(title="the args of a load_skills node")

    skill_ids: str


class Custom(Section):
    """spec: `custom`. `metadata` is for hooks."""

    model_config = ConfigDict(title="the args of a custom node")

    metadata: dict[str, Any] = Field(default_factory=dict)


class Retry(Section):
    """spec: `on_error`, retry. `max_attempts` counts the first; delays are in seconds."""

    model_config = ConfigDict(title="a retry policy")

    max_attempts: int = 3
    strategy: Literal["fixed", "exponential"] = "exponential"
    delay: float = 1.0
    max_delay: float = 30.0

    def delay_after(self, attempt: int) -> float:
        """Seconds to wait after attempt number `attempt` (from 1) failed."""
        growth = 2 ** (attempt - 1) if self.strategy == "exponential" else 1
        return min(self.delay * growth, self.max_delay)


class OnError(Section):
    """spec: `on_error`."""

    model_config = ConfigDict(title="an on_error block")

    retry: Retry | None = None
    fallback: str | None = None


class _Node(Section):
    name: str
    on_error: OnError | None = None


class CallLLMNode(_Node):
    """spec: `call_llm`."""

    model_config = ConfigDict(title="a call_llm node")
    type: Literal["call_llm"]
    args: CallLLM


class ToolNodeNode(_Node):
    """spec: `tool_node`."""

    model_config = ConfigDict(title="a tool_node node")
    type: Literal["tool_node"]
    args: ToolNode


class CallAgentNode(_Node):
    """spec: `call_agent`."""

    model_config = ConfigDict(title="a call_agent node")
    type: Literal["call_agent"]
    args: CallAgent


class DataTransformNode(_Node):
    """spec: `data_transform`."""

    model_config = ConfigDict(title="a data_transform node")
    type: Literal["data_transform"]
    args: DataTransform


class SetStateNode(_Node):
    """spec: `set_state`."""

    model_config = ConfigDict(title="a set_state node")
    type: Literal["set_state"]
    args: SetState


class InterruptNode(_Node):
    """spec: `interrupt`."""

    model_config = ConfigDict(title="an interrupt node")
    type: Literal["interrupt"]
    args: Interrupt


class LoadSkillsNode(_Node):
    """spec: `load_skills`."""

    model_config = ConfigDict(title="a load_skills node")
    type: Literal["load_skills"]
    args: LoadSkills


class CustomNode(_Node):
    """spec: `custom`."""

    model_config = ConfigDict(title="a custom node")
    type: Literal["custom"]
    args: Custom


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


class Branch(Section):
    """spec: branches. `condition` is CEL and must be a boolean."""

    model_config = ConfigDict(title="a branch")

    condition: str
    target: str


class Edge(Section):
    """spec: `edges`. Either a `target`, or `branches` with an optional `default`."""

    model_config = ConfigDict(title="an edge")

    source: str
    target: str | None = None
    branches: list[Branch] | None = None
    default: str | None = None


class Graph(Section):
    """spec: `graph`. Either `entry_point`, or edges from `__start__`."""

    model_config = ConfigDict(title="a graph")

    entry_point: str | None = None
    nodes: list[Node]
    edges: list[Edge]

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
