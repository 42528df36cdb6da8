"""The structure of an Agent Spec document: its version, what each version adds to 25.4.1, and the component types.

The version of a configuration decides what may stand in it. spec: "Versioning", "Symbolic references", "Disaggregated
components", "Note about serialization of components".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, Field

from harness.dialects.agentspec import agents, connections, flows, tools, transforms
from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.data_flow import is_single
from harness.dialects.agentspec.dialect import REFERENCE, TABLE, TYPE, VERSION, missing_root_problem
from harness.dialects.kit.manifest import Problems
from harness.errors import Problem
from harness.source.display import nearest
from harness.source.document import Document
from harness.source.models import describe, validate

VERSIONS: Final = ("25.4.1", "25.4.2", "26.1.0", "26.1.2", "26.2.0", "26.3.1")
"""The known versions, the oldest first."""

OLD_VERSIONS: Final = ("25.4.0",)
"""The versions that are read as the first known one."""

_RELEASE: Final = re.compile(r"\d{1,4}(\.\d{1,4})*", re.ASCII)


def is_after_all(version: str) -> bool:
    """True for a version that is later than all known ones."""
    if not _RELEASE.fullmatch(version):
        return False
    return [*map(int, version.split("."))] > [*map(int, VERSIONS[-1].split("."))]


def later(version: str, other: str) -> bool:
    """True if a known version is later than another."""
    return VERSIONS.index(version) > VERSIONS.index(other)


class LaterField(NamedTuple):
    """A field that a version adds to component types.

    name            its key
    kinds           the components that have it
    since           the version that adds it
    neutral_values  the values that mean the same as leaving it out; None if all do
    """

    name: str
    kinds: tuple[type[Component], ...]
    since: str
    neutral_values: tuple[Any, ...] | None


_COMPATIBLE: Final = (connections.OpenAiCompatibleConfig,)
_OPEN_AI: Final = (connections.OpenAiConfig,)
_GEMINI: Final = (connections.GeminiConfig,)
_OCI: Final = (connections.OciGenAiConfig,)
_REMOTE: Final = (tools.RemoteCall, connections.RemoteTransport)
_AGENTS: Final = (agents.OciAgent, agents.A2AConnectionConfig)

_LATER_FIELDS: Final[Sequence[tuple[str, tuple[type[Component], ...], str, tuple[Any, ...] | None]]] = (
    ("25.4.2", (tools.Tool,), "requires_confirmation", (False,)),
    ("25.4.2", (agents.Agent,), "human_in_the_loop", (True,)),
    ("25.4.2", (agents.Agent,), "toolboxes", ([],)),
    ("25.4.2", _REMOTE, "sensitive_headers", ({}, None)),
    ("25.4.2", (*_COMPATIBLE, *_OPEN_AI), "api_type", ("chat_completions",)),
    ("25.4.2", _OCI, "api_type", ("oci",)),
    ("25.4.2", (*_COMPATIBLE, *_OPEN_AI), "api_key", None),
    ("25.4.2", _OCI, "conversation_store_id", (None,)),
    ("26.1.2", (agents.Agent,), "transforms", ([],)),
    ("26.1.2", (tools.RemoteCall,), "url_allow_list", (None,)),
    ("26.1.2", (connections.RemoteTransport,), "auth", (None,)),
    ("26.1.2", (*_COMPATIBLE, *_OPEN_AI, *_OCI, *_REMOTE, *_AGENTS), "retry_policy", (None,)),
    ("26.3.1", (tools.MCPTool, tools.MCPToolBox), "retry_policy", (None,)),
    ("26.1.2", (tools.ToolBox,), "requires_confirmation", (False,)),
    ("26.1.2", _COMPATIBLE, "key_file cert_file ca_file provider api_provider", None),
    ("26.1.2", _OPEN_AI, "provider api_provider", ("openai",)),
    ("26.1.2", _OCI, "api_provider", ("oci",)),
    ("26.1.2", _OCI, "api_key", None),
    ("26.1.2", (*_OPEN_AI, *_OCI, *_GEMINI), "url", (None,)),
    ("26.1.2", _GEMINI, "provider", ("google",)),
    ("26.1.2", _GEMINI, "api_provider api_type", None),
    # Secrets, which are not read.
    ("26.1.2", (connections.LlmConfig, *_GEMINI, connections.GeminiAIStudioAuthConfig), "api_key", None),
    ("26.1.2", (connections.GeminiVertexAIAuthConfig,), "credentials", None),
    ("26.1.2", (connections.OAuthClientConfig,), "client_id client_secret client_id_metadata_url", None),
    ("26.1.2", (connections.OracleConnection,), "user password dsn wallet_location wallet_password", None),
    ("26.1.2", (connections.PostgresConnection,), "user password sslkey", None),
)
LATER_FIELDS: Final[Sequence[LaterField]] = [
    LaterField(name, kinds, since, neutral)
    for since, kinds, names, neutral in _LATER_FIELDS
    for name in names.split()
]
"""The fields that versions add to the component types of 25.4.1.

