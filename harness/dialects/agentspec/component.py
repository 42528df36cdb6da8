"""The base classes of components, and the fields in which components contain each other.

spec: "Base Component", "Input/output schemas". The models in this package are the components of the published
JSON schema: one class per component type, with the names of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, get_args
from urllib.parse import urlsplit

from langchain_core.messages import BaseMessage
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    PrivateAttr,
    field_validator,
    model_validator,
)
from pydantic_core import core_schema

from harness.dialects.agentspec.properties import Property, mistakes, normalize_null_types, placeholder_names
from harness.dialects.agentspec.retry import RetryPolicy
from harness.errors import Span
from harness.graph.effects import LLMCall, ToolSpec
from harness.source.document import Document
from harness.source.models import Mistake, describe, mistaken


class Component(BaseModel, extra="forbid", strict=True, title="a component"):
    """Base class of components. spec: "Base Component". Components compare by identity.

    A component without an `id` has an empty one, to which nothing can refer.
    """

    id: str = ""
    name: str
    description: str | None = None
    metadata: dict[str, Any] | None = None

    _source: Document = PrivateAttr()
    _component_type: str = PrivateAttr("")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def component_type(self) -> str:
        """The name of the component type in configurations."""
        return self._component_type or type(self).__name__

    @cached_property
    def is_complete(self) -> bool:
        """True if every component in it, at any depth, could be read."""
        return all(part is not BROKEN and part.is_complete for part in self.parts())

    def parts(self) -> Iterator[Component]:
        """Yield the components directly in it, in the order of its fields."""
        for name in component_fields(type(self)):
            value = getattr(self, name)
            found = value if isinstance(value, list) else [value]
            yield from (item for item in found if isinstance(item, Component))

    def set_source(self, source: Document, component_type: str) -> None:
        """Set the part of the document that defines it, and the name of its type there."""
        self._source, self._component_type = source, component_type

    def span(self, *path: str | int) -> Span:
        """Return the location of the component, or of a value in it."""
        return self._source.span(path)

    def span_in_text(self, name: str, offset: int, length: int) -> Span:
        """Return the location of a part of a text field; of the whole text if the part cannot be located."""
        if not isinstance(self._source.value[name], str):  # a reference
            return self._source.span((name,))
        return self._source.span_in_text((name,), offset, length)

    def __str__(self) -> str:
        return f"{self.component_type} '{self.name}'"


class _Broken(Component):
    """The placeholder for a component that could not be read. It lets reading continue."""


BROKEN: Final = _Broken(name="broken")


class ComponentField:
    """The annotation of a field that holds a component of this kind, defined in place or by reference.

    Nested components are read before the model is validated.
    """

    def __init__(self, kind: type[Component]) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_plain_validator_function(self._check)

    def _check(self, value: Any) -> Any:
        if isinstance(value, self.kind) or value is BROKEN:
            return value
        found = f"the {value}" if isinstance(value, Component) else describe(value)
        text = f"expected {self.kind.model_config.get('title')}, found {found}"
        raise mistaken(Mistake(text, code="wrong-component"))


class ComponentOrTextField(ComponentField):
    """The annotation of an item that is a component of this kind, or text."""

    def _check(self, value: Any) -> Any:
        return value if isinstance(value, str) else super()._check(value)


@cache
def component_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of the fields of a model that hold components."""
    fields = model.model_fields.items()
    return tuple(name for name, field in fields if _holds_component(field.annotation, field.metadata))


def holds_single_component(model: type[BaseModel], name: str) -> bool:
    """True if a field holds one component, and not a list of them."""
    return any(isinstance(item, ComponentField) for item in model.model_fields[name].metadata)


@cache
def may_hold_text(model: type[BaseModel], name: str) -> bool:
    """True if a field holds a list of components and texts."""
    return _annotated(model.model_fields[name].annotation, (), ComponentOrTextField)


def _holds_component(annotation: Any, metadata: Sequence[Any]) -> bool:
    return _annotated(annotation, metadata, ComponentField)


def _annotated(annotation: Any, metadata: Sequence[Any], kind: type[ComponentField]) -> bool:
    if any(isinstance(item, kind) for item in metadata):
        return True
    return any(_annotated(inner, getattr(inner, "__metadata__", ()), kind) for inner in get_args(annotation))


def inner_first(root: Component) -> list[Component]:
    """Return a component and all components in it, each once, nested ones first."""
    found: dict[Component, None] = {}
    _find(root, found)
    return list(found)


