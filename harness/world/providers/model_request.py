"""Converts a model call to a request for LangChain's clients: messages, tools, response format and parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import BaseMessage, SystemMessage

from harness.graph.effects import LLMCall, ToolSpec
from harness.graph.messages import message_text
from harness.world.providers.access import Address

# Parameters that LangChain translates, by model and API; all others are sent in the body unchanged.
_FIELDS: Final = {
    "openai": frozenset(
        {"temperature", "top_p", "stop", "max_tokens", "reasoning", "reasoning_effort", "verbosity"}
    ),
    "anthropic": frozenset(
        {"temperature", "top_p", "top_k", "stop", "stop_sequences", "max_tokens", "thinking"}
        | {"output_config", "reasoning_effort"}
    ),
}
# OpenAI-compatible servers may not know LangChain's name for `max_tokens`, except those for which the runtimes of
# Agent Spec use it.
_OLD_NAMES: Final = _FIELDS["openai"] - {"max_tokens"}
_KNOW_NEW_NAMES: Final = frozenset({"openai_compatible", "vllm"})

# OpenAI's models that only know the new name of `max_tokens`.
_REASONING: Final = re.compile(r"(o\d|gpt-5)")

# Parameters of the connection, not of the model: they are in the call, or passed to the client.
_CONNECTION: Final = frozenset(
    {"base_url", "api_base", "openai_api_base", "anthropic_api_url"}
    | {"api_key", "openai_api_key", "anthropic_api_key"}
)
_CLIENT: Final = {
    "timeout": "timeout",
    "request_timeout": "timeout",
    "max_retries": "max_retries",
    "num_retries": "max_retries",
}
_REQUEST: Final = frozenset({"extra_headers", "extra_query"})

# LangChain's names for parameters, which hooks may use.
_SYNONYMS: Final = {
    "default_headers": "extra_headers",
    "default_query": "extra_query",
    "streaming": "stream",
    "stop_sequences": "stop",
}


@dataclass(frozen=True)
class ModelRequest:
    """The messages of a request, with the parameters by the object that gets them.

    fields   parameters of the chat model
    options  parameters of the provider's client
    request  parameters of this request
    """

    messages: list[BaseMessage]
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    response_format: Mapping[str, Any] | None = None


def model_request(call: LLMCall, address: Address) -> ModelRequest:
    """Convert a call for the protocol of the address."""
    anthropic = address.protocol == "anthropic"
    params = _parameters(call)
    stream = bool(params.pop("stream", False))
    written = params.pop("response_format", None)
    if anthropic and "user" in params:
        params.setdefault("metadata", {"user_id": params.pop("user")})
    names = _translated_names(call, address)
    fields = {name: params.pop(name) for name in names & params.keys()}
    if call.as_written and not anthropic:
        fields["stream_usage"] = False
    options = {"timeout": address.timeout_s} if address.timeout_s else {}
    options |= {option: params.pop(name) for name, option in _CLIENT.items() if name in params}
    request = {name: params.pop(name) for name in _REQUEST & params.keys()}
    body = {**params.pop("extra_body", {}), **params}
    if body:
        request["extra_body"] = body
    if call.tools:
        request["tools"] = [(_anthropic_tool if anthropic else _openai_tool)(tool) for tool in call.tools]
    if isinstance(fields.get("stop"), str):
        fields["stop"] = [fields["stop"]]
    return ModelRequest(
        system_first(call.messages) if anthropic else list(call.messages),
        fields,
        options,
        request,
        stream,
        _response_format(call.response_format or written, anthropic),
    )


def _parameters(call: LLMCall) -> dict[str, Any]:
    """Return the parameters of a call, synonyms replaced, without those of the connection."""
    more = call.params.get("model_kwargs")
    params = {**call.params, **(more if isinstance(more, Mapping) else {})}
    for name in {"model_kwargs", *_CONNECTION} & params.keys():
        del params[name]
    for name in _SYNONYMS.keys() & params.keys():
        params.setdefault(_SYNONYMS[name], params.pop(name))
    return params


def _translated_names(call: LLMCall, address: Address) -> frozenset[str]:
    """Return the names of the parameters that LangChain translates."""
    if call.as_written and address.protocol == "openai":
        return frozenset({"max_tokens"} if _REASONING.match(address.model) else ())
    if address.compatible and address.provider not in _KNOW_NEW_NAMES:
        return _OLD_NAMES
    return _FIELDS[address.protocol]


def _openai_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def _anthropic_tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}


def _response_format(given: Mapping[str, Any] | None, anthropic: bool) -> Mapping[str, Any] | None:
    """Return a response format in OpenAI's form. One without `type` is a named JSON Schema of the answer.

    Anthropic has no JSON mode without a schema: there only the prompt asks for JSON.
    """
    if not given:
        return None
    if "type" not in given:
        return {"type": "json_schema", "json_schema": dict(given)}
    return None if anthropic and given["type"] != "json_schema" else given


def system_first(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Merge the system messages into one at the front, as Anthropic requires; an empty one is left out."""
    system = [message for message in messages if isinstance(message, SystemMessage)]
    if not system or (len(system) == 1 and messages[0] is system[0] and message_text(system[0])):
        return list(messages)
    text = "\n\n".join(filter(None, map(message_text, system)))
    rest = [message for message in messages if not isinstance(message, SystemMessage)]
    return [SystemMessage(content=text), *rest] if text else rest
