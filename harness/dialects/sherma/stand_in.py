"""A stand-in for the package `sherma`, used if that is not installed.

Modules of hooks, tools and agents import from many places of the package: `from sherma.hooks.executor import
BaseHookExecutor`, `from sherma.registry.bundle import RegistryBundle`. The names that hooks and agents need are
implemented here. Every other public name can be imported, subclassed and used in annotations, but raises an error
when called. spec: "Hooks", "Using a declarative agent".
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from contextvars import ContextVar
from enum import Enum, StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from harness.dialects.sherma import document as doc
from harness.dialects.sherma.document import INTERNAL_STATE_KEY
from harness.dialects.sherma.hooks import HOOK_POINTS, BaseHookExecutor, NodeInfo
from harness.dialects.sherma.registries import RegistryBundle
from harness.errors import HarnessError

MODULES: Final[dict[str, str]] = {
    "sherma": """
        DEFAULT_TENANT_ID LLM SCHEMA_INPUT_URI SCHEMA_OUTPUT_URI Agent AgentRegistry BaseHookExecutor
        CelEvaluationError DeclarativeAgent DeclarativeConfig DeclarativeConfigError EntityBase
        EntityNotFoundError EntityType GraphConstructionError HookExecutor HookManager HookType LLMRegistry
        LocalAgent LocalToolDef MCPServerDef Markdown Prompt PromptRegistry Protocol Registry RegistryBundle
        RegistryEntry RegistryError RemoteAgent RemoteEntityError SchemaValidationError ShermaError Skill
        SkillCard SkillExtension SkillFrontMatter SkillRegistry TenantRegistryManager Tool ToolRegistry
        VersionNotFoundError create_agent_input_as_message_part create_agent_output_as_message_part
        create_skill_tools get_agent_input_from_message_part get_agent_output_from_message_part
        load_declarative_config make_schema_data_part schema_to_extension validate_data
    """,
    "sherma.a2a": "ShermaAgentExecutor",
    "sherma.a2a.executor": "ShermaAgentExecutor",
    "sherma.entities": """
        LLM EntityBase LocalToolDef MCPServerDef Prompt Skill SkillCard SkillExtension SkillFrontMatter Tool
    """,
    "sherma.entities.agent": "Agent LocalAgent RemoteAgent",
    "sherma.entities.agent.base": "Agent",
    "sherma.entities.agent.local": "LocalAgent",
    "sherma.entities.agent.remote": "RemoteAgent",
    "sherma.entities.base": "EntityBase DEFAULT_TENANT_ID",
    "sherma.entities.llm": "LLM",
    "sherma.entities.prompt": "Prompt",
    "sherma.entities.skill": "SkillFrontMatter Skill",
    "sherma.entities.skill_card": "MCPServerDef LocalToolDef SkillExtension SkillCard",
    "sherma.entities.tool": "Tool",
    "sherma.exceptions": """
        ShermaError EntityNotFoundError VersionNotFoundError RegistryError SchemaValidationError
        RemoteEntityError DeclarativeConfigError CelEvaluationError GraphConstructionError
    """,
    "sherma.hooks": """
        AfterAgentCallContext AfterGraphInvokeContext AfterInterruptContext AfterLLMCallContext
        AfterSkillLoadContext AfterToolCallContext BaseHookExecutor BeforeAgentCallContext
        BeforeInterruptContext BeforeLLMCallContext BeforeSkillLoadContext BeforeToolCallContext
        ChatModelCreateContext GraphInvokeContext HookExecutor HookFastAPIApplication HookManager
        HookStarletteApplication HookType MCPHookExecutor MCPHookServer MCPHookTransport NodeEnterContext
        NodeExecuteContext NodeExitContext OnErrorContext OnNodeErrorContext RemoteHookExecutor
    """,
    "sherma.hooks.apps": "HookFastAPIApplication HookStarletteApplication",
    "sherma.hooks.apps.fastapi_app": "HookFastAPIApplication",
    "sherma.hooks.apps.jsonrpc_handler": "run_executor_hook dispatch_jsonrpc HOOK_METHODS",
    "sherma.hooks.apps.starlette_app": "HookStarletteApplication",
    "sherma.hooks.executor": "HookExecutor BaseHookExecutor",
    "sherma.hooks.manager": "HookManager",
    "sherma.hooks.mcp_executor": "MCPHookTransport MCPHookExecutor HOOK_TOOL_PREFIX",
    "sherma.hooks.mcp_server": "MCPHookServer HOOK_TOOL_PREFIX",
    "sherma.hooks.remote": "RemoteHookExecutor",
    "sherma.hooks.serialization": "serialize_context build_context_from_params deserialize_into_context",
    "sherma.hooks.types": """
        HookType BeforeLLMCallContext AfterLLMCallContext BeforeToolCallContext AfterToolCallContext
        BeforeAgentCallContext AfterAgentCallContext BeforeSkillLoadContext AfterSkillLoadContext
        BeforeSkillUnloadContext AfterSkillUnloadContext NodeEnterContext NodeExitContext
        BeforeInterruptContext AfterInterruptContext ChatModelCreateContext GraphInvokeContext
        AfterGraphInvokeContext NodeExecuteContext OnNodeErrorContext OnErrorContext
    """,
    "sherma.http": "McpHttpClientFactory get_http_client mcp_http_client_factory HttpClientFactory",
    "sherma.langgraph": """
        DeclarativeAgent DeclarativeConfig create_skill_tools from_langgraph_tool load_declarative_config
        to_langgraph_tool
    """,
    "sherma.langgraph.agent": "combine_ai_messages LangGraphAgent",
    "sherma.langgraph.declarative": """
        DeclarativeAgent DeclarativeConfig inject_tool_nodes load_declarative_config
    """,
    "sherma.langgraph.declarative.agent": "DeclarativeAgent",
    "sherma.langgraph.declarative.cel_engine": "CelEngine",
    "sherma.langgraph.declarative.cel_functions": """
        cel_json cel_json_valid cel_split cel_trim cel_lower_ascii cel_upper_ascii cel_replace cel_index_of
        cel_join cel_substring cel_last cel_template CUSTOM_FUNCTIONS
    """,
    "sherma.langgraph.declarative.edges": "build_conditional_router",
    "sherma.langgraph.declarative.loader": """
        LazyChatModel load_declarative_config import_tool create_chat_model populate_registries
        validate_config populate_hooks
    """,
    "sherma.langgraph.declarative.nodes": """
        NodeContext build_call_llm_node build_tool_node build_call_agent_node build_data_transform_node
        build_set_state_node build_interrupt_node build_load_skills_node build_custom_node
        resolve_tools_for_node_async INTERNAL_STATE_KEY
    """,
    "sherma.langgraph.declarative.schema": """
        RegistryRef StateFieldDef StateDef ResponseFormatDef PromptMessageDef CallLLMArgs ToolNodeArgs
        CallAgentArgs DataTransformArgs SetStateArgs InterruptArgs LoadSkillsArgs CustomArgs RetryPolicy
        OnErrorDef NodeDef BranchDef EdgeDef GraphDef LangGraphConfigDef AgentDef LLMDef ToolDef PromptDef
        SkillDef MCPHookDef HookDef SubAgentDef CheckpointerDef MCPServerDef DeclarativeConfig
    """,
    "sherma.langgraph.declarative.transform": "inject_tool_nodes inject_fallback_edges HAS_ERROR_FALLBACK",
    "sherma.langgraph.skill_tools": "load_and_register_skill create_skill_tools",
    "sherma.langgraph.tools": "from_langgraph_tool to_langgraph_tool agent_to_langgraph_tool",
    "sherma.langgraph.tracing": "get_langfuse_config",
    "sherma.logging": "get_logger",
    "sherma.messages": "a2a_to_langgraph langgraph_to_a2a",
    "sherma.messages.a2a": "make_text_part make_file_part make_data_part make_schema_data_part make_message",
    "sherma.messages.converter": "a2a_to_langgraph langgraph_to_a2a",
    "sherma.messages.langgraph": "make_human_message make_ai_message",
    "sherma.registry": """
        AgentRegistry LLMRegistry PromptRegistry Registry RegistryBundle RegistryEntry SkillRegistry
        TenantRegistryManager ToolRegistry
    """,
    "sherma.registry.agent": "AgentRegistry",
    "sherma.registry.base": "RegistryEntry Registry",
    "sherma.registry.bundle": "RegistryBundle",
    "sherma.registry.llm": "LLMRegistry",
    "sherma.registry.prompt": "PromptRegistry",
    "sherma.registry.skill": "SkillRegistry",
    "sherma.registry.skill_card": "SkillCardRegistry",
    "sherma.registry.tenant": "TenantRegistryManager",
    "sherma.registry.tool": "ToolRegistry",
    "sherma.schema": """
        schema_to_extension make_schema_data_part validate_data validate_json_schema_data
        validate_against_schema get_agent_input_from_message_part get_agent_output_from_message_part
        create_agent_input_as_message_part create_agent_output_as_message_part SCHEMA_INPUT_URI
        SCHEMA_OUTPUT_URI
    """,
    "sherma.skills": "",
    "sherma.skills.local_tools": "load_local_tools_from_skill",
    "sherma.skills.mcp": "load_mcp_tools_from_skill",
    "sherma.skills.resolver": "SkillResolver",
    "sherma.types": "Protocol EntityType Markdown",
    "sherma.version": "parse_version matches_specifier find_latest find_best_match WILDCARD",
}
"""The names of each module; parent modules come first."""


class NotInStandIn(HarnessError):
    """A part of sherma's runtime was used that the stand-in does not implement."""

    code = "not-in-stand-in"


class _Module(ModuleType):
    """A module of the stand-in. Its members are created on first access."""

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("__all__", ()):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        found = _implementation(self.__name__, name)
        member = _placeholder(self.__name__, name) if found is None else found
        setattr(self, name, member)
        return member


def offer_stand_in() -> None:
    """Make the public modules of sherma importable, unless sherma is installed."""
    if "sherma" in sys.modules or importlib.util.find_spec("sherma") is not None:
        return
    for name, members in MODULES.items():
        module = _Module(name, __doc__)
        module.__path__ = []
        module.__all__ = members.split()  # type: ignore[attr-defined]
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def _placeholder(module: str, name: str) -> type:
    """Return a class that stands for a class or function of sherma that is not implemented."""

    def refuse(_class: type, *_given: Any, **_named: Any) -> NoReturn:
        raise NotInStandIn(
            f"{module}.{name} is a part of sherma that does not run here; it does where sherma is installed"
        )

    def of(itself: type, _item: object) -> type:
        return itself

    return type(name, (), {"__new__": refuse, "__module__": module, "__class_getitem__": of})


def _implementation(module: str, name: str) -> Any:
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
