"""The fields of a `graph.yaml` as pydantic models, in the order of its documentation.

Unknown keys are ignored with a warning, which `rules` raises. Rules between nodes are there too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from harness.graph.model import END, START
from harness.source.display import did_you_mean
from harness.source.document import DocumentPath
from harness.source.models import Mistake, mistaken

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Section(BaseModel, extra="ignore", strict=True):
    """Base class of the sections of a graph. Optional fields may be null, except for those in `never_null`."""

    never_null: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict) or None not in value.values():
            return value
        required = {name for name, field in cls.model_fields.items() if field.is_required()}
        kept = required.union(cls.never_null)
        return {key: part for key, part in value.items() if part is not None or key in kept}


class Settings(Section, title="the settings"):
    """The `settings` of a graph. spec: "graph.yaml Top-Level Fields".

    `timeout` limits the whole run, in virtual seconds.
    """

    max_loop_iterations: int = Field(default=100, ge=1)
    log_state_snapshots: bool = True
    validate_before_run: bool = True
    timeout: Seconds | None = None
    max_concurrency: int = Field(default=4, ge=1)


class Variable(Section, title="a variable"):
    """A variable of the agent, which scripts and tools get as an environment variable."""

    name: str = Field(min_length=1)
    description: str | None = None
    default: str | None = None


# ------------------------------------------------------------------ nodes


class NodeSpec(Section):
    """Base class of nodes, with the common fields. spec: "Node Types".

    targets  the fields that name one target node
    ignored  the keys that are allowed and have no effect
    scoped   the variable for the node's result in `state_updates`

    A list in `next` leads to several nodes, which run side by side.
    """

    model_config = ConfigDict(title="a node")
    targets: ClassVar[tuple[str, ...]] = ("next",)
    ignored: ClassVar[tuple[str, ...]] = ()
    scoped: ClassVar[str | None] = None

    id: str = ""
    type: str
    description: str | None = None
    next: str | list[str] | None = None
    state_updates: dict[str, str] = Field(default_factory=dict)

    _result_key: str | None = PrivateAttr(None)

    @property
    def result_key(self) -> str | None:
        """The state key that its result is stored under, if it is the branch of a map node."""
        return self._result_key

    def as_branch(self, result_key: str) -> Self:
        """Return the node as the branch of a map node."""
        made = self.model_copy()
        made._result_key = result_key
        return made


class AgentNode(NodeSpec, title="an agent node"):
    """A node that spawns a child agent. spec: "agent"."""

    ignored = ("tools",)  # spec: "Tool whitelist is `llm`-only"
    scoped = "output"

    type: Literal["agent"]
    agent: str = Field(min_length=1)
    prompt: str
    timeout: Seconds = 300
    output_schema: dict[str, Any] | bool | None = None


class ScriptNode(NodeSpec, title="a script node"):
    """A node that runs a script. spec: "script". `timeout` is in real seconds, for a stub in virtual ones."""

    targets = ("next", "fallback")

    type: Literal["script"]
    script: str = Field(min_length=1)
    timeout: Seconds = 30
    fallback: str | None = None


class ApprovalNode(NodeSpec, title="an approval node"):
    """A node that asks the user to choose an option. spec: "approval"."""

    targets = ("next", "on_other")
    scoped = "choice"

    type: Literal["approval"]
    question: str
    options: list[str]
    routes: dict[str, str]
    on_other: str


class InputNode(NodeSpec, title="an input node"):
    """A node that asks the user for text. spec: "input"."""

    scoped = "input"

    type: Literal["input"]
    question: str
    default: str | None = None
    validation: str | None = None


class LLMNode(NodeSpec, title="an llm node"):
    """A node that calls a model. spec: "llm". Without a `timeout` it has no time limit."""

    targets = ("next", "fallback")
    scoped = "output"

    type: Literal["llm"]
    instructions: str | None = None
    prompt: str
    tools: list[str] = Field(default_factory=list)
    model: str | None = None
    temperature: Finite | None = None
    top_p: Finite | None = None
    reasoning_effort: str | None = None
    skills_enabled: bool | None = None
    enabled_skills: list[str] | None = None
    inject_skill_instructions: bool | None = None
    skill_instructions: str | None = None
    max_attempts: int = Field(default=1, ge=1)
    max_iterations: int = Field(default=10, ge=1)
    fallback: str | None = None
    output_schema: dict[str, Any] | bool | None = None
    timeout: Seconds | None = None


class BuildConfig(Section, title="the build config of a knowledge base"):
    """The settings by which a knowledge base is built. spec: "Knowledge-base build config"."""

    embedding_model: str | None = None
    chunk_size: int | None = Field(default=None, ge=1)
    chunk_overlap: int | None = Field(default=None, ge=0)
    reranker_model: str | None = None
    batch_size: int | None = Field(default=None, ge=1)


APP_SETTINGS: Final = {
    "embedding_model": ("COYOTE_RAG_EMBEDDING_MODEL", "LOKI_RAG_EMBEDDING_MODEL"),
    "chunk_size": ("COYOTE_RAG_CHUNK_SIZE", "LOKI_RAG_CHUNK_SIZE"),
    "chunk_overlap": ("COYOTE_RAG_CHUNK_OVERLAP", "LOKI_RAG_CHUNK_OVERLAP"),
    "reranker_model": ("COYOTE_RAG_RERANKER_MODEL", "LOKI_RAG_RERANKER_MODEL"),
}
"""The variables of the app's setting for each field, of Loki's successor and of Loki."""


class RagNode(BuildConfig, NodeSpec, title="a rag node"):
    """A node that searches a knowledge base. spec: "rag"."""

    scoped = "output"

    type: Literal["rag"]
    documents: list[str]
    query: str = "{{initial_prompt}}"
    top_k: int | None = Field(default=None, ge=1)
    timeout: Seconds = 120
    extractor_model: str | None = None
    extractor_prompt: str | None = None
    graph_hops: int | None = Field(default=None, ge=0)

    @property
    def unspecified(self) -> list[str]:
        """The settings without which its base is not built non-interactively. spec: "Knowledge base lifecycle"."""
        needed = ("embedding_model", "chunk_size", "chunk_overlap")
        return [name for name in needed if getattr(self, name) is None]

    def with_app_settings(self, env: Mapping[str, str]) -> Self:
        """Return the node with those settings of the app, from variables, that it omits.

        spec: "Each falls back to the app-level `rag_*` config when omitted".

        Raises:
            ValidationError: a variable has a value that does not fit.
        """
        given = {
            name: next((env[variable] for variable in variables if variable in env), None)
            for name, variables in APP_SETTINGS.items()
            if getattr(self, name) is None
        }
        settings = BuildConfig.model_validate(given, strict=False)
        return self.model_copy(update=settings.model_dump(exclude_unset=True))


class MapNode(NodeSpec, title="a map node"):
    """A node that runs another node for each item of a list."""

    type: Literal["map"]
    over: str
    as_: str = Field(alias="as", min_length=1)
    branch: str
    collect_into: str = Field(min_length=1)
    max_concurrency: int | None = Field(default=None, ge=1)
    output_key: str = Field(default="output", min_length=1)


class EndNode(NodeSpec, title="an end node"):
    """A node that ends the run. spec: "end"."""

    type: Literal["end"]
    output: str = ""


_Node = AgentNode | ScriptNode | ApprovalNode | InputNode | LLMNode | RagNode | MapNode | EndNode
NODE_TYPES: Final[tuple[type[NodeSpec], ...]] = get_args(_Node)
AnyNode = Annotated[_Node, Field(discriminator="type")]
Kind = TypeVar("Kind", bound=NodeSpec)


ReducerName = Literal["append", "extend", "concat", "sum", "max", "min", "merge", "overwrite"]


class AgentFile(Section):
    """The fields that a `graph.yaml` and a `config.yaml` share."""

    name: str | None = None
    model: str | None = None
    temperature: Finite | None = None
    top_p: Finite | None = None
    global_tools: list[str] = Field(default_factory=list)
    mcp_servers: list[str] = Field(default_factory=list)

    def with_model(self, inherited: str | None) -> Self:
        """Return the agent with this model, unless it names one."""
        return self if self.model is not None else self.model_copy(update={"model": inherited})


class GraphFile(AgentFile, title="a graph agent"):
    """A whole `graph.yaml`. spec: "graph.yaml Top-Level Fields"."""

    never_null = ("version",)

    description: str | None = None
    version: Literal["1.0"] = "1.0"
    conversation_starters: list[str] = Field(default_factory=list)
    variables: list[Variable] = Field(default_factory=list)
    settings: Settings = Field(default_factory=Settings)
    reasoning_effort: str | None = None
    skills_enabled: bool | None = None
    enabled_skills: list[str] | None = None
    inject_skill_instructions: bool | None = None
    skill_instructions: str | None = None
    reducers: dict[str, ReducerName] = Field(default_factory=dict)
    initial_state: dict[str, Any] = Field(default_factory=dict)
    start: str
    nodes: dict[str, AnyNode]

    def of(self, kind: type[Kind]) -> dict[str, Kind]:
        """Return the nodes of one type, by id."""
        return {id_: node for id_, node in self.nodes.items() if isinstance(node, kind)}

    @property
    def branches(self) -> Mapping[str, MapNode]:
        """The map nodes, by the node that each runs for its items."""
        return {node.branch: node for node in self.of(MapNode).values()}

    @property
    def runs_side_by_side(self) -> bool:
        """True if several of its nodes may run in one superstep."""
        return any(isinstance(node.next, list) and len(node.next) > 1 for node in self.nodes.values())

    @model_validator(mode="after")
    def _structure(self) -> GraphFile:
        """Check the rules that apply even with `validate_before_run: false`."""
        mistakes = []
        for key, node in self.nodes.items():
            if node.id not in ("", key):
                text = f"the id '{node.id}' is not the key of its node, '{key}'"
                mistakes.append(Mistake(text, ("nodes", key, "id"), code="id-mismatch"))
            if key in (START, END):
                text = f"'{key}' is not a name for a node"
                mistakes.append(Mistake(text, ("nodes", key), on_key=True, code="reserved-name"))
            if isinstance(node, AgentNode | LLMNode):
                mistakes += _non_json_numbers(node.output_schema, ("nodes", key, "output_schema"))
        mistakes += _non_json_numbers(self.initial_state, ("initial_state",))
        if self.start not in self.nodes:
            text = f"start must be the id of a node, and there is no node '{self.start}'"
            hint = did_you_mean(self.start, self.nodes)
            mistakes.append(Mistake(text, ("start",), code="unknown-node", hint=hint))
        if mistakes:
            raise mistaken(*mistakes)
        return self


def _non_json_numbers(value: Any, path: DocumentPath) -> Iterator[Mistake]:
    """Yield a mistake for each number in a value that JSON cannot express: `.nan` and `.inf`."""
    if isinstance(value, float) and not math.isfinite(value):
        yield Mistake(f"{path[-1]}: a number that JSON does not have", path)
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _non_json_numbers(part, (*path, key))


class AgentConfig(AgentFile, title="an agent"):
    """The fields of an ordinary agent's `config.yaml` that count when a graph spawns it. spec: "Agents"."""

    instructions: str = ""


INITIAL_PROMPT: Final = "initial_prompt"
"""The state key that is seeded with the user's prompt. spec: "`{{initial_prompt}}`: Automatically Seeded"."""
