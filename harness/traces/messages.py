"""Values of exports as plain data: messages, requests and replies in the shapes of every provider and exporter."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from harness.graph.to_json import MAX_DEPTH, as_text
from harness.traces.spans import ABSENT, Failure

Message = dict[str, Any]
_ROLES: Final = {
    **{"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "AIMessageChunk": "ai"},
    **{"system": "system", "developer": "system", "tool": "tool", "function": "tool"},
}
CUT_SHORT: Final = ("length", "max_tokens", "content_filter", "refusal")
"""Reasons why a reply ended that say that it is not whole. Others differ between providers and mean nothing."""
REDACTED: Final = "__REDACTED__"
_LONGEST_REPR: Final = 200_000
_COMMAND: Final = {"graph", "update", "resume", "goto"}
_TRACEBACK: Final = "Traceback (most recent call last)"
_REFUSED: Final = re.compile(r"Error: (\w+)\((.*)\)\s*Please fix your mistakes\.", re.DOTALL)
_RAISED: Final = re.compile(r"(?:[\w.]*\.)?(\w+)(?:\((.*)\)|: ?(.*))\s*", re.DOTALL)


class _Hidden(Exception):
    """The content of a message was not exported."""


def unwrapped(value: Any) -> Any:
    """Return data that was written as JSON text or as Python's repr; any other text, and scalars, as they are."""
    if not isinstance(value, str):
        return value
    if value == REDACTED:
        return ABSENT
    if value[:1] not in ("{", "[", "("):
        return value
    with suppress(ValueError, RecursionError):
        return json.loads(value)
    if len(value) <= _LONGEST_REPR:
        with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found = ast.literal_eval(value)
            return list(found) if isinstance(found, tuple) else found
    return value


