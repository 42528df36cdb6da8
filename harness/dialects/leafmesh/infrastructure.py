"""The infrastructure sections of a mesh file: they are validated, and have no effect in a simulated run."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from harness.dialects.leafmesh.fields import Count, Fallback, Name, Positive, Seconds, Section, Texts, Whole
from harness.source.models import Mistake, mistaken

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]+", re.IGNORECASE)


class Redis(Section, title="redis"):
    """spec: "RedisConfig"."""

    host: str = "localhost"
    port: Whole = Field(default=6379, ge=1, le=65535)
    db: Count = 0
    password: str | None = None
    decode_responses: bool = True
    auto_storage: bool = True
    default_ttl: Count = 3600
    session_ttl: Count = 7200
    cluster_mode: bool = False
    cluster_nodes: list[str] = Field(default_factory=list)
    ssl: bool = False
    ssl_cert_reqs: Literal["required", "optional", "none"] = "required"
    ssl_ca_certs: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_check_hostname: bool = True


class Bedrock(Section, title="bedrock"):
    """spec: "BedrockConfig (AWS)". Only clients read AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."""

    region: str = "us-east-1"
    profile: str | None = None
    endpoint_url: str | None = None


class Vertex(Section, title="vertex"):
    """spec: "VertexConfig (Google Cloud)". Only clients read GOOGLE_APPLICATION_CREDENTIALS."""

    project: Name
    location: str = "us-central1"


class Foundry(Section, title="foundry"):
    """spec: "FoundryConfig (Azure)". Only clients read AZURE_FOUNDRY_API_KEY and AZURE_FOUNDRY_TOKEN."""

    endpoint: Name
    api_version: str | None = None


class Local(Section, title="local"):
    """spec: "LocalModelConfig". Clients read LOCAL_MODEL_SERVER_TYPE and LOCAL_MODEL_TIMEOUT."""

    endpoint: Annotated[str, Fallback("LOCAL_MODEL_ENDPOINT")] = "http://localhost:11434/api/generate"
    server_type: Literal["openai", "ollama", "textgen", "huggingface"] | None = None
    timeout: Seconds = 120.0
    headers: Texts = Field(default_factory=dict)


class Providers(Section, title="mesh"):
    """spec: "MeshConfig"."""

    call_timeout: Positive = 30
    bedrock: Bedrock | None = None
    vertex: Vertex | None = None
    foundry: Foundry | None = None
    local: Local | None = None


def _origin(written: str) -> str:
    if not _ORIGIN.fullmatch(written):
        text = (
            f"cors_origins: expected an origin, scheme://host or scheme://host:port, found text '{written}'"
        )
        raise mistaken(Mistake(text))
    return written


class API(Section, title="api"):
    """spec: "APIConfig": "Each entry must be a full origin"."""

    cors_origins: list[Annotated[str, AfterValidator(_origin)]] = Field(default_factory=list)


class DataStructure(Section, title="a data structure"):
    """spec: "DataStructure"."""

    type: Literal["object", "string", "number", "boolean", "list"]
    properties: dict[str, Any] | None = None
    required: list[str] = Field(default_factory=list)
    validation_rules: Texts = Field(default_factory=dict)
