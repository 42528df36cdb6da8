"""What a sherma manifest may say, in the order of its documentation (manifest version 1).

Sections: manifest_version, prompts, llms, tools, skills, hooks, sub_agents, mcp_servers, checkpointer,
default_llm, agents (state, schemas, graph with nodes and edges). Keys the document does not know are
ignored, as sherma does; `unknown_keys` names them for a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from harness.source.document import Document, DocumentPath
from harness.source.models import Mistake, mistaken

MANIFEST_VERSION: Final = 1
START: Final = "__start__"
END: Final = "__end__"


class Section(BaseModel):
    """A part of a manifest. No value is coerced, except a whole number where a float is asked for."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Ref(Section):
    """A reference into a registry. `version` None or `*`: the latest."""

    model_config = ConfigDict(title="a reference")

    id: str
    version: str = "*"


class Prompt(Section):
    """spec: `prompts`. Exactly one of `instructions` and `instructions_path`."""

    model_config = ConfigDict(title="a prompt")

    id: str
    version: str = "*"
    instructions: str | None = None
    instructions_path: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Prompt:
        if (self.instructions is None) == (self.instructions_path is None):
            both = "both" if self.instructions is not None else "neither"
            raise mistaken(
                Mistake(
                    f"prompt '{self.id}' needs exactly one of 'instructions' and 'instructions_path'; "
                    f"it has {both}",
                    code="prompt-source",
                )
            )
        return self


class LLM(Section):
    """spec: `llms`. `provider` is openai, or (in the reference runtime) anthropic."""

    model_config = ConfigDict(title="an llm")

    id: str
    version: str = "*"
    provider: Literal["openai", "anthropic"] = "openai"
    model_name: str


class Tool(Section):
    """spec: `tools`. `import_path` names a LangChain tool, or a function that is made into one."""

    model_config = ConfigDict(title="a tool")

    id: str
    version: str = "*"
    import_path: str


class Skill(Section):
    """spec: `skills`. The card is a file beside the manifest, or remote."""

    model_config = ConfigDict(title="a skill")

    id: str
    version: str = "*"
    skill_card_path: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _has_card(self) -> Skill:
        if (self.skill_card_path is None) == (self.url is None):
            text = f"skill '{self.id}' needs exactly one of 'skill_card_path' and 'url'"
            raise mistaken(Mistake(text, code="skill-source"))
        return self


class Hook(Section):
    """spec: `hooks`. A class, or an object, by import path."""

    model_config = ConfigDict(title="a hook")

    import_path: str


class SubAgent(Section):
    """spec: `sub_agents`. At most one source; none: the agent is expected in a registry."""

    model_config = ConfigDict(title="a sub-agent")

    id: str
    version: str
    yaml_path: str | None = None
    import_path: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> SubAgent:
        given = [key for key in ("yaml_path", "import_path", "url") if getattr(self, key) is not None]
        if len(given) > 1:
            text = f"sub-agent '{self.id}' has several sources: {', '.join(given)}"
            raise mistaken(Mistake(text, code="sub-agent-source"))
        return self


class MCPServer(Section):
    """spec: `mcp_servers`. HTTP transports need a `url`, stdio a `command`."""

    model_config = ConfigDict(title="an MCP server")

    id: str
    version: str = "*"
    transport: Literal["streamable_http", "sse", "stdio"] = "streamable_http"
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    tool_prefix: str | None = None

    @model_validator(mode="after")
    def _transport(self) -> MCPServer:
        needed, other = ("command", "url") if self.transport == "stdio" else ("url", "command")
        if not getattr(self, needed):
            text = f"MCP server '{self.id}' with transport '{self.transport}' needs '{needed}'"
            raise mistaken(Mistake(text, code="mcp-transport"))
        if getattr(self, other):
            text = f"MCP server '{self.id}' with transport '{self.transport}' takes no '{other}'"
            raise mistaken(Mistake(text, (other,), on_key=True, code="mcp-transport"))
        return self


class Checkpointer(Section):
    """spec: `checkpointer`. State is kept in memory, declared or not."""

    model_config = ConfigDict(title="a checkpointer")

    type: Literal["memory"] = "memory"


class StateField(Section):
    """spec: `state.fields`. A field without `default` is absent until something writes it."""

    model_config = ConfigDict(title="a state field")

    name: str
    type: Literal["str", "int", "float", "bool", "list", "dict"] = "str"
    default: Any = None

    @property
    def has_default(self) -> bool:
        """Whether `default` is written, be it null."""
        return "default" in self.model_fields_set


