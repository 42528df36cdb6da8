"""The models of MCP transports. spec: "MCP (Model Context Protocol)"."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, Field, field_validator

from harness.dialects.agentspec.component import Component


class SessionParameters(BaseModel, extra="allow", strict=True, title="session parameters"):
    """Parameters of an MCP session. spec: `session_parameters`. Any names are allowed; times are in seconds."""

    read_timeout_seconds: float = 60


class ClientTransport(Component, title="a transport"):
    """Base class of transports. spec: "MCP Client transport". `protocol` is the name of the transport in effects."""

    protocol: ClassVar[str] = ""

    session_parameters: SessionParameters = Field(default_factory=SessionParameters)

    @field_validator("session_parameters", mode="before")
    @classmethod
    def _null_is_none_given(cls, given: Any) -> Any:
        return {} if given is None else given


class StdioTransport(ClientTransport, title="a StdioTransport"):
    """A server run as a child process. spec: "Stdio Transport"."""

    protocol: ClassVar[str] = "stdio"

    command: str
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] | None = None
    cwd: str | None = None


class RemoteTransport(ClientTransport, title="a remote transport"):
    """Base class of transports over HTTP. spec: "Remote MCP transports"."""

    url: str
    headers: dict[str, str] | None = None


class SSETransport(RemoteTransport, title="an SSETransport"):
    """A server reached by HTTP with server-sent events. spec: "SSE Transport"."""

    protocol: ClassVar[str] = "sse"


class StreamableHTTPTransport(RemoteTransport, title="a StreamableHTTPTransport"):
    """A server reached by streamable HTTP. spec: "Streamable HTTP Transport"."""

    protocol: ClassVar[str] = "streamable_http"


class SSEmTLSTransport(SSETransport, title="an SSEmTLSTransport"):
    """An SSE transport with mutual TLS. spec: "SSE Transport with mTLS". The files are in PEM format."""

    key_file: str
    cert_file: str
    ca_file: str


class StreamableHTTPmTLSTransport(StreamableHTTPTransport, title="a StreamableHTTPmTLSTransport"):
    """A streamable HTTP transport with mutual TLS, with files in PEM format.

    spec: "Streamable HTTP Transport with mTLS".
    """

    key_file: str
    cert_file: str
    ca_file: str
