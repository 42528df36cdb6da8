"""Tools, which agents and flows call. spec: "Tools"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from harness.dialects.agentspec import placeholders
from harness.dialects.agentspec.component import ComponentField, ComponentWithIO, text_properties
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.transports import ClientTransport


class Tool(ComponentWithIO, title="a tool"):
    """spec: "Tools". Models call it by its name."""


class ServerTool(Tool, title="a ServerTool"):
    """A tool that runs beside the agent: a scenario answers for it under `tools`."""


class ClientTool(Tool, title="a ClientTool"):
    """A tool that the client runs, who "must execute the tool and provide the results back"."""


class RemoteCall(ComponentWithIO):
    """spec: "Remote Tools", and the ApiNode with the same parameters. All of them may have placeholders.

    25.4.2 lets `data` be a list, or a text that is sent as it is.
    """

    url: str
    http_method: str
    api_spec_uri: str | None = None
    data: dict[str, Any] | list[Any] | str = Field(default_factory=dict)
    query_params: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, Any] = Field(default_factory=dict)

    def inferred_inputs(self) -> Sequence[Property]:
        """One input for each placeholder."""
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
    """A tool that runs elsewhere, "triggered by an RPC or REST call"."""


class MCPTool(Tool, title="an MCPTool"):
    """spec: "MCP Tools". Its name is the server's name for it."""

    client_transport: Annotated[ClientTransport, ComponentField(ClientTransport)]