def state(value: Any, depth: int = 0) -> Any:
    """Return data of an app, with its messages in our form and LangChain's constructors as their fields."""
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        if _is_message(value):
            return next(_messages_of(value), {})
        if value.get("lc") == 1 and isinstance(value.get("kwargs"), Mapping):
            value = value["kwargs"]
        return {str(key): state(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [state(item, depth + 1) for item in value]
    return value


def _is_message(value: Mapping[str, Any]) -> bool:
    if value.get("lc") == 1:
        return "messages" in (value.get("id") or ()) or "Message" in str((value.get("id") or [""])[-1])
    if set(value) == {"type", "data"}:
        return value["type"] in _ROLES and isinstance(value["data"], Mapping)
    return "content" in value and (value.get("role") or value.get("type")) in _ROLES


def is_command(value: Any) -> bool:
    """True for LangGraph's `Command`, as exporters write it."""
    return isinstance(value, Mapping) and set(value) >= _COMMAND


def update_of(output: Any) -> tuple[Any, list[str]]:
    """Return the update of a node, and where its commands lead to."""
    commands = output if isinstance(output, list) else [output]
    if not commands or not all(map(is_command, commands)):
        return state(output), []
    update: dict[str, Any] = {}
    goto: list[str] = []
    for command in commands:
        update |= state(command["update"]) if isinstance(command["update"], Mapping) else {}
        targets = command["goto"] if isinstance(command["goto"], list) else [command["goto"]]
        goto += [target for target in targets if isinstance(target, str)]
    return update, goto


def request_of(value: Any) -> tuple[list[Message] | Any, list[str]]:
    """Return the messages of a request (ABSENT if there are none), and the names of the tools that it offers."""
    value = unwrapped(value)
    tools: list[str] = []
    if isinstance(value, Mapping):
        tools = tool_names(value.get("tools"))
        system = value.get("system") or value.get("instructions")
        said = value.get("messages", value.get("input"))
        if isinstance(said, list) and len(said) == 1 and isinstance(said[0], list) and said[0]:
            said = said[0] if not isinstance(said[0][0], str) else said  # LangChain's batch of one
        said = [{"role": "user", "content": said}] if isinstance(said, str) else said or []
        value = [*([{"role": "system", "content": system}] if system else []), *said]
    elif isinstance(value, str) and value:
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list):
        return ABSENT, tools
    # Langfuse appends the definitions of tools as messages.
    defined = [each["content"] for each in value if _is_definition(each)]
    found = messages([each for each in value if not _is_definition(each)])
    return found or ABSENT, tools + tool_names(defined)


def _is_definition(value: Any) -> bool:
    content = value.get("content") if isinstance(value, Mapping) else None
    return isinstance(content, Mapping) and value.get("role") == "tool" and "function" in content


def tool_names(value: Any) -> list[str]:
    """Return the names in definitions of tools, of any provider."""
    found = []
    for each in value if isinstance(value, list) else ():
        each = unwrapped(each)
        each = each.get("function", each) if isinstance(each, Mapping) else {}
        if isinstance(each, Mapping) and each.get("name"):
            found.append(str(each["name"]))
    return found


def messages(values: Any) -> list[Message] | Any:
    """Return messages in our form; ABSENT if their content was not exported."""
    try:
        return [message for value in values or () for message in _messages_of(value)]
    except _Hidden:
        return ABSENT


def reply_of(value: Any) -> dict[str, Any] | Any:
    """Return a reply of a model as `text` and `tool_calls`; ABSENT if its content was not exported."""
    value = unwrapped(value)
    if isinstance(value, str):
        return {"text": value}
    told = value if isinstance(value, Mapping) else {}
    if isinstance(value, Mapping):
        if isinstance(generations := value.get("generations"), list):
            first = generations[0] if generations else {}
            first = first[0] if isinstance(first, list) and first else first
            told = first.get("generation_info") or {} if isinstance(first, Mapping) else {}
            value = [first.get("message") or first.get("text", "")] if isinstance(first, Mapping) else []
        elif isinstance(choices := value.get("choices"), list):
            told = choices[0] if choices and isinstance(choices[0], Mapping) else {}
            value = [told.get("message")]
        elif isinstance(value.get("output"), list):  # the Responses API
            value = value["output"]
        elif "role" in value or _is_message(value):
            value = [value]
    if not isinstance(value, list):
        return ABSENT
    value = [{"role": "assistant", "content": each} if isinstance(each, str) else each for each in value]
    found = messages(value)
    said = [each for each in found if each["type"] == "ai"] if found is not ABSENT else []
    if not said:
        return ABSENT
    reply: dict[str, Any] = {"text": "".join(str(each["content"]) for each in said)}
    if calls := [call for each in said for call in each.get("tool_calls", ())]:
        reply["tool_calls"] = calls
    last = value[-1] if isinstance(value[-1], Mapping) else {}
    for reason in (told.get("finish_reason"), told.get("stop_reason"), last.get("finish_reason")):
        if reason in CUT_SHORT:
            reply["finish_reason"] = reason
    return reply


def _messages_of(value: Any) -> Iterator[Message]:
    """Yield the message; of one that holds results of tools, these first."""
    if isinstance(value, str):
        value = {"role": "user", "content": value}
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str):
        value = {"role": value[0], "content": value[1]}
    if not isinstance(value, Mapping):
        return
    inner = value.get("kwargs") if value.get("lc") == 1 else value.get("data")
    fields = inner if isinstance(inner, Mapping) else value
    kind = str(fields.get("type") or "")
    if kind in ("function_call", "function_call_output"):
        fields = {"role": "assistant", "content": [fields]}
    elif kind and "role" not in fields and kind not in _ROLES and "content" not in fields:
        return  # such as the reasoning of a model
    role = _ROLES.get(str(fields.get("role") or kind), "human")
    content, calls, results = _parts(fields.get("parts", fields.get("content")))
    yield from results
    calls += [tool_call(call) for call in fields.get("tool_calls") or () if isinstance(call, Mapping)]
    calls = [call for at, call in enumerate(calls) if call not in calls[:at]]
    if not results or content or calls:
        message: Message = {"type": role, "content": content}
        if fields.get("name") and role != "human":
            message["name"] = fields["name"]
        if calls:
            message["tool_calls"] = calls
        if role == "tool":
            message["tool_call_id"] = str(fields.get("tool_call_id") or fields.get("id") or "")
        yield message


