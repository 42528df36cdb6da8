"""Procedures an agent or a flow may call. spec: "Tools"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from harness.dialects.agentspec import placeholders
from harness.dialects.agentspec.component import A, ComponentWithIO, text_properties
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.transports import ClientTransport


class Tool(ComponentWithIO, title="a tool"):
    """spec: "Tools". Models know it by its name."""


class ServerTool(Tool, title="a ServerTool"):
    """Runs where the agent runs: a scenario's `tools` say how."""


class ClientTool(Tool, title="a ClientTool"):
    """Is run by the client, who "must execute the tool and provide the results back"."""


class RemoteCall(ComponentWithIO):
    """spec: "Remote Tools", and the ApiNode with the same parameters. Placeholders may stand in all of them."""

    url: str
    http_method: str
    api_spec_uri: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)
    query_params: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, Any] = Field(default_factory=dict)

    def inferred_inputs(self) -> Sequence[Property]:
        """One for each placeholder."""
        templates = [
            self.url,
            self.http_method,
            self.api_spec_uri,
            self.data,
            self.query_params,
            self.headers,
        ]
        return text_properties(placeholders.names(templates))


class RemoteTool(Tool, RemoteCall, title="a RemoteTool"):
    """Runs elsewhere, "triggered by an RPC or REST call"."""


class MCPTool(Tool, title="an MCPTool"):
    """spec: "MCP Tools". The server knows it by its name."""

    client_transport: Annotated[ClientTransport, A(ClientTransport)]