def _find(component: Component, found: dict[Component, None]) -> None:
    if component not in found:
        for part in component.parts():
            _find(part, found)
        found[component] = None


# ------------------------------------------------------------------ inputs and outputs


def _parse_property(written: Any) -> Property:
    value = normalize_null_types(written)
    found = list(mistakes(value))
    if found:
        title = value.get("title") if isinstance(value, dict) else None
        named = f"property '{title}': " if isinstance(title, str) and title else ""
        raise mistaken(*(replace(mistake, message=named + mistake.message) for mistake in found))
    return Property(value)


PropertyField = Annotated[Property, PlainValidator(_parse_property)]


class ComponentWithIO(Component):
    """Base class of components with inputs and outputs. spec: "Input/output schemas".

    The declared ones are as written; None if they are to be inferred.
    """

    declared_inputs: list[PropertyField] | None = Field(None, alias="inputs")
    declared_outputs: list[PropertyField] | None = Field(None, alias="outputs")

    @field_validator("declared_inputs", "declared_outputs")
    @classmethod
    def _titles_are_unique(cls, properties: list[Property] | None) -> list[Property] | None:
        titles: set[str] = set()
        for index, item in enumerate(properties or ()):
            if item.title in titles:
                text = f"a second property called '{item.title}'"
                raise mistaken(Mistake(text, (index,), code="duplicate-property"))
            titles.add(item.title)
        return properties

    @cached_property
    def inputs(self) -> Mapping[str, Property]:
        """The inputs by name: the declared ones, else the inferred ones."""
        return by_title(self.inferred_inputs() if self.declared_inputs is None else self.declared_inputs)

    @cached_property
    def outputs(self) -> Mapping[str, Property]:
        """The outputs by name: the declared ones, else the inferred ones."""
        return by_title(self.inferred_outputs() if self.declared_outputs is None else self.declared_outputs)

    def inferred_inputs(self) -> Sequence[Property]:
        """Return the inputs that the configuration of the component implies."""
        return self.declared_inputs or ()

    def inferred_outputs(self) -> Sequence[Property]:
        """Return the outputs that the configuration of the component implies."""
        return self.declared_outputs or ()


def by_title(properties: Sequence[Property]) -> Mapping[str, Property]:
    """Return properties by name."""
    return {item.title: item for item in properties}


def text_properties(titles: Sequence[str]) -> list[Property]:
    """Return a string property for each name. spec: placeholders are "transformed in inputs of type string"."""
    return [Property({"title": title, "type": "string"}) for title in titles]


