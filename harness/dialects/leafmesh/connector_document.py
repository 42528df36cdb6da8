"""The fields of `connector_config` per framework, in the order of the field reference. Times are in seconds.

spec: "connector_config fields per framework".
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from harness.dialects.leafmesh.fields import Fallback, Seconds, Section, Texts

Framework = Literal["crewai", "langgraph", "autogen", "a2a", "mcp", "zapier", "composio", "n8n", "custom"]
Integration = Literal["zapier", "composio", "n8n", "mcp"]


class Connector(Section, title="a connector_config"):
    """Base class: the fields of every connector. spec: "Common connector_config fields".

    `limit_field` names the field that limits a synchronous exchange; `required` are the fields that must be set.
    """

    limit_field: ClassVar[str] = "timeout"
    required: ClassVar[tuple[str, ...]] = ()

    mode: Literal["sync", "callback"] = "sync"
    callback_timeout: Seconds = 120.0

    @property
    def limit_s(self) -> float:
        """The time limit of a synchronous exchange, in virtual seconds."""
        return float(getattr(self, self.limit_field))


class CrewAI(Connector, title="a connector_config for crewai"):
    """spec: "crewai"."""

    limit_field = "http_timeout"
    required = ("endpoint",)

    endpoint: Annotated[str, Fallback("CREWAI_ENDPOINT")] = ""
    api_key: Annotated[str, Fallback("CREWAI_API_KEY")] = ""
    user_api_key: Annotated[str, Fallback("CREWAI_USER_API_KEY")] = ""
    poll_interval: Seconds = 2.0
    max_poll_seconds: Seconds = 300.0
    http_timeout: Seconds = 30.0


class LangGraph(Connector, title="a connector_config for langgraph"):
    """spec: "langgraph"."""

    limit_field = "http_timeout"
    required = ("endpoint",)

    endpoint: Annotated[str, Fallback("LANGGRAPH_ENDPOINT", "LANGCHAIN_ENDPOINT")] = ""
    api_key: Annotated[str, Fallback("LANGCHAIN_API_KEY", "LANGGRAPH_API_KEY")] = ""
    graph_id: str = "agent"
    poll_interval: Seconds = 1.0
    max_poll_seconds: Seconds = 300.0
    http_timeout: Seconds = 30.0


class AutoGen(Connector, title="a connector_config for autogen"):
    """spec: "autogen"."""

    required = ("endpoint",)

    endpoint: Annotated[str, Fallback("AUTOGEN_ENDPOINT")] = ""
    api_key: Annotated[str, Fallback("AUTOGEN_API_KEY")] = ""
    workflow_id: str = ""
    timeout: Seconds = 120.0
    poll_interval: Seconds = 2.0
    max_poll_seconds: Seconds = 300.0


class A2A(Connector, title="a connector_config for a2a"):
    """spec: "a2a"."""

    limit_field = "http_timeout"
    required = ("url",)

    url: Annotated[str, Fallback("A2A_AGENT_URL")] = ""
    auth_token: Annotated[str, Fallback("A2A_AUTH_TOKEN")] = ""
    auth_scheme: str = "Bearer"
    poll_interval: Seconds = 2.0
    max_poll_seconds: Seconds = 300.0
    http_timeout: Seconds = 30.0


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
