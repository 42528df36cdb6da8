"""A model's turn as LangChain's clients take it: messages, tools, structured answers and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import BaseMessage, SystemMessage

from harness.graph.effects import LLMCall, ToolSpec
from harness.graph.messages import message_text
from harness.world.providers.access import Address

# What LangChain translates, by model and by API; all other parameters go into the body as they are.
_FIELDS: Final = {
    "openai": frozenset(
        {"temperature", "top_p", "stop", "max_tokens", "reasoning", "reasoning_effort", "verbosity"}
    ),
    "anthropic": frozenset(
        {"temperature", "top_p", "top_k", "stop", "stop_sequences", "max_tokens", "thinking"}
        | {"output_config", "reasoning_effort"}
    ),
}
# Servers that imitate OpenAI's may not know the name that LangChain gives `max_tokens`.
_COMPATIBLE_FIELDS: Final = _FIELDS["openai"] - {"max_tokens"}

# What parameters say about the connection and not to the model: the call has it, or the client is told.
_CONNECTION: Final = frozenset({"base_url", "api_base", "api_key"})
_CLIENT: Final = {
    "timeout": "timeout",
    "request_timeout": "timeout",
    "max_retries": "max_retries",
    "num_retries": "max_retries",
}
_REQUEST: Final = frozenset({"extra_headers", "extra_query"})


@dataclass(frozen=True)
class Turn:
    """What is asked, and how.

    fields   of the chat model
    options  of the provider's client
    request  of this one request
    """

    messages: list[BaseMessage]
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    response_format: Mapping[str, Any] | None = None


def turn(call: LLMCall, address: Address) -> Turn:
    """The call, for the protocol of the address."""
    params = {name: value for name, value in call.params.items() if name not in _CONNECTION}
    stream = bool(params.pop("stream", False))
    written = params.pop("response_format", None)
    names = _COMPATIBLE_FIELDS if address.compatible else _FIELDS[address.protocol]
    fields = {name: params.pop(name) for name in names & params.keys()}
    options = {option: params.pop(name) for name, option in _CLIENT.items() if name in params}
    request = {name: params.pop(name) for name in _REQUEST & params.keys()}
    body = {**params.pop("extra_body", {}), **params}
    if body:
        request["extra_body"] = body
    anthropic = address.protocol == "anthropic"
    if call.tools:
        request["tools"] = [(_anthropic_tool if anthropic else _openai_tool)(tool) for tool in call.tools]
    if isinstance(fields.get("stop"), str):
        fields["stop"] = [fields["stop"]]
    return Turn(
        system_first(call.messages) if anthropic else list(call.messages),
        fields,
        options,
        request,
        stream,
        _response_format(call.response_format or written, anthropic),
    )


def _openai_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def _anthropic_tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}


def _response_format(given: Mapping[str, Any] | None, anthropic: bool) -> Mapping[str, Any] | None:
    """As OpenAI writes it. Where there is only a schema with its name, that is the JSON Schema of the answer.

    Anthropic has no JSON mode without a schema: there the prompt alone asks for JSON.
    """
    if not given:
        return None
    if "type" not in given:
        return {"type": "json_schema", "json_schema": {key: value for key, value in given.items() if value}}
    return None if anthropic and given["type"] != "json_schema" else given


def system_first(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages with one system message at most, at the front, as Anthropic wants them; none that is empty."""
    system = [message for message in messages if isinstance(message, SystemMessage)]
    if not system or (len(system) == 1 and messages[0] is system[0] and message_text(system[0])):
        return list(messages)
    text = "\n\n".join(filter(None, map(message_text, system)))
    rest = [message for message in messages if not isinstance(message, SystemMessage)]
    return [SystemMessage(content=text), *rest] if text else rest