def _integral(value: Any) -> Any:
    """Return a whole float as an int. In JSON Schema, 10.0 is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class LlmGenerationConfig(BaseModel, extra="allow", strict=True, title="generation parameters"):
    """Generation parameters. spec: `default_generation_parameters`. Any names are allowed."""

    max_tokens: Annotated[int | None, BeforeValidator(_integral)] = None
    temperature: float | None = None
    top_p: float | None = None


class LlmConfig(Component, title="an LLM configuration"):
    """Base class of LLM configurations. spec: "LLM".

    `provider_name` is the provider in model calls. Null generation parameters are not sent.
    """

    provider_name: ClassVar[str] = ""

    model_id: str
    default_generation_parameters: LlmGenerationConfig | None = None
    retry_policy: RetryPolicy | None = None

    def call(
        self, messages: Sequence[BaseMessage], *, tools: Sequence[ToolSpec] = (), response_format: Any = None
    ) -> LLMCall:
        """Return the effect of one model call."""
        given = self.default_generation_parameters
        return LLMCall(
            name=self.model_id,
            provider=self.provider_name,
            base_url=self.url if isinstance(self, OpenAiCompatibleConfig) else None,
            params=given.model_dump(exclude_none=True) if given else {},
            messages=tuple(messages),
            tools=tuple(tools),
            response_format=response_format,
        )


OpenAiApi = Literal["chat_completions", "responses"]
"""The API of a model (25.4.2). Scenarios answer for both alike."""


class OpenAiCompatibleConfig(LlmConfig, title="an OpenAiCompatibleConfig"):
    """A model behind an OpenAI compatible API. spec: "OpenAI Compatible LLMs"."""

    provider_name: ClassVar[str] = "openai_compatible"

    url: str
    api_type: OpenAiApi = "chat_completions"


class VllmConfig(OpenAiCompatibleConfig, title="a VllmConfig"):
    """A model deployed through vLLM. spec: "vLLM"."""

    provider_name: ClassVar[str] = "vllm"


class OllamaConfig(OpenAiCompatibleConfig, title="an OllamaConfig"):
    """A model deployed through Ollama. spec: "Ollama"."""

    provider_name: ClassVar[str] = "ollama"


class OpenAiConfig(LlmConfig, title="an OpenAiConfig"):
    """A model of OpenAI. spec: "OpenAI"."""

    provider_name: ClassVar[str] = "openai"

    api_type: OpenAiApi = "chat_completions"


# ------------------------------------------------------------------ OCI


class OciClientConfig(Component, title="an OCI client configuration"):
    """Base class of OCI client configurations. spec: "OCI Client Configuration"."""

    service_endpoint: str


class OciClientConfigWithSecurityToken(OciClientConfig, title="an OciClientConfigWithSecurityToken"):
    """Authentication with a security token. spec: "OciClientConfigWithSecurityToken"."""

    auth_profile: str
    auth_file_location: str
    auth_type: Literal["SECURITY_TOKEN"] = "SECURITY_TOKEN"


class OciClientConfigWithApiKey(OciClientConfig, title="an OciClientConfigWithApiKey"):
    """Authentication with an API key. spec: "OciClientConfigWithApiKey"."""

    auth_profile: str
    auth_file_location: str
    auth_type: Literal["API_KEY"] = "API_KEY"


class OciClientConfigWithInstancePrincipal(OciClientConfig, title="an OciClientConfigWithInstancePrincipal"):
    """Authentication as an instance principal. spec: "OciClientConfigWithInstancePrincipal"."""

    auth_type: Literal["INSTANCE_PRINCIPAL"] = "INSTANCE_PRINCIPAL"


class OciClientConfigWithResourcePrincipal(OciClientConfig, title="an OciClientConfigWithResourcePrincipal"):
    """Authentication as a resource principal. spec: "OciClientConfigWithResourcePrincipal"."""

    auth_type: Literal["RESOURCE_PRINCIPAL"] = "RESOURCE_PRINCIPAL"


class OciGenAiConfig(LlmConfig, title="an OciGenAiConfig"):
    """A model of OCI GenAI. spec: "OCI GenAI". Without a `provider`, it depends on the model."""

    provider_name: ClassVar[str] = "oci"

    compartment_id: str
    serving_mode: Literal["ON_DEMAND", "DEDICATED"] = "ON_DEMAND"
    provider: Literal["META", "GROK", "COHERE", "OTHER"] | None = None
    client_config: Annotated[OciClientConfig, ComponentField(OciClientConfig)]
    api_type: Literal["openai_chat_completions", "openai_responses", "oci"] = "oci"
    conversation_store_id: str | None = None


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


_NULL_IS_NONE_GIVEN: Final = BeforeValidator(lambda given: {} if given is None else given)


def _check_disjoint(headers: Mapping[str, Any] | None, sensitive: Mapping[str, Any]) -> None:
    for name in (headers or {}).keys() & sensitive.keys():
        text = f"the header '{name}' is also one of the headers"
        raise mistaken(Mistake(text, ("sensitive_headers", name), code="bad-value"))


class RemoteTransport(ClientTransport, title="a remote transport"):
    """Base class of transports over HTTP. spec: "Remote MCP transports"."""

    url: str
    headers: dict[str, str] | None = None
    sensitive_headers: Annotated[dict[str, str], _NULL_IS_NONE_GIVEN] = Field(default_factory=dict)
    retry_policy: RetryPolicy | None = None

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers with the sensitive ones."""
        return {**(self.headers or {}), **self.sensitive_headers}

    @model_validator(mode="after")
    def _no_header_is_given_twice(self) -> RemoteTransport:
        _check_disjoint(self.headers, self.sensitive_headers)
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
    sensitive_headers: Annotated[dict[str, Any], _NULL_IS_NONE_GIVEN] = Field(default_factory=dict)
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
        _check_disjoint(self.headers, self.sensitive_headers)
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


class AgenticComponent(ComponentWithIO, title="an agent or a flow"):
    """Base class of flows, agents and remote agents. spec: "Agentic Components"."""


class Agent(AgenticComponent, title="an Agent"):
    """An agent. spec: "Agent". It converses with the user until its outputs are known.

    Without a human in the loop, it asks nobody.
    """

    llm_config: Annotated[LlmConfig, ComponentField(LlmConfig)]
    system_prompt: str
    tools: list[Annotated[Tool, ComponentField(Tool)]] = Field(default_factory=list)
    toolboxes: list[Annotated[ToolBox, ComponentField(ToolBox)]] = Field(default_factory=list)
    human_in_the_loop: bool = True

    @property
    def uses_tools(self) -> bool:
        """True if its model may call tools."""
        return bool(self.tools or self.toolboxes)

    def inferred_inputs(self) -> Sequence[Property]:
        """Return a string input for each placeholder of the system prompt."""
        return text_properties(placeholder_names(self.system_prompt))


