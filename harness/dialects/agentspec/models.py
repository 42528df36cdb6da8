"""The configurations of LLMs. spec: "LLM"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, BeforeValidator

from harness.dialects.agentspec.component import Component, ComponentField
from harness.dialects.agentspec.oci import OciClientConfig
from harness.dialects.agentspec.retry import RetryPolicy
from harness.graph.effects import LLMCall, ToolSpec


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


class OciGenAiConfig(LlmConfig, title="an OciGenAiConfig"):
    """A model of OCI GenAI. spec: "OCI GenAI". Without a `provider`, it depends on the model."""

    provider_name: ClassVar[str] = "oci"

    compartment_id: str
    serving_mode: Literal["ON_DEMAND", "DEDICATED"] = "ON_DEMAND"
    provider: Literal["META", "GROK", "COHERE", "OTHER"] | None = None
    client_config: Annotated[OciClientConfig, ComponentField(OciClientConfig)]
    api_type: Literal["openai_chat_completions", "openai_responses", "oci"] = "oci"
    conversation_store_id: str | None = None
