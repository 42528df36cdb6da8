"""The models of a sherma manifest's sections, in the order of its documentation (manifest version 1).

`graph_document` has the models of the graph, its nodes and edges. Unknown keys are ignored, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from harness.dialects.sherma.graph_document import Graph
from harness.dialects.sherma.section import Ref, Section
from harness.source.models import Mistake, mistaken

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


class Prompt(Section, title="a prompt"):
    """spec: `prompts`. Exactly one of `instructions` and `instructions_path`."""

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


class LLM(Section, title="an llm"):
    """spec: `llms`. `provider` is openai, or (in the reference runtime) anthropic."""

    id: str
    version: str = "*"
    provider: Literal["openai", "anthropic"] = "openai"
    model_name: str


class Tool(Section, title="a tool"):
    """spec: `tools`. `import_path` names a LangChain tool, or a function that is turned into one."""

    id: str
    version: str = "*"
    import_path: str


class Skill(Section, title="a skill"):
    """spec: `skills`. The card is a local file or remote."""

    id: str
    version: str = "*"
    skill_card_path: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _one_card_source(self) -> Skill:
        if (self.skill_card_path is None) == (self.url is None):
            text = f"skill '{self.id}' needs exactly one of 'skill_card_path' and 'url'"
            raise mistaken(Mistake(text, code="skill-source"))
        return self


class MCPHook(Section, title="the MCP server of a hook"):
    """The server that runs a hook: a command (stdio) or a `url`. Undocumented, but part of sherma."""

    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    url: str | None = None
    transport: Literal["streamable_http", "sse"] = "streamable_http"
    headers: dict[str, str] = Field(default_factory=dict)

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
        given = [key for key in ("import_path", "url", "mcp") if getattr(self, key) is not None]
        if len(given) != 1:
            found = f"several: {', '.join(given)}" if given else "none"
            text = f"a hook needs one of 'import_path', 'url' and 'mcp'; it has {found}"
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
        given = [key for key in ("yaml_path", "import_path", "url") if getattr(self, key) is not None]
        if len(given) > 1:
            text = f"sub-agent '{self.id}' has several sources: {', '.join(given)}"
            raise mistaken(Mistake(text, code="sub-agent-source"))
        return self


class MCPServer(Section, title="an MCP server"):
    """spec: `mcp_servers`. HTTP transports need a `url`, stdio a `command`."""

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
    def _check_transport(self) -> MCPServer:
        needed, other = ("command", "url") if self.transport == "stdio" else ("url", "command")
        if not getattr(self, needed):
            text = f"MCP server '{self.id}' with transport '{self.transport}' needs '{needed}'"
            raise mistaken(Mistake(text, code="mcp-transport"))
        if getattr(self, other):
            text = f"MCP server '{self.id}' with transport '{self.transport}' takes no '{other}'"
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
