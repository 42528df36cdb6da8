"""Calls of the models that configurations name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from harness.dialects.agentspec.llm_configs import LlmConfig
from harness.graph.effects import LLMCall, ToolSpec


def llm_call(
    config: LlmConfig,
    messages: Sequence[BaseMessage],
    *,
    tools: Sequence[ToolSpec] = (),
    response_format: Any = None,
) -> LLMCall:
    """One turn of a model, with the generation parameters of its configuration."""
    return LLMCall(
        name=config.model_id,
        provider=config.provider_name,
        base_url=config.base_url,
        params=config.parameters,
        messages=tuple(messages),
        tools=tuple(tools),
        response_format=response_format,
    )