class AgentSpecializationParameters(ComponentWithIO, title="AgentSpecializationParameters"):
    """The parameters of a SpecializedAgent, which an agent gets in addition (25.4.2)."""

    additional_instructions: str | None = None
    additional_tools: list[Annotated[Tool, ComponentField(Tool)]] | None = None
    human_in_the_loop: bool | None = None

    def inferred_inputs(self) -> Sequence[Property]:
        """Return a string input for each placeholder of the instructions."""
        return text_properties(placeholder_names(self.additional_instructions))


class SpecializedAgent(AgenticComponent, title="a SpecializedAgent"):
    """An agent with more instructions and tools (25.4.2)."""

    agent: Annotated[Agent, ComponentField(Agent)]
    agent_specialization_parameters: Annotated[
        AgentSpecializationParameters, ComponentField(AgentSpecializationParameters)
    ]

    @cached_property
    def merged(self) -> Agent:
        """The agent that runs: its instructions follow the system prompt after an empty line."""
        agent, more = self.agent, self.agent_specialization_parameters
        asks = agent.human_in_the_loop if more.human_in_the_loop is None else more.human_in_the_loop
        fields = {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "inputs": [dict(item.schema) for item in self.inputs.values()],
            "outputs": [dict(item.schema) for item in self.outputs.values()],
            "llm_config": agent.llm_config,
            "system_prompt": "\n\n".join(filter(None, [agent.system_prompt, more.additional_instructions])),
            "tools": [*agent.tools, *(more.additional_tools or ())],
            "toolboxes": agent.toolboxes,
            "human_in_the_loop": asks,
        }
        made = Agent.model_validate(fields)
        made.set_source(self._source, self.component_type)
        return made

    def inferred_inputs(self) -> Sequence[Property]:
        """Return the inputs of both."""
        return list({**self.agent_specialization_parameters.inputs, **self.agent.inputs}.values())

    def inferred_outputs(self) -> Sequence[Property]:
        """Return the outputs of both."""
        return list({**self.agent_specialization_parameters.outputs, **self.agent.outputs}.values())


class RemoteAgent(AgenticComponent, title="a remote agent"):
    """Base class of agents that run elsewhere. spec: "RemoteAgent"."""

    @property
    def retries(self) -> RetryPolicy | None:
        """The retry policy of its calls."""
        return None


class OciAgent(RemoteAgent, title="an OciAgent"):
    """A remote agent in OCI. spec: "OciAgent"."""

    agent_endpoint_id: str
    retry_policy: RetryPolicy | None = None
    client_config: Annotated[OciClientConfig, ComponentField(OciClientConfig)]

    @property
    def retries(self) -> RetryPolicy | None:
        return self.retry_policy


class A2AConnectionConfig(Component, title="an A2AConnectionConfig"):
    """The connection to an A2A server (25.4.2). Times are in seconds."""

    timeout: float = 600.0
    headers: dict[str, str] | None = None
    verify: bool = True
    key_file: str | None = None
    cert_file: str | None = None
    ssl_ca_cert: str | None = None
    retry_policy: RetryPolicy | None = None


class A2ASessionParameters(BaseModel, extra="forbid", strict=True, title="A2A session parameters"):
    """The limits of a session with an A2A agent, which have no effect. Times are in seconds."""

    timeout: float = 60.0
    poll_interval: float = 2.0
    max_retries: int = 5


class A2AAgent(RemoteAgent, title="an A2AAgent"):
    """A remote agent that is reached by the A2A protocol (25.4.2)."""

    agent_url: str
    connection_config: Annotated[A2AConnectionConfig, ComponentField(A2AConnectionConfig)]
    session_parameters: A2ASessionParameters = Field(default_factory=A2ASessionParameters)

    @property
    def retries(self) -> RetryPolicy | None:
        return self.connection_config.retry_policy


class OpenAiAgent(RemoteAgent, title="an OpenAiAgent"):
    """A remote agent at OpenAI (schema: OpenAiAgent)."""

    llm_config: Annotated[OpenAiConfig, ComponentField(OpenAiConfig)]
    remote_agent_id: str | None = None