def _parts(content: Any) -> tuple[Any, list[Any], list[Message]]:
    """Return the content of a message, the calls of tools that it asks for, and the results that it holds."""
    if content is None or isinstance(content, str):
        if content == REDACTED:
            raise _Hidden
        return content or "", [], []
    if not isinstance(content, list):
        return (content.get("text", content) if isinstance(content, Mapping) else content), [], []
    texts: list[str] = []
    others: list[Any] = []
    calls: list[Any] = []
    results: list[Message] = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else ""
        if isinstance(part, str):
            texts.append(part)
        elif kind in ("text", "input_text", "output_text"):
            texts.append(str(_exported(part, "content", "text")))
        elif kind in ("tool_call", "tool_use", "function_call"):
            _exported(part, "arguments", "input", "args")
            calls.append(tool_call(part))
        elif kind in ("tool_call_response", "tool_result", "function_call_output"):
            result = _exported(part, "response", "result", "content", "output")
            blocks = isinstance(result, list) and all(
                isinstance(each, Mapping) and "text" in each for each in result
            )
            text = "".join(str(each["text"]) for each in result) if blocks else as_text(result)
            number = part.get("id") if kind == "tool_call_response" else None
            id_ = number or part.get("tool_use_id") or part.get("call_id") or ""
            results.append({"type": "tool", "content": text, "tool_call_id": str(id_)})
        elif kind not in ("thinking", "reasoning", "redacted_thinking"):
            others.append(part)
    if others:
        return [*({"type": "text", "text": text} for text in texts), *others], calls, results
    return "".join(texts), calls, results


def _exported(part: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        if key in part:
            if part[key] == REDACTED:
                break
            return part[key]
    raise _Hidden


def tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call of a tool that a model asks for."""
    asked = call["function"] if isinstance(call.get("function"), Mapping) else call
    args: Any = {}
    for key in ("args", "arguments", "input"):
        if asked.get(key):
            args = unwrapped(asked[key])
            break
    found = {"name": str(asked.get("name") or ""), "args": args}
    id_ = call.get("call_id") or call.get("id")
    return found | ({"id": str(id_)} if id_ else {})


def result_of(value: Any) -> tuple[Any, str, Failure | None]:
    """Return what a tool gave back, the id of its call, and the failure that LangChain handed to the model."""
    value = unwrapped(value)
    if isinstance(value, Mapping) and "output" in value and set(value) <= {"output", "kwargs"}:
        value = unwrapped(value["output"])
    if not isinstance(value, Mapping) or not _is_message(value):
        return state(value), "", None
    inner = value.get("kwargs") if value.get("lc") == 1 else value.get("data")
    fields = inner if isinstance(inner, Mapping) else value
    content, _, _ = _parts(fields.get("content"))
    failure = None
    if fields.get("status") == "error":
        found = _REFUSED.match(str(content))
        kind, message = (found[1], _argument(found[2])) if found else ("ToolException", str(content))
        failure = Failure(kind, message)
    return unwrapped(content), str(fields.get("tool_call_id") or ""), failure


def failure_of(kind: str, text: str) -> Failure | None:
    """Return a failure by its type ("" if unknown) and text; None if it hands over to another graph.

    A pause is told by its values. Tracebacks are cut off.
    """
    kind = kind.rpartition(".")[2]
    text = text.partition(_TRACEBACK)[0].strip()
    if kind == "ParentCommand" or text.startswith(("ParentCommand(", "Command(graph=")):
        return None
    if kind == "GraphInterrupt" or text.startswith(("GraphInterrupt(", "(Interrupt(", "[Interrupt(")):
        return Failure("GraphInterrupt", "", True, _interrupts(text))
    if not kind and (found := _RAISED.fullmatch(text)):
        kind = found[1]
        text = _argument(found[2]) if found[2] is not None else found[3]
    return Failure(kind or "Error", text)


def _argument(text: str) -> str:
    """Return the text inside of the repr of an exception."""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return str(ast.literal_eval(text)) if len(text) <= _LONGEST_REPR else text
    return text


def _interrupts(text: str) -> list[Any] | None:
    """Return the values in the repr of LangGraph's interrupts; None if they cannot be read."""
    if not text or len(text) > _LONGEST_REPR:
        return None
    try:
        calls = [node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Call)]
        found = [
            ast.literal_eval(keyword.value)
            for call in calls
            if getattr(call.func, "id", "") == "Interrupt"
            for keyword in call.keywords
            if keyword.arg == "value"
        ]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return found or None


def last_text(values: Sequence[Message]) -> Any:
    """Return the content of the last message."""
    return values[-1].get("content") if values else ""
