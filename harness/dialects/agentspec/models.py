"""The configurations of LLMs. spec: "LLM"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from harness.dialects.agentspec.component import Component, ComponentField, OptionalComponentField
from harness.dialects.agentspec.connections import OciClientConfig, OracleConnection, RetryPolicy
from harness.graph.effects import LLMCall, ToolSpec
from harness.source.models import Mistake, mistaken


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
