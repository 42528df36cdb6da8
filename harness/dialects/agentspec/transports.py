"""The transports by which MCP servers are reached. spec: "MCP Client transport"."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, model_validator

from harness.dialects.agentspec.auth import AuthConfig
from harness.dialects.agentspec.component import Component, OptionalComponentField
from harness.dialects.agentspec.headers import NULL_IS_NONE_GIVEN, check_disjoint
from harness.dialects.agentspec.retry import RetryPolicy


class SessionParameters(BaseModel, extra="allow", strict=True, title="session parameters"):
    """Parameters of an MCP session. spec: `session_parameters`. Any names are allowed; times are in seconds."""

    read_timeout_seconds: float = 60


class ClientTransport(Component, title="a transport"):
    """Base class of transports. spec: "MCP Client transport". `protocol` is the name of the transport in effects."""

    protocol: ClassVar[str] = ""

    session_parameters: Annotated[SessionParameters, NULL_IS_NONE_GIVEN] = Field(
        default_factory=SessionParameters
    )


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
    sensitive_headers: Annotated[dict[str, str], NULL_IS_NONE_GIVEN] = Field(default_factory=dict)
    retry_policy: RetryPolicy | None = None
    auth: Annotated[AuthConfig | None, OptionalComponentField(AuthConfig)] = None

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers with the sensitive ones."""
        return {**(self.headers or {}), **self.sensitive_headers}

    @model_validator(mode="after")
    def _no_header_is_given_twice(self) -> RemoteTransport:
        check_disjoint(self.headers, self.sensitive_headers)
        return self


class SSETransport(RemoteTransport, title="an SSETransport"):
    """A server reached by HTTP with server-sent events. spec: "SSE Transport"."""

    protocol: ClassVar[str] = "sse"


class StreamableHTTPTransport(RemoteTransport, title="a StreamableHTTPTransport"):
    """A server reached by streamable HTTP. spec: "Streamable HTTP Transport"."""

    protocol: ClassVar[str] = "streamable_http"


class MutualTLSTransport(RemoteTransport):
    """Base class of transports with mutual TLS, with files in PEM format. spec: "… with mTLS"."""

    key_file: str
    cert_file: str
    ca_file: str


class SSEmTLSTransport(SSETransport, MutualTLSTransport, title="an SSEmTLSTransport"):
    """An SSE transport with mutual TLS. spec: "SSE Transport with mTLS"."""


class StreamableHTTPmTLSTransport(
    StreamableHTTPTransport, MutualTLSTransport, title="a StreamableHTTPmTLSTransport"
):
    """A streamable HTTP transport with mutual TLS. spec: "Streamable HTTP Transport with mTLS"."""
