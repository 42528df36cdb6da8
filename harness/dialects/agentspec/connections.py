"""Connections of components to what is elsewhere: LLMs, OCI, databases, MCP servers; with headers and retry policies.

No database is accessed, and no credential is used. Delays between attempts are those without jitter, so that runs
repeat exactly. spec: "LLM", "OCI Client Configuration", "MCP Client transport".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from harness.dialects.agentspec.component import Component, ComponentField, OptionalComponentField
from harness.dialects.kit.attempts import with_retries, with_timeout
from harness.engine.context import NodeContext
from harness.graph.effects import Effect, HTTPReply, LLMCall, ToolSpec
from harness.source.models import Mistake, mistaken

# ------------------------------------------------------------------ retry policies


_THROTTLED: Final[dict[str, list[str]]] = {"409": [], "429": []}
_NEVER: Final = (400, 401, 403, 422, 501)
_STATUS: Final = {"rate_limit": 429, "timeout": 408, "connection": 503, "server_error": 500}
"""The HTTP status that an error of this kind stands for. The others are not worth another attempt."""


class RetryPolicy(BaseModel, extra="forbid", strict=True, title="a retry policy"):
    """A retry policy. Times are in seconds; `max_attempts` does not count the first attempt.

    `recoverable_statuses` are the HTTP statuses that are retried, each with the texts of which the response must have
    one; an empty list is any text.
    """

    max_attempts: Annotated[int, Field(ge=0)] = 2
    request_timeout: Annotated[float, Field(gt=0)] | None = None
    initial_retry_delay: Annotated[float, Field(ge=0)] = 1.0
    max_retry_delay: Annotated[float, Field(ge=0)] = 8.0
    backoff_factor: Annotated[float, Field(gt=0)] = 2.0
    jitter: Literal["equal", "full", "full_and_equal_for_throttle", "decorrelated"] | None = (
        "full_and_equal_for_throttle"
    )
    service_error_retry_on_any_5xx: bool = True
    recoverable_statuses: dict[str, list[str]] = Field(default_factory=_THROTTLED.copy)

    @model_validator(mode="after")
    def _delays_are_ordered(self) -> RetryPolicy:
        if self.max_retry_delay < self.initial_retry_delay:
            text = "max_retry_delay is less than initial_retry_delay"
            raise mistaken(Mistake(text, code="bad-value"))
        return self

    def delay_s(self, failures: int) -> float:
        """Return the delay in seconds after a number of failures, from 1."""
        try:
            return min(self.initial_retry_delay * self.backoff_factor ** (failures - 1), self.max_retry_delay)
        except OverflowError:
            return self.max_retry_delay

    def recovers(self, status: int, text: str) -> bool:
        """True if a response of this status may be followed by another attempt."""
        if status in _NEVER:
            return False
        wanted = self.recoverable_statuses.get(str(status))
        if wanted is not None:
            return not wanted or any(part.lower() in text.lower() for part in wanted)
        return self.service_error_retry_on_any_5xx and 500 <= status < 600


class _Refused(Exception):
    """A response with a status that may be followed by another attempt."""

    def __init__(self, reply: HTTPReply) -> None:
        super().__init__(f"the response has the status {reply.status}")
        self.reply = reply


async def perform_with_retries(effect: Effect, policy: RetryPolicy | None, ctx: NodeContext) -> Any:
    """Perform an effect as its retry policy says, and return the last answer.

    Raises:
        Exception: the error of the last attempt.
    """
    if policy is None:
        return await ctx.perform(effect)

    async def attempt() -> Any:
        reply = await with_timeout(lambda: ctx.perform(effect), ctx, policy.request_timeout, effect.name)
        if isinstance(reply, HTTPReply) and policy.recovers(reply.status, reply.text):
            raise _Refused(reply)
        return reply

    def is_recoverable(error: Exception) -> bool:
        if isinstance(error, _Refused | TimeoutError | ConnectionError):
            return True
        status = _STATUS.get(getattr(error, "kind", ""))
        return status is not None and policy.recovers(status, str(error))

    try:
        return await with_retries(
            attempt, ctx, attempts=policy.max_attempts + 1, delay_s=policy.delay_s, only=is_recoverable
        )
    except _Refused as refused:
        return refused.reply


# ------------------------------------------------------------------ headers


NULL_IS_NONE_GIVEN: Final = BeforeValidator(lambda given: {} if given is None else given)


def check_disjoint(headers: Mapping[str, Any] | None, sensitive: Mapping[str, Any]) -> None:
    """Raise an error for a sensitive header that is also one of the headers."""
    for name in (headers or {}).keys() & sensitive.keys():
        text = f"the header '{name}' is also one of the headers"
        raise mistaken(Mistake(text, ("sensitive_headers", name), code="bad-value"))


# ------------------------------------------------------------------ databases


class OracleConnection(Component, title="a connection to an Oracle database"):
    """Base class of connections to Oracle databases."""


class TlsOracleDatabaseConnectionConfig(OracleConnection, title="a TlsOracleDatabaseConnectionConfig"):
    """A connection with TLS."""

    config_dir: str | None = None
    protocol: Literal["tcp", "tcps"] = "tcps"


class MTlsOracleDatabaseConnectionConfig(
    TlsOracleDatabaseConnectionConfig, title="an MTlsOracleDatabaseConnectionConfig"
):
    """A connection with mutual TLS."""


class PostgresConnection(Component, title="a connection to a Postgres database"):
    """Base class of connections to Postgres databases."""


class TlsPostgresDatabaseConnectionConfig(PostgresConnection, title="a TlsPostgresDatabaseConnectionConfig"):
    """A connection with TLS."""

    url: str
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = "require"
    sslcert: str | None = None
    sslrootcert: str | None = None
    sslcrl: str | None = None


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


# ------------------------------------------------------------------ authentication of transports


class OAuthEndpoints(BaseModel, extra="forbid", strict=True, title="endpoints"):
    """The endpoints of an authorization server."""

    authorization_endpoint: str
    token_endpoint: str
    refresh_endpoint: str | None = None
    revocation_endpoint: str | None = None
    userinfo_endpoint: str | None = None


class PKCEPolicy(BaseModel, extra="forbid", strict=True, title="a PKCE policy"):
    """The exchange of codes."""

    required: bool = True
    method: Literal["plain", "S256"] = "S256"


class OAuthClientConfig(Component, title="an OAuthClientConfig"):
    """The identity of a client."""

    type: Literal["pre_registered", "client_id_metadata_document", "dynamic_registration"]
    token_endpoint_auth_method: str | None = None
    registration_endpoint: str | None = None


class AuthConfig(Component, title="an authentication"):
    """Base class of authentications."""


class OAuthConfig(AuthConfig, title="an OAuthConfig"):
    """Authentication by OAuth."""

    issuer: str | None = None
    endpoints: OAuthEndpoints | None = None
    client: Annotated[OAuthClientConfig, ComponentField(OAuthClientConfig)]
    redirect_uri: str
    scopes: str | list[str] | None = None
    scope_policy: Literal["use_challenge_or_supported", "fixed"] | None = None
    pkce: PKCEPolicy | None = None
    resource: str | None = None


# ------------------------------------------------------------------ transports of MCP servers


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


# ------------------------------------------------------------------ LLMs


def _integral(value: Any) -> Any:
    """Return a whole float as an int. In JSON Schema, 10.0 is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class LlmGenerationConfig(BaseModel, extra="allow", strict=True, title="generation parameters"):
    """Generation parameters. spec: `default_generation_parameters`. Any names are allowed."""

    max_tokens: Annotated[int | None, BeforeValidator(_integral)] = None
    temperature: float | None = None
    top_p: float | None = None


