"""Types of the values in a mesh file, and the base class of its sections.

Values are parsed as leniently as in LeafMesh: a number may be written as text. A boolean is not a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from harness.graph.to_json import to_json
from harness.source.models import Mistake, mistaken


def _reject_boolean(kind: Literal["int", "float"]) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, bool):
            raise PydanticCustomError(f"{kind}_type", "a boolean is not a number")
        return value

    return BeforeValidator(check)


Whole = Annotated[int, _reject_boolean("int")]
Number = Annotated[float, _reject_boolean("float"), Field(allow_inf_nan=False)]
Count = Annotated[Whole, Field(ge=0)]
Positive = Annotated[Whole, Field(ge=1)]
Rate = Annotated[Number, Field(ge=0, le=1)]
Seconds = Annotated[Number, Field(gt=0)]
Name = Annotated[str, Field(min_length=1)]
Texts = dict[str, str]
JSON = Annotated[dict[str, Any], AfterValidator(to_json)]
"""A mapping in JSON form: dates are converted to texts."""


class Fallback:
    """Environment variables that replace a missing field; the first that is set counts. spec: "Env Fallback"."""

    def __init__(self, *names: str) -> None:
        self.names = names


class Section(BaseModel, extra="allow"):
    """Base class of the sections of a mesh file. Unknown keys are ignored, with a warning.

    `allows_any_key`: any key is allowed, without a warning.
    `refuses_misspellings`: an unknown key that resembles a known one is an error.
    """

    allows_any_key: ClassVar[bool] = False
    refuses_misspellings: ClassVar[bool] = False


Filled = TypeVar("Filled", bound=Section)


def with_fallbacks(section: Filled, env: Mapping[str, str]) -> Filled:
    """Return the section with fields that are missing or empty filled from their fallback variables."""
    values = {}
    for field in type(section).model_fields:
        value = next((env[name] for name in fallbacks_of(type(section), field) if env.get(name)), None)
        if value and (field not in section.model_fields_set or not getattr(section, field)):
            values[field] = value
    return section.model_copy(update=values)


def fallbacks_of(model: type[Section], field: str) -> list[str]:
    """Return the fallback variables of a field."""
    marks = model.model_fields[field].metadata
    return [name for mark in marks if isinstance(mark, Fallback) for name in mark.names]


_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]+", re.IGNORECASE)


class Redis(Section, title="redis"):
    """spec: "RedisConfig"."""

    host: str = "localhost"
    port: Whole = Field(default=6379, ge=1, le=65535)
    db: Count = 0
    password: str | None = None
    decode_responses: bool = True
    auto_storage: bool = True
    default_ttl: Count = 3600
    session_ttl: Count = 7200
    cluster_mode: bool = False
    cluster_nodes: list[str] = Field(default_factory=list)
    ssl: bool = False
    ssl_cert_reqs: Literal["required", "optional", "none"] = "required"
    ssl_ca_certs: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_check_hostname: bool = True


class Bedrock(Section, title="bedrock"):
    """spec: "BedrockConfig (AWS)". Only clients read AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."""

    region: str = "us-east-1"
    profile: str | None = None
    endpoint_url: str | None = None


class Vertex(Section, title="vertex"):
    """spec: "VertexConfig (Google Cloud)". Only clients read GOOGLE_APPLICATION_CREDENTIALS."""

    project: Name
    location: str = "us-central1"


class Foundry(Section, title="foundry"):
    """spec: "FoundryConfig (Azure)". Only clients read AZURE_FOUNDRY_API_KEY and AZURE_FOUNDRY_TOKEN."""

    endpoint: Name
    api_version: str | None = None


class Local(Section, title="local"):
    """spec: "LocalModelConfig". Clients read LOCAL_MODEL_SERVER_TYPE and LOCAL_MODEL_TIMEOUT."""

    endpoint: Annotated[str, Fallback("LOCAL_MODEL_ENDPOINT")] = "http://localhost:11434/api/generate"
    server_type: Literal["openai", "ollama", "textgen", "huggingface"] | None = None
    timeout: Seconds = 120.0
    headers: Texts = Field(default_factory=dict)


class Providers(Section, title="mesh"):
    """spec: "MeshConfig"."""

    call_timeout: Positive = 30
    bedrock: Bedrock | None = None
    vertex: Vertex | None = None
    foundry: Foundry | None = None
    local: Local | None = None


def _origin(written: str) -> str:
    if not _ORIGIN.fullmatch(written):
        wanted = "an origin, scheme://host or scheme://host:port"
        raise mistaken(Mistake(f"cors_origins: expected {wanted}, found text '{written}'"))
    return written


class API(Section, title="api"):
    """spec: "APIConfig": "Each entry must be a full origin"."""

    cors_origins: list[Annotated[str, AfterValidator(_origin)]] = Field(default_factory=list)


class DataStructure(Section, title="a data structure"):
    """spec: "DataStructure"."""

    type: Literal["object", "string", "number", "boolean", "list"]
    properties: dict[str, Any] | None = None
    required: list[str] = Field(default_factory=list)
    validation_rules: Texts = Field(default_factory=dict)


Framework = Literal["crewai", "langgraph", "autogen", "a2a", "mcp", "zapier", "composio", "n8n", "custom"]
Integration = Literal["zapier", "composio", "n8n", "mcp"]


class Connector(Section, title="a connector_config"):
    """Base class: the fields of every connector. spec: "Common connector_config fields".

    `limit_field` names the field that limits a synchronous exchange; `required` are the fields that must be set, its
    address first.
    """

    limit_field: ClassVar[str] = "timeout"
    required: ClassVar[tuple[str, ...]] = ()

    mode: Literal["sync", "callback"] = "sync"
    callback_timeout: Seconds = 120.0

    @property
    def limit_s(self) -> float:
        """The time limit of a synchronous exchange, in virtual seconds."""
        return float(getattr(self, self.limit_field))


class _Polled(Connector):
    """A system that is asked for its result. Here it answers at once: nothing is polled."""

    poll_interval: Seconds = 2.0
    max_poll_seconds: Seconds = 300.0


class _PolledOverHTTP(_Polled):
    limit_field = "http_timeout"

    http_timeout: Seconds = 30.0


class CrewAI(_PolledOverHTTP, title="a connector_config for crewai"):
    """spec: "crewai"."""

    required = ("endpoint",)

    endpoint: Annotated[str, Fallback("CREWAI_ENDPOINT")] = ""
    api_key: Annotated[str, Fallback("CREWAI_API_KEY")] = ""
    user_api_key: Annotated[str, Fallback("CREWAI_USER_API_KEY")] = ""


class LangGraph(_PolledOverHTTP, title="a connector_config for langgraph"):
    """spec: "langgraph"."""

    required = ("endpoint",)

    endpoint: Annotated[str, Fallback("LANGGRAPH_ENDPOINT", "LANGCHAIN_ENDPOINT")] = ""
    api_key: Annotated[str, Fallback("LANGCHAIN_API_KEY", "LANGGRAPH_API_KEY")] = ""
    graph_id: str = "agent"
    poll_interval: Seconds = 1.0


class AutoGen(_Polled, title="a connector_config for autogen"):
    """spec: "autogen"."""

    required = ("endpoint",)

    endpoint: Annotated[str, Fallback("AUTOGEN_ENDPOINT")] = ""
    api_key: Annotated[str, Fallback("AUTOGEN_API_KEY")] = ""
    workflow_id: str = ""
    timeout: Seconds = 120.0


class A2A(_PolledOverHTTP, title="a connector_config for a2a"):
    """spec: "a2a"."""

    required = ("url",)

    url: Annotated[str, Fallback("A2A_AGENT_URL")] = ""
    auth_token: Annotated[str, Fallback("A2A_AUTH_TOKEN")] = ""
    auth_scheme: str = "Bearer"


class MCP(Connector, title="a connector_config for mcp"):
    """spec: "mcp"."""

    required = ("tool_name",)

    tool_name: str = ""
    transport: Literal["stdio", "http"] = "stdio"
    timeout: Seconds = 60.0
    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: Texts | None = None
    url: str = ""
    auth_token: str = ""


class Zapier(Connector, title="a connector_config for zapier"):
    """spec: "zapier"."""

    connection: str = ""
    action: str = ""
    mcp_key: Annotated[str, Fallback("ZAPIER_MCP_KEY")] = ""
    api_key: Annotated[str, Fallback("ZAPIER_API_KEY")] = ""
    prefer_mcp: bool = True
    instructions: str = ""
    timeout: Seconds = 60.0


class Composio(Connector, title="a connector_config for composio"):
    """spec: "composio"."""

    required = ("action",)

    action: str = ""
    entity_id: Annotated[str, Fallback("COMPOSIO_ENTITY_ID")] = "default"
    api_key: Annotated[str, Fallback("COMPOSIO_API_KEY")] = ""
    timeout: Seconds = 60.0


class N8n(Connector, title="a connector_config for n8n"):
    """spec: "n8n"."""

    required = ("webhook_url",)

    webhook_url: Annotated[str, Fallback("N8N_WEBHOOK_URL")] = ""
    auth_token: Annotated[str, Fallback("N8N_AUTH_TOKEN")] = ""
    timeout: Seconds = 60.0


class Custom(Connector, title="a connector_config for custom"):
    """A connector with undocumented fields. spec: `framework`, `custom`."""

    allows_any_key = True

    timeout: Seconds = 60.0


CONNECTORS: Final[dict[str, type[Connector]]] = {
    "crewai": CrewAI,
    "langgraph": LangGraph,
    "autogen": AutoGen,
    "a2a": A2A,
    "mcp": MCP,
    "zapier": Zapier,
    "composio": Composio,
    "n8n": N8n,
    "custom": Custom,
}
"""The models of `connector_config`, by framework or integration."""


def required_fields(connector: Connector) -> Iterator[tuple[str, ...]]:
    """Yield the fields that a connector needs for sending; one field of each tuple is enough."""
    yield from ((field,) for field in connector.required)
    if isinstance(connector, MCP):
        yield ("command",) if connector.transport == "stdio" else ("url",)
    if isinstance(connector, Zapier):
        yield ("connection", "action")
