"""The models of tools. spec: "Tools"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from harness.dialects.agentspec import placeholders
from harness.dialects.agentspec.component import ComponentField, ComponentWithIO, text_properties
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.transports import ClientTransport


class Tool(ComponentWithIO, title="a tool"):
    """Base class of tools. spec: "Tools". LLMs call a tool by its name."""


class ServerTool(Tool, title="a ServerTool"):
    """A tool that runs in the environment of the agent. A scenario answers for it under `tools`."""


class ClientTool(Tool, title="a ClientTool"):
    """A tool that the client runs. spec: it "must execute the tool and provide the results back"."""


class RemoteCall(ComponentWithIO):
    """Base class of RemoteTool and ApiNode, with the parameters of an HTTP request. spec: "Remote Tools".

    All parameters may have placeholders. In 25.4.2, `data` may also be a list, or a text that is sent as it is.
    """

    url: str
    http_method: str
    api_spec_uri: str | None = None
    data: dict[str, Any] | list[Any] | str = Field(default_factory=dict)
    query_params: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, Any] = Field(default_factory=dict)

    def inferred_inputs(self) -> Sequence[Property]:
        """Return a string input for each placeholder."""
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
    """A tool that runs remotely, "triggered by an RPC or REST call"."""


class MCPTool(Tool, title="an MCPTool"):
    """A tool of an MCP server, with the name that it has there. spec: "MCP Tools"."""

    client_transport: Annotated[ClientTransport, ComponentField(ClientTransport)]
