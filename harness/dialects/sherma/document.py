"""The models of a sherma manifest: the graph, its nodes and edges, then the other sections (manifest version 1).

Unknown keys are ignored, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator

from harness.graph.effects import MCPEndpoint
from harness.graph.model import START
from harness.source.models import Mistake, describe, mistaken

INTERNAL_STATE_KEY: Final = "__sherma__"
"""The state field of the runtime: the last error, loaded skills and their tools."""


class Section(BaseModel, extra="ignore", defer_build=True):
    """Base class of the models. Text that spells a number or boolean is accepted as one, for `${VAR}`."""


def given(section: Section, *keys: str) -> list[str]:
    """Return those of the keys that have a value."""
    return [key for key in keys if getattr(section, key) is not None]


class Declaration(Section):
    """Base class of what has an id and a version. Version `*` is the latest."""

    id: str
    version: str = "*"


class Ref(Declaration, title="a reference"):
    """A reference into a registry."""

    main_key: ClassVar[str] = "id"


def _reject_containers(written: Any) -> Any:
    if isinstance(written, (list, dict)):
        text = f"an expression must be text, not {describe(written)}"
        raise mistaken(Mistake(text, code="wrong-type", hint="quote it"))
    return written


Expression = Annotated[str, BeforeValidator(_reject_containers)]
"""The source text of a CEL expression."""


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


MANIFEST_VERSION: Final = 1
FIELD_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
}
"""The types of state fields, each with the Python types of its values."""


class Prompt(Declaration, title="a prompt"):
    """spec: `prompts`. Exactly one of `instructions` and `instructions_path`."""

    instructions: str | None = None
    instructions_path: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Prompt:
        if len(found := given(self, "instructions", "instructions_path")) != 1:
            needed = f"prompt '{self.id}' needs exactly one of 'instructions' and 'instructions_path'"
            raise mistaken(
                Mistake(f"{needed}; it has {'both' if found else 'neither'}", code="prompt-source")
            )
        return self


class LLM(Declaration, title="an llm"):
    """spec: `llms`. `provider` is openai, or (in the reference runtime) anthropic."""

    provider: Literal["openai", "anthropic"] = "openai"
    model_name: str


class Tool(Declaration, title="a tool"):
    """spec: `tools`. `import_path` names a LangChain tool, or a function that is turned into one."""

    import_path: str


class Skill(Declaration, title="a skill"):
    """spec: `skills`. The card is a local file or remote."""

    skill_card_path: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _one_card_source(self) -> Skill:
        if len(given(self, "skill_card_path", "url")) != 1:
            text = f"skill '{self.id}' needs exactly one of 'skill_card_path' and 'url'"
            raise mistaken(Mistake(text, code="skill-source"))
        return self


class _Server(Section):
    """The fields that connect to an MCP server."""

    transport: str
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)

    def endpoint(self, name: str) -> MCPEndpoint:
        """Return its endpoint, with this name. A server with a command is started by it."""
        transport = "stdio" if self.command else self.transport
        return MCPEndpoint(name, transport, self.url, self.headers, self.command, self.args, self.env)


class MCPHook(_Server, title="the MCP server of a hook"):
    """The server that runs a hook: a command (stdio) or a `url`. Undocumented, but part of sherma."""

    transport: Literal["streamable_http", "sse"] = "streamable_http"

    @model_validator(mode="after")
    def _one_transport(self) -> MCPHook:
        if bool(self.command) == bool(self.url):
            text = "the MCP server of a hook needs exactly one of 'command' and 'url'"
            raise mistaken(Mistake(text, code="mcp-transport"))
        return self


class Hook(Section, title="a hook"):
    """spec: `hooks`. The import path of a class or an object, or a server: `url` and `mcp` are undocumented."""

    import_path: str | None = Field(default=None, examples=["import_path: package.module.HookClass"])
    url: str | None = None
    mcp: MCPHook | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Hook:
        if len(found := given(self, "import_path", "url", "mcp")) != 1:
            sources = f"several: {', '.join(found)}" if found else "none"
            text = f"a hook needs one of 'import_path', 'url' and 'mcp'; it has {sources}"
            raise mistaken(Mistake(text, code="hook-source"))
        return self


class SubAgent(Section, title="a sub-agent"):
    """spec: `sub_agents`. At most one source; without any, the agent is expected in a registry."""

    id: str
    version: str
    yaml_path: str | None = None
    import_path: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> SubAgent:
        if len(found := given(self, "yaml_path", "import_path", "url")) > 1:
            text = f"sub-agent '{self.id}' has several sources: {', '.join(found)}"
            raise mistaken(Mistake(text, code="sub-agent-source"))
        return self


class MCPServer(_Server, Declaration, title="an MCP server"):
    """spec: `mcp_servers`. HTTP transports need a `url`, stdio a `command`."""

    transport: Literal["streamable_http", "sse", "stdio"] = "streamable_http"
    tool_prefix: str | None = None

    @model_validator(mode="after")
    def _check_transport(self) -> MCPServer:
        needed, other = ("command", "url") if self.transport == "stdio" else ("url", "command")
        what = f"MCP server '{self.id}' with transport '{self.transport}'"
        if not getattr(self, needed):
            raise mistaken(Mistake(f"{what} needs '{needed}'", code="mcp-transport"))
        if getattr(self, other):
            text = f"{what} takes no '{other}'"
            raise mistaken(Mistake(text, (other,), on_key=True, code="mcp-transport"))
        return self


class Checkpointer(Section, title="a checkpointer"):
    """spec: `checkpointer`. State is always kept in memory."""

    type: Literal["memory"] = "memory"


class StateField(Section, title="a state field"):
    """spec: `state.fields`. A field without `default` is absent until it is written.

    Values are not checked against the type.
    """

    name: str
    type: str = "str"
    default: Any = None

    @property
    def has_default(self) -> bool:
        """True if `default` is given, even as null."""
        return "default" in self.model_fields_set


class State(Section, title="a state"):
    """spec: `state`."""

    fields_: list[StateField] = Field(default_factory=list, alias="fields")


class LangGraphConfig(Section, title="a langgraph_config"):
    """Runtime settings, undocumented. `tags` and `metadata` have no effect here."""

    recursion_limit: int | None = Field(default=None, ge=1)
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class Agent(Section, title="an agent"):
    """spec: `agents`. The schemas are JSON Schemas for the agent's input and output."""

    state: State
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    graph: Graph
    langgraph_config: LangGraphConfig | None = None

    @property
    def keeps_messages(self) -> bool:
        """True if the state has a field `messages`, which then accumulates."""
        return any(field.name == "messages" for field in self.state.fields_)


class Manifest(Section, title="a manifest"):
    """A whole manifest. `data` is undocumented; sherma provides it to CEL."""

    manifest_version: int = Field(examples=[f"manifest_version: {MANIFEST_VERSION}"])
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
