"""How MCP servers are reached. spec: "MCP (Model Context Protocol)"."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, Field, field_validator

from harness.dialects.agentspec.component import Component


class SessionParameters(BaseModel, extra="allow", strict=True, title="session parameters"):
    """spec: `session_parameters`. Any names are allowed; times are in seconds."""

    read_timeout_seconds: float = 60


class ClientTransport(Component, title="a transport"):
    """spec: "MCP Client transport". `protocol` is its name in effects."""

    protocol: ClassVar[str] = ""

    session_parameters: SessionParameters = Field(default_factory=SessionParameters)

    @field_validator("session_parameters", mode="before")
    @classmethod
    def _null_is_none_given(cls, given: Any) -> Any:
        return {} if given is None else given


class StdioTransport(ClientTransport, title="a StdioTransport"):
    """spec: "Stdio Transport"."""

    protocol: ClassVar[str] = "stdio"

    command: str
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] | None = None
    cwd: str | None = None


class RemoteTransport(ClientTransport, title="a remote transport"):
    """spec: "Remote MCP transports"."""

    url: str
    headers: dict[str, str] | None = None


class SSETransport(RemoteTransport, title="an SSETransport"):
    """spec: "SSE Transport"."""

    protocol: ClassVar[str] = "sse"


class StreamableHTTPTransport(RemoteTransport, title="a StreamableHTTPTransport"):
    """spec: "Streamable HTTP Transport"."""

    protocol: ClassVar[str] = "streamable_http"


class SSEmTLSTransport(SSETransport, title="an SSEmTLSTransport"):
    """spec: "SSE Transport with mTLS". The files are in PEM format."""

    key_file: str
    cert_file: str
    ca_file: str


class StreamableHTTPmTLSTransport(StreamableHTTPTransport, title="a StreamableHTTPmTLSTransport"):
    """spec: "Streamable HTTP Transport with mTLS". The files are in PEM format."""

    key_file: str
    cert_file: str
    ca_file: str
