"""The effect of a model call: settings of the manifest, changed by `on_chat_model_create` hooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage

from harness.dialects.sherma.agent import AgentSession
from harness.dialects.sherma.document import LLM
from harness.graph.effects import LLMCall, ToolSpec

_BASE_URLS: Final = ("base_url", "openai_api_base", "anthropic_api_url")
_API_KEYS: Final = ("api_key", "openai_api_key", "anthropic_api_key")


def model_call(
    session: AgentSession,
    llm: LLM,
    messages: Sequence[BaseMessage],
    tools: Sequence[ToolSpec],
    response_format: Any = None,
) -> LLMCall:
    """Return the effect of calling a declared model in a run."""
    model, params = session.invocation.get("models", {}).get(llm.id, (llm.model_name, {}))
    return LLMCall(
        name=model,
        provider=llm.provider,
        base_url=_setting(params, _BASE_URLS),
        api_key=_setting(params, _API_KEYS),
        params={name: value for name, value in params.items() if name not in _API_KEYS},
        messages=tuple(messages),
        tools=tuple(tools),
        response_format=response_format,
    )


def _setting(params: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Return the first of these settings that a hook gave to a model. Keys may be pydantic secrets."""
    value = next((params[name] for name in names if params.get(name)), None)
    return str(value.get_secret_value() if hasattr(value, "get_secret_value") else value) if value else None
