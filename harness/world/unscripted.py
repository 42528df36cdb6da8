"""The error for a call that nothing answers: the call, the nearest stub, and the shortest stub that would answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.errors import Nearest, UnscriptedCall
from harness.graph.effects import Effect, HTTPCall, HumanCall, LLMCall, MCPCall
from harness.graph.messages import message_text
from harness.source.display import clip

_PLAIN: Final = re.compile(r"(?!(?:null|true|false)$)[A-Za-z_](?:[\w ./-]*\w)?", re.IGNORECASE)
"""Names that need no quotes in YAML 1.2."""


def unscripted(effect: Effect, nearest: Nearest | None, hint: str) -> UnscriptedCall:
    """Return the error for an effect that nothing answers: the call, the nearest stub, and a stub to add."""
    hints = ", ".join(filter(None, (hint, effect.hint)))
    return UnscriptedCall(request_text(effect), nearest, hints, _shortest_stub(effect))


_RETURNED: Final = {"handler": "{}", "script": "{}", "retrieval": '{context: "…", sources: []}'}
"""The shortest answer of kinds of effects that do not return text."""


def _shortest_stub(effect: Effect) -> str:
    """Return the shortest stub that would answer a call, as YAML."""
    if isinstance(effect, HTTPCall):
        return f"http: [{{url: {json.dumps(effect.name, ensure_ascii=False)}, json: {{}}}}]"
    if isinstance(effect, MCPCall):
        return shortest_server(effect.server, f'{{name: {_key(effect.name)}, stubs: [{{return: "…"}}]}}')
    if not isinstance(effect, LLMCall | HumanCall):
        keys = {"tool": "tools", "handler": "handlers", "agent": "agents", "script": "scripts"}
        returned = _RETURNED.get(effect.kind, '"…"')
        return f"{keys.get(effect.kind, effect.kind)}: {{{_key(effect.name)}: {{return: {returned}}}}}"
    wanted = effect.response_format if isinstance(effect, LLMCall) else None
    answer = f"{{json: {_example(_schema_of(wanted))}}}" if wanted else '"…"'
    node = effect.node or ""
    return f"{effect.kind}: {{{_key(node)}: [{answer}]}}" if node else f"{effect.kind}: [{answer}]"


def shortest_server(name: str, tool: str = "") -> str:
    """Return the shortest MCP server of this name, with one tool or none, as YAML."""
    return f"mcp: {{{_key(name)}: {{tools: [{tool}]}}}}"


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _schema_of(response_format: Any) -> Any:
    """Return the JSON Schema in a response format; {} if there is none."""
    if not isinstance(response_format, Mapping):
        return {}
    inner = response_format.get("json_schema", response_format)
    schema = inner.get("schema", inner) if isinstance(inner, Mapping) else {}
    return {"properties": {}, **schema} if isinstance(schema, Mapping) else {}


_OF_TYPE: Final = {
    "string": '"…"',
    "integer": "1",
    "number": "1",
    "boolean": "true",
    "array": "[]",
    "object": "{}",
}


_DEEPEST: Final = 5


def _example(schema: Any, depth: int = 0) -> str:
    """Return an example value of a JSON Schema as YAML.

    It is the first choice of an `enum`, a mapping with the required keys, or a value of the schema's type. The schema
    may be invalid, since a tool sent it.
    """
    if not isinstance(schema, Mapping):
        return '"…"'
    for choices in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if isinstance(choices, list) and choices:
            return json.dumps(choices[0], ensure_ascii=False, default=str)
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, Mapping) and depth < _DEEPEST:
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        parts = [f"{_key(name)}: {_example(properties.get(name), depth + 1)}" for name in names]
        return f"{{{', '.join(parts)}}}"
    kind = schema.get("type")
    return _OF_TYPE.get(kind, '"…"') if isinstance(kind, str) else '"…"'


def without_headers(effect: Effect) -> Effect:
    """Return an HTTP call without its headers, which may hold keys; any other effect unchanged."""
    if not isinstance(effect, HTTPCall):
        return effect
    return replace(effect, args={key: value for key, value in effect.args.items() if key != "headers"})


def request_text(effect: Effect) -> str:
    """Return a description of an effect, in a few lines."""
    where = f" in node {effect.node!r}" if effect.node else ""
    if isinstance(effect, MCPCall):
        return f"MCP tool {effect.name!r} of server {effect.server!r} with {dict(effect.args)!r}"
    if isinstance(effect, LLMCall):
        lines = [f"the call of model {effect.name!r}{where}, with {_count(effect.messages)}:"]
        shown = effect.messages[-3:]
        if len(effect.messages) > len(shown):
            lines.append("    …")
        lines += [f"    {message.type}: {short(message_text(message), 160)}" for message in shown]
        if effect.tools:
            lines.append(f"    tools: {', '.join(tool.name for tool in effect.tools)}")
        return "\n".join(lines)
    args = ", ".join(f"{key}={short(repr(value), 80)}" for key, value in effect.args.items())
    return f"{effect.kind} {effect.name}({args}){where}"


def _count(messages: Sequence[Any]) -> str:
    return "1 message" if len(messages) == 1 else f"{len(messages)} messages"


def short(text: str, limit: int) -> str:
    """Return the text on one line, clipped to `limit` characters."""
    return clip(" ".join(text.split()), limit)
