"""Effects as spans: names, kinds and attributes of the GenAI or HTTP semantic conventions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness.graph.effects import EFFECTS, Effect
from harness.graph.narration import role_of
from harness.report.encoding import encode
from harness.units import is_number

_FINISH: Final = {"tool_calls": "tool_call"}


def input_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert the messages sent to a model."""
    return [{"role": role_of(each), "parts": [*_parts(each)]} for each in messages]


def output_message(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert the reply of a model."""
    parts = [*_texts(reply.get("text")), *_tool_calls(reply)]
    return [{"role": "assistant", "parts": parts, "finish_reason": finish_reason(reply)}]


def plain_message(role: str, value: Any) -> list[dict[str, Any]]:
    """Convert a value that is no message: the input or output of a run."""
    part = {"type": "text", "content": value if isinstance(value, str) else encode(value)}
    message: dict[str, Any] = {"role": role, "parts": [part]}
    return [message | ({"finish_reason": "stop"} if role == "assistant" else {})]


def finish_reason(reply: Mapping[str, Any]) -> str:
    """Return the reason why a model stopped: the reported one, or one derived from the reply."""
    said = str(reply.get("finish_reason") or ("tool_calls" if reply.get("tool_calls") else "stop"))
    return _FINISH.get(said, said)


def _parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if message.get("type") == "tool":
        part = {"type": "tool_call_response", "id": message.get("tool_call_id")}
        yield part | {"response": message.get("content")}
        return
    yield from _texts(message.get("content"))
    yield from _tool_calls(message)


def _texts(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the parts of message content: a text, or a list of texts and blocks."""
    for block in content if isinstance(content, list) else [content]:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str) and text:
            yield {"type": "text", "content": text}
        elif isinstance(block, dict) and text is None:
            yield {"type": str(block.get("type", "data")), "content": block}


def _tool_calls(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for call in message.get("tool_calls") or ():
        yield {
            "type": "tool_call",
            "id": call.get("id"),
            "name": call.get("name"),
            "arguments": call.get("args"),
        }


Event = Mapping[str, Any]
Attributes = dict[str, Any]

_PARAMS: Final = (
    "temperature", "max_tokens", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty",
)  # fmt: skip
"""Parameters of a model call that have an attribute of the same name, `gen_ai.request.<name>`."""
_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gen_ai",
    "google_genai": "gcp.gen_ai",
    "google_vertexai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "vertexai": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""Provider names in manifests that differ from those of the conventions."""


class SpanDescription(NamedTuple):
    """The name and attributes of an effect's span. `is_remote` is True for a call to another process."""

    name: str
    attributes: Attributes
    is_remote: bool = False


def describe(call: Event, answer: Event | None, *, content: bool) -> SpanDescription:
    """Return the span of an effect. Without `content` it has no prompts, replies, arguments and results."""
    kind, name = call["kind"], call["name"]
    operation, name_attribute, is_remote = EFFECTS.get(kind, Effect).span
    attributes: Attributes = {"harness.effect.kind": kind, "harness.node": call["node"]}
    if operation:
        attributes |= {"gen_ai.operation.name": operation, name_attribute: name}
    attributes |= _DETAILS[kind](call, answer, content) if kind in _DETAILS else {}
    if content and kind not in ("llm", "tool", "mcp"):
        attributes["harness.effect.args"] = encode(call["request"].get("args", {}))
        if answer is not None and answer["ok"]:
            attributes["harness.effect.result"] = encode(answer.get("value"))
    title = attributes.get("http.request.method") or f"{operation or kind} {name}"
    return SpanDescription(title, attributes, is_remote)


def provider_name(provider: str) -> str:
    """Return the name of a provider in the conventions."""
    return _PROVIDERS.get(provider, provider)


def _chat(call: Event, answer: Event | None, content: bool) -> Attributes:
    request = call["request"]
    params = request.get("params") or {}
    attributes: Attributes = {}
    if request.get("provider"):
        attributes["gen_ai.provider.name"] = provider_name(request["provider"])
    attributes |= {f"gen_ai.request.{name}": params[name] for name in _PARAMS if is_number(params.get(name))}
    if stop := params.get("stop"):
        attributes["gen_ai.request.stop_sequences"] = [stop] if isinstance(stop, str) else [*map(str, stop)]
    if request.get("response_format") is not None:
        attributes["gen_ai.output.type"] = "json"
    if content:
        attributes["gen_ai.input.messages"] = encode(input_messages(request.get("messages") or ()))
    if answer is not None and answer["ok"]:
        reply, usage = answer["value"], answer.get("usage") or {}
        attributes["gen_ai.response.finish_reasons"] = [finish_reason(reply)]
        for key in ("input_tokens", "output_tokens"):
            if is_number(usage.get(key)):
                attributes[f"gen_ai.usage.{key}"] = int(usage[key])
        if content:
            attributes["gen_ai.output.messages"] = encode(output_message(reply))
    return attributes


def _tool(call: Event, answer: Event | None, content: bool) -> Attributes:
    attributes: Attributes = {"gen_ai.tool.type": "extension" if call["kind"] == "mcp" else "function"}
    if call["kind"] == "mcp":
        server = call["request"].get("server", "")
        attributes |= {"mcp.method.name": "tools/call", "harness.mcp.server": server}
    if content:
        attributes["gen_ai.tool.call.arguments"] = encode(call["request"].get("args", {}))
        if answer is not None and answer["ok"]:
            attributes["gen_ai.tool.call.result"] = encode(answer.get("value"))
    return attributes


def _retrieval(call: Event, _answer: Event | None, content: bool) -> Attributes:
    query = call["request"].get("args", {}).get("query")
    return {"gen_ai.retrieval.query.text": query} if content and isinstance(query, str) else {}


def _http(call: Event, answer: Event | None, _content: bool) -> Attributes:
    method = str(call["request"].get("args", {}).get("method", "GET"))
    attributes: Attributes = {"http.request.method": method, "url.full": call["name"]}
    value = (answer or {}).get("value")
    if isinstance(value, dict) and isinstance(value.get("status"), int):
        attributes["http.response.status_code"] = value["status"]
    return attributes


_DETAILS: Final[Mapping[str, Callable[[Event, Event | None, bool], Attributes]]] = {
    "llm": _chat,
    "tool": _tool,
    "mcp": _tool,
    "retrieval": _retrieval,
    "http": _http,
}
"""The attributes of kinds that have more than `Effect.span` says."""