class State(Section):
    """spec: `state`."""

    model_config = ConfigDict(title="a state")

    fields_: list[StateField] = Field(default_factory=list, alias="fields")

    @field_validator("fields_")
    @classmethod
    def _distinct(cls, fields: list[StateField]) -> list[StateField]:
        seen: set[str] = set()
        for at, field in enumerate(fields):
            if field.name in seen:
                text = f"state field '{field.name}' is declared twice"
                raise mistaken(Mistake(text, (at, "name"), code="duplicate-name"))
            seen.add(field.name)
        return fields


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
    """spec: `call_llm`. Of the three dynamic tool flags at most one is set."""

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

    @model_validator(mode="after")
    def _exclusive(self) -> CallLLM:
        flags = self.flags
        if len(flags) > 1:
            text = f"{' and '.join(flags)} exclude each other: set at most one of them"
            raise mistaken(Mistake(text, (flags[1],), on_key=True, code="tool-flags"))
        if self.response_format is not None and self.binds_tools:
            text = "a call_llm node cannot have both 'response_format' and tools"
            raise mistaken(Mistake(text, ("response_format",), on_key=True, code="tool-flags"))
        return self


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

    max_attempts: int = Field(default=3, ge=1)
    strategy: Literal["fixed", "exponential"] = "exponential"
    delay: float = Field(default=1.0, ge=0, strict=False)
    max_delay: float = Field(default=30.0, strict=False)

    @model_validator(mode="after")
    def _cap(self) -> Retry:
        if self.max_delay < self.delay:
            text = f"max_delay ({self.max_delay:g}) is less than delay ({self.delay:g})"
            at = ("max_delay",) if "max_delay" in self.model_fields_set else ("delay",)
            raise mistaken(Mistake(text, at))
        return self

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

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Edge:
        if self.target is None and not self.branches:
            text = f"the edge from '{self.source}' leads nowhere: it needs 'target' or 'branches'"
            raise mistaken(Mistake(text, code="edge-target"))
        return self


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


class LangGraphConfig(Section):
    """Settings of the runtime. Not in the document; the reference runtime has it."""

    model_config = ConfigDict(title="a langgraph_config")

    recursion_limit: int | None = Field(default=None, ge=1)


class Agent(Section):
    """spec: `agents`. The schemas are JSON Schema; they hold at the agent's boundary."""

    model_config = ConfigDict(title="an agent")

    state: State
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    graph: Graph
    langgraph_config: LangGraphConfig | None = None

    @property
    def keeps_messages(self) -> bool:
        """Whether the state has LangGraph's message accumulation: a list called `messages`."""
        return any(field.name == "messages" and field.type == "list" for field in self.state.fields_)


class Manifest(Section):
    """A whole manifest. `data` is not in the document; the reference runtime offers it to CEL."""

    model_config = ConfigDict(title="a manifest")

    manifest_version: int
    prompts: list[Prompt] = Field(default_factory=list)
    llms: list[LLM] = Field(default_factory=list)
    tools: list[Tool] = Field(default_factory=list)
    skills: list[Skill] = Field(default_factory=list)
    hooks: list[Hook] = Field(default_factory=list)
    sub_agents: list[SubAgent] = Field(default_factory=list)
    mcp_servers: list[MCPServer] = Field(default_factory=list)
    checkpointer: Checkpointer | None = None
    default_llm: Ref | None = None
    agents: dict[str, Agent] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)

    @field_validator("manifest_version")
    @classmethod
    def _known_version(cls, version: int) -> int:
        if version != MANIFEST_VERSION:
            text = f"manifest_version {version} is not known; the current one is {MANIFEST_VERSION}"
            raise mistaken(Mistake(text, code="manifest-version"))
        return version


def detect(document: Document) -> bool:
    """Whether a document is a sherma manifest: it says `manifest_version`, or its agents have graphs."""
    value = document.value
    if not isinstance(value, dict):
        return False
    agents = value.get("agents")
    has_graphs = isinstance(agents, dict) and any(
        isinstance(agent, dict) and "graph" in agent for agent in agents.values()
    )
    return "manifest_version" in value or has_graphs


def agents(document: Document) -> list[str]:
    """The names of the agents a manifest defines."""
    defined = document.value.get("agents") if isinstance(document.value, dict) else None
    return list(defined) if isinstance(defined, dict) else []


def unknown_keys(
    model: type[BaseModel], value: Any, path: DocumentPath = ()
) -> Iterator[tuple[DocumentPath, list[str]]]:
    """The keys a manifest has and the document does not know, each with those it knows there."""
    if not isinstance(value, Mapping):
        return
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    for key, item in value.items():
        if key not in known:
            yield (*path, key), sorted(known)
            continue
        for inner, below, at in _sections(known[key].annotation, item, (*path, key)):
            yield from unknown_keys(inner, below, at)


def _sections(
    annotation: Any, value: Any, path: DocumentPath
) -> Iterator[tuple[type[BaseModel], Any, DocumentPath]]:
    """The sections inside a value, with the model of each."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, value, path
    elif get_origin(annotation) is list and isinstance(value, list):
        for at, item in enumerate(value):
            yield from _sections(get_args(annotation)[0], item, (*path, at))
    elif get_origin(annotation) is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from _sections(get_args(annotation)[1], item, (*path, key))
    else:
        for member in get_args(annotation):
            if _fits(member, value):
                yield from _sections(member, value, path)


def _fits(member: Any, value: Any) -> bool:
    """Whether a union's member is meant: node types are told apart by `type`, the rest by their shape."""
    if isinstance(member, type) and issubclass(member, BaseModel):
        kind = member.model_fields.get("type")
        if kind is None or get_origin(kind.annotation) is not Literal or not isinstance(value, dict):
            return isinstance(value, dict)
        return value.get("type") in get_args(kind.annotation)
    return get_origin(member) in (list, dict) or bool(get_args(member))