A field that its model lacks is accepted with a neutral value only.
"""


def later_field(model: type[Component], key: str) -> LaterField | None:
    """Return the field of a component type that a version after 25.4.1 adds; None for any other."""
    return next((it for it in LATER_FIELDS if it.name == key and issubclass(model, it.kinds)), None)


class LaterValue(NamedTuple):
    """Values of a field that a later version adds.

    kind       the components that have the field
    field      its key
    text       a description of the values
    since      the version that adds them
    has_value  true for a component with such a value
    """

    kind: type[Component]
    field: str
    text: str
    since: str
    has_value: Callable[[Any], bool]


LATER_VALUES: Final[Sequence[LaterValue]] = (
    LaterValue(
        flows.LlmNode,
        "outputs",
        "outputs other than one string",
        "25.4.2",
        lambda node: bool(node.declared_outputs) and not is_single("string", node.outputs),
    ),
    LaterValue(
        connections.OciGenAiConfig,
        "provider",
        "the provider XAI",
        "26.1.2",
        lambda model: model.provider == "XAI",
    ),
    LaterValue(
        tools.RemoteCall,
        "data",
        "data other than a mapping",
        "25.4.2",
        lambda call: not isinstance(call.data, dict),
    ),
)
"""The values that a later version adds to fields. They work in 25.4.1, of which there are such configurations."""

PLUGIN: Final = "component_plugin_name"
PLUGIN_KEYS: Final = "component_plugin_"

WAYFLOW_FIELDS: Final[Mapping[str, type[Component]]] = {
    "agents": agents.Agent,
    "flows": agents.Agent,
    "state": flows.Flow,
}
"""Fields that WayFlow writes into configurations although no version has them, and the components that get them."""

_TYPES: Final[Sequence[tuple[str, ModuleType, str]]] = (
    ("25.4.1", agents, "Agent OciAgent OpenAiAgent"),
    ("25.4.1", connections, "OpenAiCompatibleConfig VllmConfig OllamaConfig OpenAiConfig OciGenAiConfig"),
    ("25.4.1", connections, "OciClientConfigWithSecurityToken OciClientConfigWithApiKey"),
    ("25.4.1", connections, "OciClientConfigWithInstancePrincipal OciClientConfigWithResourcePrincipal"),
    ("25.4.1", tools, "ServerTool ClientTool RemoteTool MCPTool"),
    ("25.4.1", connections, "StdioTransport SSETransport StreamableHTTPTransport"),
    ("25.4.1", connections, "SSEmTLSTransport StreamableHTTPmTLSTransport"),
    (
        "25.4.1",
        flows,
        "Flow ControlFlowEdge DataFlowEdge StartNode EndNode LlmNode ApiNode AgentNode FlowNode",
    ),
    ("25.4.1", flows, "MapNode BranchingNode ToolNode InputMessageNode OutputMessageNode"),
    ("25.4.2", tools, "BuiltinTool MCPToolBox MCPToolSpec"),
    ("25.4.2", agents, "A2AAgent A2AConnectionConfig SpecializedAgent AgentSpecializationParameters"),
    ("25.4.2", agents, "Swarm ManagerWorkers"),
    ("26.1.2", connections, "LlmConfig"),
    ("26.3.1", connections, "DbmsVectorChainLlmConfig"),
    ("26.1.2", connections, "GeminiConfig GeminiAIStudioAuthConfig GeminiVertexAIAuthConfig"),
    ("26.1.2", connections, "OAuthConfig OAuthClientConfig"),
    ("26.1.2", transforms, "MessageSummarizationTransform ConversationSummarizationTransform"),
    ("26.1.2", transforms, "InMemoryCollectionDatastore OracleDatabaseDatastore PostgresDatabaseDatastore"),
    ("26.1.2", connections, "TlsPostgresDatabaseConnectionConfig TlsOracleDatabaseConnectionConfig"),
    ("26.1.2", connections, "MTlsOracleDatabaseConnectionConfig"),
    ("25.4.2", flows, "ParallelFlowNode ParallelMapNode"),
    ("26.1.2", flows, "CatchExceptionNode"),
)
TYPES: Final[Mapping[str, type[Component]]] = {
    name: getattr(module, name) for _, module, names in _TYPES for name in names.split()
}
"""The component types of Agent Spec, by name."""

LATER_TYPES: Final[Mapping[str, str]] = {
    **{name: since for since, _, names in _TYPES if since != VERSIONS[0] for name in names.split()},
    "AnthropicLlmConfig": "26.3.1",  # it is not supported
}
"""The version that adds each component type, by its name. 25.4.1 has the others."""


class _Parts(BaseModel, extra="forbid", title="a document of disaggregated components"):
    """A document of disaggregated components.

    spec: "A serialized configuration of disaggregated components contains only … `$referenced_components`".
    """

    table: dict[Any, Any] = Field(alias=TABLE)
    version: Any = Field(None, alias=VERSION)


def check_shapes(documents: Sequence[Document]) -> None:
    """Check that the documents are mappings, and that all but the first have only a table and a version.

    Raises:
        ManifestError: with all problems.
    """
    problems = Problems()
    for index, document in enumerate(documents):
        value = document.value
        if not isinstance(value, dict):
            text = f"a configuration is a mapping, found {describe(value)}"
            problems.refuse("wrong-type", text, document.span())
        elif index and (TYPE in value or REFERENCE in value):
            model = TYPES.get(value[TYPE]) if isinstance(value.get(TYPE), str) else None
            what = "a configuration" if model is None else model.model_config["title"]
            text = f"this is {what} of its own; the documents after the first have only {TABLE}"
            problems.refuse("wrong-component", text, document.span((TYPE if TYPE in value else REFERENCE,)))
        elif index:
            with problems.collecting():
                validate(_Parts, document)
    problems.raise_errors()


def top_problem(document: Document) -> Problem | None:
    """Return the problem of a document without a root component; None if it has one."""
    value = document.value
    if TYPE in value or REFERENCE in value:
        return None
    if (problem := missing_root_problem(document)) is not None:
        return problem
    if VERSION in value or TABLE in value:
        near = nearest(TYPE, value, cutoff=_MISSPELLING_CUTOFF)
        hint = f"it is written '{near}' here" if near else "such as Agent or Flow"
        return Problem("missing-key", f"missing key '{TYPE}'", document.span(), hint)
    text = f"this is not an Agent Spec configuration: it has no {TYPE} at the top"
    return Problem("no-component", text, document.span())


_MISSPELLING_CUTOFF: Final = 0.8
"""The similarity from which a key counts as a misspelling of another."""


def version_of(main: Document) -> str:
    """Return the version that a configuration is read as: without one, the newest. Its version has no problem."""
    written = main.value.get(VERSION, VERSIONS[-1])
    return VERSIONS[0] if written in OLD_VERSIONS else str(written)


def version_problems(document: Document, *, required: bool) -> Iterator[Problem]:
    """Yield the problems of the version of a document. spec: "Versioning". `required`: it may be misspelt."""
    value = document.value
    known = ", ".join(VERSIONS)
    if VERSION not in value:
        misspelt = nearest(VERSION, value, cutoff=_MISSPELLING_CUTOFF) if required else None
        if misspelt is not None:
            text = f"unknown key '{misspelt}' at the top"
            yield Problem("unknown-key", text, document.key_span((misspelt,)), f"did you mean '{VERSION}'?")
        return
    version, span = value[VERSION], document.span((VERSION,))
    if version in OLD_VERSIONS:
        text = f"{VERSION} {version} is read as {VERSIONS[0]}"
        yield Problem("old-version", text, span, severity="warning")
    elif not isinstance(version, str):
        text = f"{VERSION}: expected text, found {describe(version)}"
        yield Problem("wrong-type", text, span, "quote it to make it text")
    elif version not in VERSIONS:
        text = f"{VERSION} {version} is unknown; known versions: {known}"
        yield Problem("unknown-version", text, span)


def as_newest_known(document: Document) -> Document | None:
    """Return a document of a later version than all known ones as one of the newest of these; None for any other."""
    version = document.value.get(VERSION) if isinstance(document.value, dict) else None
    if not isinstance(version, str) or not is_after_all(version):
        return None
    return document.with_value({**document.value, VERSION: VERSIONS[-1]})
