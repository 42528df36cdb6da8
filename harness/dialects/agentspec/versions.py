"""The versions of Agent Spec, and what each adds to 25.4.1. spec: "Versioning".

The version of a configuration decides what may stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness.dialects.agentspec import agents, auth, datastores, flows, models, tools, transports
from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.data_flow import is_single

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


_COMPATIBLE: Final = (models.OpenAiCompatibleConfig,)
_OPEN_AI: Final = (models.OpenAiCompatibleConfig, models.OpenAiConfig)
_PLAIN: Final = (models.LlmConfig, models.GeminiConfig)
_LLM: Final = (*_OPEN_AI, models.OciGenAiConfig)

_SECRETS: Final[Mapping[tuple[type[Component], ...], Sequence[str]]] = {
    (*_PLAIN, models.GeminiAIStudioAuthConfig): ("api_key",),
    (models.GeminiVertexAIAuthConfig,): ("credentials",),
    (auth.OAuthClientConfig,): ("client_id", "client_secret", "client_id_metadata_url"),
    (datastores.OracleConnection,): ("user", "password", "dsn", "wallet_location", "wallet_password"),
    (datastores.PostgresConnection,): ("user", "password", "sslkey"),
}
"""The fields of later components that hold secrets, which are not read."""

LATER_FIELDS: Final[Sequence[LaterField]] = (
    LaterField("requires_confirmation", (tools.Tool,), "25.4.2", (False,)),
    LaterField("human_in_the_loop", (agents.Agent,), "25.4.2", (True,)),
    LaterField("toolboxes", (agents.Agent,), "25.4.2", ([],)),
    LaterField("sensitive_headers", (tools.RemoteCall, transports.RemoteTransport), "25.4.2", ({}, None)),
    LaterField("api_type", _OPEN_AI, "25.4.2", ("chat_completions",)),
    LaterField("api_type", (models.OciGenAiConfig,), "25.4.2", ("oci",)),
    LaterField("api_key", _OPEN_AI, "25.4.2", None),
    LaterField("conversation_store_id", (models.OciGenAiConfig,), "25.4.2", (None,)),
    LaterField("transforms", (agents.Agent,), "26.1.2", ([],)),
    LaterField("url_allow_list", (tools.RemoteCall,), "26.1.2", (None,)),
    LaterField("auth", (transports.RemoteTransport,), "26.1.2", (None,)),
    LaterField(
        "retry_policy",
        (
            *_LLM,
            tools.RemoteCall,
            transports.RemoteTransport,
            agents.OciAgent,
            agents.A2AConnectionConfig,
        ),
        "26.1.2",
        (None,),
    ),
    LaterField("retry_policy", (tools.MCPTool, tools.MCPToolBox), "26.3.1", (None,)),
    LaterField("requires_confirmation", (tools.ToolBox,), "26.1.2", (False,)),
    *(LaterField(key, _COMPATIBLE, "26.1.2", None) for key in ("key_file", "cert_file", "ca_file")),
    *(LaterField(key, _COMPATIBLE, "26.1.2", None) for key in ("provider", "api_provider")),
    *(LaterField(key, (models.OpenAiConfig,), "26.1.2", ("openai",)) for key in ("provider", "api_provider")),
    LaterField("api_provider", (models.OciGenAiConfig,), "26.1.2", ("oci",)),
    LaterField("api_key", (models.OciGenAiConfig,), "26.1.2", None),
    LaterField("url", (models.OpenAiConfig, models.OciGenAiConfig, models.GeminiConfig), "26.1.2", (None,)),
    LaterField("provider", (models.GeminiConfig,), "26.1.2", ("google",)),
    *(LaterField(key, (models.GeminiConfig,), "26.1.2", None) for key in ("api_provider", "api_type")),
    *(LaterField(key, kinds, "26.1.2", None) for kinds, keys in _SECRETS.items() for key in keys),
)
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
        models.OciGenAiConfig, "provider", "the provider XAI", "26.1.2", lambda model: model.provider == "XAI"
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

_LATER_TYPES: Final[Mapping[str, str]] = {
    "25.4.2": """
        Swarm ManagerWorkers SpecializedAgent AgentSpecializationParameters A2AAgent A2AConnectionConfig
        ParallelFlowNode ParallelMapNode BuiltinTool MCPToolBox MCPToolSpec
        """,
    "26.1.2": """
        LlmConfig CatchExceptionNode GeminiConfig GeminiAIStudioAuthConfig GeminiVertexAIAuthConfig
        OAuthConfig OAuthClientConfig MessageSummarizationTransform ConversationSummarizationTransform
        InMemoryCollectionDatastore OracleDatabaseDatastore PostgresDatabaseDatastore
        TlsOracleDatabaseConnectionConfig MTlsOracleDatabaseConnectionConfig TlsPostgresDatabaseConnectionConfig
        """,
    "26.3.1": "AnthropicLlmConfig DbmsVectorChainLlmConfig",
}
LATER_TYPES: Final = {name: version for version, names in _LATER_TYPES.items() for name in names.split()}
"""The version that adds each component type, by its name. 25.4.1 has the others."""
