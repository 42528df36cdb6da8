"""Tools, and toolboxes, which have the tools of a server. spec: "Tools"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from harness.dialects.agentspec.component import (
    Component,
    ComponentField,
    ComponentOrTextField,
    ComponentWithIO,
    text_properties,
)
from harness.dialects.agentspec.connections import (
    NULL_IS_NONE_GIVEN,
    ClientTransport,
    RetryPolicy,
    check_disjoint,
)
from harness.dialects.agentspec.properties import Property, placeholder_names
from harness.graph.effects import ToolSpec


class Tool(ComponentWithIO, title="a tool"):
    """Base class of tools. spec: "Tools". LLMs call a tool by its name.

    `requires_confirmation`: the user decides whether a call runs.
    """

    requires_confirmation: bool = False


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
    sensitive_headers: Annotated[dict[str, Any], NULL_IS_NONE_GIVEN] = Field(default_factory=dict)
    url_allow_list: list[str] | None = None
    retry_policy: RetryPolicy | None = None

    def allows(self, url: str) -> bool:
        """True if a rendered URL has the scheme and authority, and the beginning of the path, of an allowed one."""
        found = urlsplit(url)
        return self.url_allow_list is None or any(
            (found.scheme, found.netloc.lower()) == (allowed.scheme, allowed.netloc.lower())
            and (found.path or "/").startswith(allowed.path or "/")
            for allowed in map(urlsplit, self.url_allow_list)
        )

    @property
    def all_headers(self) -> dict[str, Any]:
        """The headers with the sensitive ones, which have no placeholders that become inputs."""
        return {**self.headers, **self.sensitive_headers}

    @model_validator(mode="after")
    def _no_header_is_given_twice(self) -> RemoteCall:
        check_disjoint(self.headers, self.sensitive_headers)
        return self

    def inferred_inputs(self) -> Sequence[Property]:
        """Return a string input for each placeholder."""
        where = self.url, self.http_method, self.api_spec_uri
        return text_properties(placeholder_names([*where, self.data, self.query_params, self.headers]))


class BuiltinTool(Tool, title="a BuiltinTool"):
    """A tool that the orchestrator has (25.4.2). A scenario answers for it under `tools`, as for a ServerTool."""

    tool_type: str
    configuration: dict[str, Any] | None = None
    executor_name: str | list[str] | None = None
    tool_version: str | None = None


class RemoteTool(Tool, RemoteCall, title="a RemoteTool"):
    """A tool that runs remotely, "triggered by an RPC or REST call"."""


class MCPTool(Tool, title="an MCPTool"):
    """A tool of an MCP server, with the name that it has there. spec: "MCP Tools"."""

    client_transport: Annotated[ClientTransport, ComponentField(ClientTransport)]
    retry_policy: RetryPolicy | None = None


class MCPToolSpec(ComponentWithIO, title="an MCPToolSpec"):
    """A tool that a toolbox expects of its server (25.4.2)."""

    requires_confirmation: bool = False


class ToolBox(Component, title="a toolbox"):
    """Base class of toolboxes (25.4.2). `requires_confirmation` holds for all their tools."""

    requires_confirmation: bool = False


class MCPToolBox(ToolBox, title="an MCPToolBox"):
    """The tools that an MCP server lists; with a filter, those in it (25.4.2)."""

    client_transport: Annotated[ClientTransport, ComponentField(ClientTransport)]
    retry_policy: RetryPolicy | None = None
    tool_filter: list[Annotated[MCPToolSpec | str, ComponentOrTextField(MCPToolSpec)]] | None = None

    @property
    def filtered(self) -> Mapping[str, MCPToolSpec | None]:
        """The tools in the filter by name, each with what is expected of it."""
        return {
            (item if isinstance(item, str) else item.name): None if isinstance(item, str) else item
            for item in self.tool_filter or ()
        }


class ListedTool(MCPTool, title="a tool of a toolbox"):
    """A tool as the server of a toolbox lists it."""

    spec: ToolSpec

    @classmethod
    def of(cls, box: MCPToolBox, spec: ToolSpec, wanted: MCPToolSpec | None) -> ListedTool:
        """Return a tool of a toolbox. `wanted` is what the filter says of it."""
        description = (wanted.description if wanted else None) or spec.description
        made = cls(
            name=spec.name,
            inputs=None,
            outputs=None,
            spec=ToolSpec(spec.name, description, spec.schema),
            client_transport=box.client_transport,
            retry_policy=box.retry_policy,
            requires_confirmation=box.requires_confirmation or bool(wanted and wanted.requires_confirmation),
        )
        made.declared_outputs = text_properties(["text"])  # the model gets the text blocks of the answer
        return made