class Model(Component, title="an LLM configuration"):
    """Base class of LLM configurations. spec: "LLM".

    `provider_name` is that of the component type. Null generation parameters are not sent.
    """

    provider_name: ClassVar[str] = ""

    model_id: str
    default_generation_parameters: LlmGenerationConfig | None = None
    retry_policy: RetryPolicy | None = None

    @property
    def called_provider(self) -> str:
        """The provider in model calls."""
        return self.provider_name

    @property
    def called_url(self) -> str | None:
        """The URL in model calls; None for that of the provider."""
        return None

    def call(
        self, messages: Sequence[BaseMessage], *, tools: Sequence[ToolSpec] = (), response_format: Any = None
    ) -> LLMCall:
        """Return the effect of one model call."""
        given = self.default_generation_parameters
        return LLMCall(
            name=self.model_id,
            provider=self.called_provider,
            base_url=self.called_url,
            params=given.model_dump(exclude_none=True) if given else {},
            messages=tuple(messages),
            tools=tuple(tools),
            response_format=response_format,
        )


OpenAiApi = Literal["chat_completions", "responses"]
"""The API of a model (25.4.2). Scenarios answer for both alike."""


class OpenAiCompatibleConfig(Model, title="an OpenAiCompatibleConfig"):
    """A model behind an OpenAI compatible API. spec: "OpenAI Compatible LLMs"."""

    provider_name: ClassVar[str] = "openai_compatible"

    url: str
    api_type: OpenAiApi = "chat_completions"

    @property
    def called_url(self) -> str | None:
        return self.url


