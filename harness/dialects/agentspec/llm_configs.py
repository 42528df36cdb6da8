"""Models and how to reach them. spec: "LLM"."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from harness.dialects.agentspec.component import A, Component


class LlmGenerationConfig(BaseModel):
    """spec: `default_generation_parameters`. Any name may stand here."""

    model_config = ConfigDict(extra="allow", strict=True, title="generation parameters")

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None


class LlmConfig(Component):
    """spec: "LLM". `provider_name` is what calls of the model say; null parameters are no parameters."""

    model_config = ConfigDict(title="an LLM configuration")

    provider_name: ClassVar[str] = ""

    model_id: str
    default_generation_parameters: LlmGenerationConfig | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The generation parameters that are set."""
        given = self.default_generation_parameters
        return given.model_dump(exclude_none=True) if given else {}

    @property
    def base_url(self) -> str | None:
        """Where the model is, as written; None where its provider is."""
        return None


class OpenAiCompatibleConfig(LlmConfig):
    """spec: "OpenAI Compatible LLMs"."""

    model_config = ConfigDict(title="an OpenAiCompatibleConfig")

    provider_name: ClassVar[str] = "openai_compatible"

    url: str

    @property
    def base_url(self) -> str:
        return self.url


class VllmConfig(OpenAiCompatibleConfig):
    """spec: "vLLM"."""

    model_config = ConfigDict(title="a VllmConfig")

    provider_name: ClassVar[str] = "vllm"


class OllamaConfig(OpenAiCompatibleConfig):
    """spec: "Ollama"."""

    model_config = ConfigDict(title="an OllamaConfig")

    provider_name: ClassVar[str] = "ollama"


class OpenAiConfig(LlmConfig):
    """spec: "OpenAI"."""

    model_config = ConfigDict(title="an OpenAiConfig")

    provider_name: ClassVar[str] = "openai"


# ------------------------------------------------------------------ OCI


class OciClientConfig(Component):
    """spec: "OCI Client Configuration"."""

    model_config = ConfigDict(title="an OCI client configuration")

    service_endpoint: str


class OciClientConfigWithSecurityToken(OciClientConfig):
    """spec: "OciClientConfigWithSecurityToken"."""

    model_config = ConfigDict(title="an OciClientConfigWithSecurityToken")

    auth_profile: str
    auth_file_location: str
    auth_type: Literal["SECURITY_TOKEN"] = "SECURITY_TOKEN"


class OciClientConfigWithApiKey(OciClientConfig):
    """spec: "OciClientConfigWithApiKey"."""

    model_config = ConfigDict(title="an OciClientConfigWithApiKey")

    auth_profile: str
    auth_file_location: str
    auth_type: Literal["API_KEY"] = "API_KEY"


class OciClientConfigWithInstancePrincipal(OciClientConfig):
    """spec: "OciClientConfigWithInstancePrincipal"."""

    model_config = ConfigDict(title="an OciClientConfigWithInstancePrincipal")

    auth_type: Literal["INSTANCE_PRINCIPAL"] = "INSTANCE_PRINCIPAL"


class OciClientConfigWithResourcePrincipal(OciClientConfig):
    """spec: "OciClientConfigWithResourcePrincipal"."""

    model_config = ConfigDict(title="an OciClientConfigWithResourcePrincipal")

    auth_type: Literal["RESOURCE_PRINCIPAL"] = "RESOURCE_PRINCIPAL"


class OciGenAiConfig(LlmConfig):
    """spec: "OCI GenAI". Without `provider`, it follows from the model."""

    model_config = ConfigDict(title="an OciGenAiConfig")

    provider_name: ClassVar[str] = "oci"

    compartment_id: str
    serving_mode: Literal["ON_DEMAND", "DEDICATED"] = "ON_DEMAND"
    provider: Literal["META", "GROK", "COHERE", "OTHER"] | None = None
    client_config: Annotated[OciClientConfig, A(OciClientConfig)]
