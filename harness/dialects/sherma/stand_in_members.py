"""The implemented names of the `sherma` stand-in: hooks, agents, errors, the models of a manifest."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Final

from harness.dialects.sherma import document as doc
from harness.dialects.sherma.document import INTERNAL_STATE_KEY
from harness.dialects.sherma.hooks import HOOK_POINTS, BaseHookExecutor, NodeInfo
from harness.dialects.sherma.registries import RegistryBundle


def implementation(module: str, name: str) -> Any:
    """Return a member of a sherma module; None if it is not implemented."""
    if module == "sherma.langgraph.declarative.schema":
        model = getattr(doc, _RENAMED.get(name) or name.removesuffix("Def").removesuffix("Args"), None)
        return model if isinstance(model, type) else _MEMBERS.get(name)
    return _MEMBERS.get(name)


# ------------------------------------------------------------------ agents. spec: "Using a declarative agent"


class DeclarativeConfig:
    """A manifest that is read before its agent is created."""

    def __init__(self, *, yaml_path: Any = None, yaml_content: str | None = None) -> None:
        self.yaml_path = yaml_path
        self.yaml_content = Path(yaml_path).read_text(encoding="utf-8") if yaml_path else yaml_content


class DeclarativeAgent:
    """An agent defined by its manifest. Other settings of sherma's constructor are ignored."""

    def __init__(
        self,
        *,
        id: str,
        version: str = "*",
        yaml_path: Any = None,
        yaml_content: str | None = None,
        config: DeclarativeConfig | None = None,
        base_path: Any = None,
        hooks: Any = (),
        **_ignored: Any,
    ) -> None:
        self.id, self.version, self.base_path, self.hooks = id, version, base_path, list(hooks)
        self.yaml_path = yaml_path
        self.yaml_content = config.yaml_content if config is not None else yaml_content


# ------------------------------------------------------------------ errors


class ShermaError(Exception):
    """Base class of sherma's errors."""


class EntityNotFoundError(ShermaError):
    """A registry has no entity with this id."""

    def __init__(self, entity_id: str, version: str = "*") -> None:
        self.entity_id, self.version = entity_id, version
        super().__init__(f"Entity '{entity_id}' version '{version}' not found")


class VersionNotFoundError(ShermaError):
    """A registry does not have this version."""

    def __init__(self, entity_id: str, version: str) -> None:
        self.entity_id, self.version = entity_id, version
        super().__init__(f"Version '{version}' not found for entity '{entity_id}'")


class RemoteEntityError(ShermaError):
    """A remote entity cannot be fetched."""

    def __init__(self, entity_id: str, url: str, reason: str = "") -> None:
        self.entity_id, self.url = entity_id, url
        text = f"Failed to fetch remote entity '{entity_id}' from '{url}'"
        super().__init__(f"{text}: {reason}" if reason else text)


_PLAIN_ERRORS: Final = (
    *("RegistryError", "SchemaValidationError", "DeclarativeConfigError"),
    *("CelEvaluationError", "GraphConstructionError"),
)


# ------------------------------------------------------------------ small things

_http_client: ContextVar[Any] = ContextVar("sherma_http_client", default=None)


async def get_http_client(client: Any = None) -> Any:
    """Return an HTTP client: the given one, one made by the given factory, the last one, or a new one."""
    import httpx

    if client is not None:
        _http_client.set(client if isinstance(client, httpx.AsyncClient) else client())
    elif _http_client.get() is None:
        _http_client.set(httpx.AsyncClient())
    return _http_client.get()


class Protocol(StrEnum):
    """The protocols of tools and agents."""

    A2A = "a2a"
    MCP = "mcp"
    CUSTOM = "custom"


class EntityType(StrEnum):
    """The entity types of registries."""

    PROMPT = "prompt"
    LLM = "llm"
    TOOL = "tool"
    SKILL = "skill"
    AGENT = "agent"


_RENAMED: Final = {"RegistryRef": "Ref", "PromptMessageDef": "PromptItem", "RetryPolicy": "Retry"}
"""The models of a manifest, the types of `node_def` and `config` in hooks, whose names differ from sherma's.

Sherma's other names end in `Def` or `Args`.
"""

_DEFINED: Final[tuple[Any, ...]] = (
    *(*HOOK_POINTS.values(), BaseHookExecutor, RegistryBundle, DeclarativeAgent, DeclarativeConfig),
    *(ShermaError, EntityNotFoundError, VersionNotFoundError, RemoteEntityError),
    *(get_http_client, Protocol, EntityType),
)
_MEMBERS: Final[dict[str, Any]] = {
    **{each.__name__: each for each in _DEFINED},
    "HookExecutor": BaseHookExecutor,
    "HookType": Enum("HookType", {point.upper(): point for point in HOOK_POINTS}),
    "NodeContext": NodeInfo,
    "load_declarative_config": DeclarativeConfig,
    **{name: type(name, (ShermaError,), {"__module__": "sherma.exceptions"}) for name in _PLAIN_ERRORS},
    "get_logger": logging.getLogger,
    "Markdown": str,
    "DEFAULT_TENANT_ID": "default",
    "SCHEMA_INPUT_URI": "urn:sherma:schema:input",
    "SCHEMA_OUTPUT_URI": "urn:sherma:schema:output",
    "INTERNAL_STATE_KEY": INTERNAL_STATE_KEY,
    "HOOK_TOOL_PREFIX": "hooks.",
    "WILDCARD": "*",
}