class VllmConfig(OpenAiCompatibleConfig, title="a VllmConfig"):
    """A model deployed through vLLM. spec: "vLLM"."""

    provider_name: ClassVar[str] = "vllm"


class OllamaConfig(OpenAiCompatibleConfig, title="an OllamaConfig"):
    """A model deployed through Ollama. spec: "Ollama"."""

    provider_name: ClassVar[str] = "ollama"


class OpenAiConfig(Model, title="an OpenAiConfig"):
    """A model of OpenAI. spec: "OpenAI"."""

    provider_name: ClassVar[str] = "openai"

    api_type: OpenAiApi = "chat_completions"


class LlmConfig(Model, title="an LlmConfig"):
    """A model of any provider (26.1.2)."""

    provider: str | None = None
    api_provider: str | None = None
    api_type: str | None = None
    url: str | None = None

    @property
    def called_provider(self) -> str:
        return self.provider or self.api_provider or ""

    @property
    def called_url(self) -> str | None:
        return self.url


class GeminiAuthConfig(Component, title="a Gemini authentication"):
    """Base class of authentications of Gemini (26.1.2)."""


class GeminiAIStudioAuthConfig(GeminiAuthConfig, title="a GeminiAIStudioAuthConfig"):
    """Authentication with an API key of Google AI Studio (26.1.2)."""


class GeminiVertexAIAuthConfig(GeminiAuthConfig, title="a GeminiVertexAIAuthConfig"):
    """Authentication in a project of Google Cloud (26.1.2)."""

    project_id: str | None = None
    location: str = "global"


class GeminiConfig(Model, title="a GeminiConfig"):
    """A Gemini model of Google (26.1.2)."""

    provider_name: ClassVar[str] = "google"

    auth: Annotated[GeminiAuthConfig, ComponentField(GeminiAuthConfig)]


class DbmsVectorChainLlmConfig(LlmConfig, title="a DbmsVectorChainLlmConfig"):
    """A model that an Oracle database calls (26.3.1)."""

    provider: str = Field(min_length=1)
    url: str = Field(min_length=1)
    host: Literal["local"] | None = None
    credential_name: str | None = Field(None, min_length=1)
    transfer_timeout: int | None = Field(None, ge=0)
    connection_config: Annotated[OracleConnection | None, OptionalComponentField(OracleConnection)] = None

    @model_validator(mode="after")
    def _has_either_host_or_credential(self) -> DbmsVectorChainLlmConfig:
        if (self.host is None) == (self.credential_name is None):
            raise mistaken(Mistake("either host or credential_name is needed", code="bad-value"))
        return self


class OciGenAiConfig(Model, title="an OciGenAiConfig"):
    """A model of OCI GenAI. spec: "OCI GenAI". Without a `provider`, it depends on the model."""

    provider_name: ClassVar[str] = "oci"

    compartment_id: str
    serving_mode: Literal["ON_DEMAND", "DEDICATED"] = "ON_DEMAND"
    provider: Literal["META", "GROK", "XAI", "COHERE", "OTHER"] | None = None
    client_config: Annotated[OciClientConfig, ComponentField(OciClientConfig)]
    api_type: Literal["openai_chat_completions", "openai_responses", "oci"] = "oci"
    conversation_store_id: str | None = None
