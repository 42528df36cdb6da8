"""Models: who provides one, and the call of one turn. spec: "LLM Providers", "Model List"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage

from harness.dialects.leafmesh.document import LLMAgent, Mesh
from harness.dialects.leafmesh.infrastructure import Providers
from harness.graph.effects import LLMCall, ToolSpec

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
    """The provider of a model, and its name there.

    A name of no known prefix is "any model ID" of the provider that the section `mesh` configures, else a local one.
    """
    hosted, slash, name = model.partition("/")
    if slash and hosted in _HOSTED:
        return hosted, name
    found = next((provider for prefix, provider in _PREFIXES.items() if model.startswith(prefix)), None)
    configured = (host for host in ("local", *_HOSTED) if getattr(providers, host, None) is not None)
    return found or next(configured, "local"), model


def model_call(
    agent: LLMAgent, mesh: Mesh, messages: Sequence[BaseMessage], tools: Sequence[ToolSpec]
) -> LLMCall:
    """The effect of one turn of an agent's model."""
    params: dict[str, Any] = {"temperature": agent.temperature}
    if agent.max_completion_tokens is not None:
        params["max_completion_tokens"] = agent.max_completion_tokens
    else:
        params["max_tokens"] = agent.max_tokens
    if tools and agent.tool_choice != "auto":
        params["tool_choice"] = agent.tool_choice
    return turn(
        agent.model, mesh, messages, params=params, tools=tools, response_format=agent.response_format
    )


def turn(
    model: str,
    mesh: Mesh,
    messages: Sequence[BaseMessage],
    *,
    params: dict[str, Any] | None = None,
    tools: Sequence[ToolSpec] = (),
    response_format: Any = None,
) -> LLMCall:
    """The effect of one turn of a model."""
    provider, name = provider_of(model, mesh.mesh)
    local = mesh.mesh.local if provider == "local" else None
    return LLMCall(
        name=name,
        provider=provider,
        base_url=local.endpoint if local else None,
        params=params or {},
        messages=tuple(messages),
        tools=tuple(tools),
        response_format=response_format,
    )
