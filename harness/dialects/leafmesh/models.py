"""The provider of a model, and the effects of its calls. spec: "LLM Providers", "Model List"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage

from harness.dialects.leafmesh.document import LLMAgent, Mesh
from harness.dialects.leafmesh.infrastructure import Local, Providers
from harness.graph.effects import LLMCall, ModelServer, ToolSpec

_PREFIXES: Final = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4-": "openai",
    "claude-": "anthropic",
    "gemini-": "google",
    "deepseek-": "deepseek",
}
_HOSTED: Final = ("bedrock", "vertex", "foundry")


def provider_of(model: str, providers: Providers | None = None) -> tuple[str, str]:
    """Return the provider of a model, and the model's name there.

    A name without a known prefix belongs to the provider that the section `mesh` configures, else to a local
    one.
    """
    hosted, slash, name = model.partition("/")
    if slash and hosted in _HOSTED:
        return hosted, name
    found = next((provider for prefix, provider in _PREFIXES.items() if model.startswith(prefix)), None)
    configured = (host for host in ("local", *_HOSTED) if getattr(providers, host, None) is not None)
    return found or next(configured, "local"), model


def agent_llm_call(
    agent: LLMAgent, mesh: Mesh, messages: Sequence[BaseMessage], tools: Sequence[ToolSpec]
) -> LLMCall:
    """Return the effect of one model call of an agent."""
    params: dict[str, Any] = {"temperature": agent.temperature}
    if agent.max_completion_tokens is not None:
        params["max_completion_tokens"] = agent.max_completion_tokens
    else:
        params["max_tokens"] = agent.max_tokens
    if tools and agent.tool_choice != "auto":
        params["tool_choice"] = agent.tool_choice
    return llm_call(
        agent.model, mesh, messages, params=params, tools=tools, response_format=agent.response_format
    )


def llm_call(
    model: str,
    mesh: Mesh,
    messages: Sequence[BaseMessage],
    *,
    params: dict[str, Any] | None = None,
    tools: Sequence[ToolSpec] = (),
    response_format: Any = None,
) -> LLMCall:
    """Return the effect of one model call."""
    provider, name = provider_of(model, mesh.mesh)
    return LLMCall(
        name=name,
        provider=provider,
        server=_local_server(mesh.mesh.local) if provider == "local" else None,
        params=params or {},
        messages=tuple(messages),
        tools=tuple(tools),
        response_format=response_format,
    )


def _local_server(local: Local | None) -> ModelServer:
    """Return the server of local models. What is not written comes from variables, the address also has a default."""
    if local is None:
        return ModelServer()
    written = {name: getattr(local, name) for name in local.model_fields_set}
    return ModelServer(
        url=written.get("endpoint"),
        kind=written.get("server_type"),
        headers=local.headers,
        timeout_s=written.get("timeout"),
        default_url=Local.model_fields["endpoint"].default,
    )
