"""How MCP servers are reached. spec: "MCP (Model Context Protocol)"."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.dialects.agentspec.component import Component


class SessionParameters(BaseModel):
    """spec: `session_parameters`. Any name may stand here; times are in seconds."""

    model_config = ConfigDict(extra="allow", strict=True, title="session parameters")

    read_timeout_seconds: float = 60


class ClientTransport(Component):
    """spec: "MCP Client transport". `protocol` is what the harness calls it."""

    model_config = ConfigDict(title="a transport")

    protocol: ClassVar[str] = ""

    session_parameters: SessionParameters = Field(default_factory=SessionParameters)

    @field_validator("session_parameters", mode="before")
    @classmethod
    def _null_is_none_given(cls, given: Any) -> Any:
        return {} if given is None else given


class StdioTransport(ClientTransport):
    """spec: "Stdio Transport"."""

    model_config = ConfigDict(title="a StdioTransport")

    protocol: ClassVar[str] = "stdio"

    command: str
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] | None = None
    cwd: str | None = None


class RemoteTransport(ClientTransport):
    """spec: "Remote MCP transports"."""

    model_config = ConfigDict(title="a remote transport")

    url: str
    headers: dict[str, str] | None = None


class SSETransport(RemoteTransport):
    """spec: "SSE Transport"."""

    model_config = ConfigDict(title="an SSETransport")

    protocol: ClassVar[str] = "sse"


class StreamableHTTPTransport(RemoteTransport):
    """spec: "Streamable HTTP Transport"."""

    model_config = ConfigDict(title="a StreamableHTTPTransport")

    protocol: ClassVar[str] = "streamable_http"


class SSEmTLSTransport(SSETransport):
    """spec: "SSE Transport with mTLS". The files are in PEM format."""

    model_config = ConfigDict(title="an SSEmTLSTransport")

    key_file: str
    cert_file: str
    ca_file: str


class StreamableHTTPmTLSTransport(StreamableHTTPTransport):
    """spec: "Streamable HTTP Transport with mTLS". The files are in PEM format."""

    model_config = ConfigDict(title="a StreamableHTTPmTLSTransport")

    key_file: str
    cert_file: str
    ca_file: str
