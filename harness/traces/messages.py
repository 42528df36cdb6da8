"""Values of exports as plain data: messages, requests and replies in the shapes of every provider and exporter."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from harness.graph.to_json import MAX_DEPTH, as_text
from harness.traces.spans import ABSENT, Failure, Span

Message = dict[str, Any]
REDACTED: Final = "__REDACTED__"
CUT_SHORT: Final = ("length", "max_tokens", "content_filter", "refusal")
"""Reasons why a reply ended that say that it is not whole. Others differ between providers and mean nothing."""
_ROLES: Final = {
    **{"user": "human", "human": "human", "assistant": "ai", "ai": "ai", "AIMessageChunk": "ai"},
    **{"system": "system", "developer": "system", "tool": "tool", "function": "tool"},
}
_TOKENS: Final = {
    "input_tokens": ("input_tokens", "prompt_tokens", "input", "prompt"),
    "output_tokens": ("output_tokens", "completion_tokens", "output", "completion"),
}
_COMMAND: Final = {"graph", "update", "resume", "goto"}
_LONGEST_REPR: Final = 200_000
_UNREADABLE: Final = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
_REFUSED: Final = re.compile(r"Error: (\w+)\((.*)\)\s*Please fix your mistakes\.", re.DOTALL)
_RAISED: Final = re.compile(r"(?:[\w.]*\.)?(\w+)(?:\((.*)\)|: ?(.*))", re.DOTALL)


class _Hidden(Exception):
    """The content of a message was not exported."""


def set_values(span: Span, given: Any, gave: Any) -> None:
    """Set the input and output of a span as its kind has them. None stands for a value that was not exported."""
    given, gave = unwrapped(given), unwrapped(gave)
    if span.kind == "model":
        span.input, tools = request_of(given)
        span.output, span.tools = reply_of(gave), span.tools or tools
    else:
        span.input = ABSENT if given is None else given
        span.output = ABSENT if gave is None else gave
    if span.kind == "tool":
        if isinstance(given, Mapping) and set(given) == {"args", "kwargs"}:  # by Langfuse's `@observe`
            span.input = given if given["args"] else given["kwargs"]
        if gave is not None:
            span.output, call, failure = _result(gave)
            span.call, span.failure = span.call or call, span.failure or failure


def usage_of(counted: Any) -> dict[str, int]:
    """Return the tokens of a call, from any provider's or exporter's names."""
    counted = counted if isinstance(counted, Mapping) else {}
    found = {
        key: next((counted[name] for name in names if counted.get(name)), 0) for key, names in _TOKENS.items()
    }
    return {key: int(tokens) for key, tokens in found.items() if tokens}


def unwrapped(value: Any) -> Any:
    """Return data that was written as JSON text or as Python's repr; any other text, and scalars, as they are."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", "("):
        return None if value == REDACTED else value
    with suppress(ValueError, RecursionError):
        return json.loads(value)
    with suppress(*_UNREADABLE):
        found = ast.literal_eval(value) if len(value) <= _LONGEST_REPR else value
        return list(found) if isinstance(found, tuple) else found
    return value


def state(value: Any, depth: int = 0) -> Any:
    """Return data of an app, with its messages in our form and LangChain's constructors as their fields."""
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        if _is_message(value):
            return next(iter(messages([value]) or ()), None)
        return {str(key): state(item, depth + 1) for key, item in _fields(value).items()}
    return [state(item, depth + 1) for item in value] if isinstance(value, list | tuple) else value


def _fields(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of an object that LangChain wrote as a constructor, or with its type."""
    inner = (
        value.get("kwargs")
        if value.get("lc") == 1
        else value.get("data")
        if set(value) == {"type", "data"}
        else 0
    )
    return inner if isinstance(inner, Mapping) else value


def _is_message(value: Mapping[str, Any]) -> bool:
    fields = _fields(value)
    return "content" in fields and (fields.get("role") or fields.get("type")) in _ROLES


def is_command(value: Any) -> bool:
    """True for LangGraph's `Command`, as exporters write it."""
    return isinstance(value, Mapping) and set(value) >= _COMMAND


def update_of(output: Any) -> tuple[Any, list[str]]:
    """Return the update of a node, and where its commands lead to."""
    commands = output if isinstance(output, list) else [output]
    if not commands or not all(map(is_command, commands)):
        return state(output), []
    update: dict[str, Any] = {}
    goto: list[Any] = []
    for command in commands:
        update |= state(command["update"]) if isinstance(command["update"], Mapping) else {}
        goto += command["goto"] if isinstance(command["goto"], list) else [command["goto"]]
    return update, [target for target in goto if isinstance(target, str)]


def request_of(value: Any) -> tuple[list[Message] | Any, list[str]]:
    """Return the messages of a request (ABSENT if there are none), and the names of the tools that it offers."""
    tools: list[str] = []
    if isinstance(value, Mapping):
        tools = tool_names(value.get("tools"))
        system = value.get("system") or value.get("instructions")
        said = value.get("messages", value.get("input"))
        if isinstance(said, list) and len(said) == 1 and isinstance(said[0], list):
            said = said[0] if not isinstance((said[0] or [0])[0], str) else said  # LangChain's batch of one
        said = [said] if isinstance(said, str) else said or []
        value = [*([{"role": "system", "content": system}] if system else []), *said]
    value = [value] if isinstance(value, str) and value else value
    if not isinstance(value, list):
        return ABSENT, tools
    defined = [each["content"] for each in value if _is_definition(each)]
    return messages([each for each in value if not _is_definition(each)]) or ABSENT, tools + tool_names(
        defined
    )


def _is_definition(value: Any) -> bool:
    """True for the definition of a tool, which Langfuse appends to the messages."""
    content = value.get("content") if isinstance(value, Mapping) else None
    return isinstance(content, Mapping) and value.get("role") == "tool" and "function" in content


def tool_names(value: Any) -> list[str]:
    """Return the names in definitions of tools, of any provider."""
    found = [unwrapped(each) for each in value] if isinstance(value, list) else []
    inner = [each.get("function", each) for each in found if isinstance(each, Mapping)]
    return [str(each["name"]) for each in inner if isinstance(each, Mapping) and each.get("name")]


def messages(values: Any) -> list[Message] | Any:
    """Return messages in our form; ABSENT if their content was not exported."""
    try:
        return [message for value in _listed(values) for message in _messages_of(value)]
    except _Hidden:
        return ABSENT


def reply_of(value: Any) -> dict[str, Any] | Any:
    """Return a reply of a model as `text` and `tool_calls`; ABSENT if its content was not exported."""
    told: list[Any] = [value]
    if isinstance(value, Mapping):
        for key in (
            "generations",
            "choices",
            "output",
        ):  # of LangChain, of the completions and the Responses API
            if isinstance(value.get(key), list):
                inner = value[key][:1] if key != "output" else value[key]
                told += (value := inner[0] if inner and isinstance(inner[0], list) else inner)
                break
    value = [
        each.get("message") or each.get("text") or each if isinstance(each, Mapping) else each
        for each in _listed(value)
    ]
    value = [{"role": "assistant", "content": each} if isinstance(each, str) else each for each in value]
    said = [each for each in messages(value) or () if each["type"] == "ai"]
    if not said:
        return ABSENT
    reply: dict[str, Any] = {"text": "".join(as_text(each["content"]) for each in said)}
    if calls := [call for each in said for call in each.get("tool_calls", ())]:
        reply["tool_calls"] = calls
    reasons = [_reason(each) for each in (*told, *value)]
    return reply | next(({"finish_reason": reason} for reason in reasons if reason in CUT_SHORT), {})


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value or value == "" else []


def _reason(value: Any) -> Any:
    value = value if isinstance(value, Mapping) else {}
    info = value.get("generation_info") or {}
    return value.get("finish_reason") or value.get("stop_reason") or info.get("finish_reason")


def _messages_of(value: Any) -> Iterator[Message]:
    """Yield the message; of one that holds results of tools, these first."""
    if isinstance(value, str):
        value = {"role": "user", "content": value}
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str):
        value = {"role": value[0], "content": value[1]}
    if not isinstance(value, Mapping):
        return
    fields = _fields(value)
    kind = str(fields.get("type") or "")
    if kind in ("function_call", "function_call_output"):  # of the Responses API
        fields = {"role": "assistant", "content": [fields]}
    elif not fields.keys() & {"role", "content", "parts"} and kind not in _ROLES:
        return  # such as the reasoning of a model
    content, calls, results = _parts(fields.get("parts", fields.get("content")))
    yield from results
    calls += [tool_call(call) for call in fields.get("tool_calls") or () if isinstance(call, Mapping)]
    calls = [call for at, call in enumerate(calls) if call not in calls[:at]]
    if results and not content and not calls:
        return
    message: Message = {"type": _ROLES.get(str(fields.get("role") or kind), "human"), "content": content}
    if fields.get("name") and message["type"] != "human":
        message["name"] = fields["name"]
    if calls:
        message["tool_calls"] = calls
    if message["type"] == "tool":
        message["tool_call_id"] = str(fields.get("tool_call_id") or fields.get("id") or "")
    yield message


def _parts(content: Any) -> tuple[Any, list[Any], list[Message]]:
    """Return the content of a message, the calls of tools that it asks for, and the results that it holds."""
    if content == REDACTED:
        raise _Hidden
    if not isinstance(content, list):
        return content or "", [], []
    texts: list[str] = []
    others: list[Any] = []
    calls: list[Any] = []
    results: list[Message] = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else ""
        match kind:
            case "" | None if isinstance(part, str):
                texts.append(part)
            case "text" | "input_text" | "output_text":
                texts.append(str(_exported(part, "content", "text")))
            case "tool_call" | "tool_use" | "function_call":
                _exported(part, "arguments", "input")
                calls.append(tool_call(part))
            case "tool_call_response" | "tool_result" | "function_call_output":
                found = _exported(part, "response", "result", "content", "output")
                blocks = (
                    isinstance(found, list) and found and all(isinstance(each, Mapping) for each in found)
                )
                text = "".join(str(each.get("text") or "") for each in found) if blocks else ""
                id_ = part.get("tool_use_id") or part.get("call_id") or part.get("id") or ""
                results.append({"type": "tool", "content": text or as_text(found), "tool_call_id": str(id_)})
            case "thinking" | "reasoning" | "redacted_thinking":
                pass
            case _:
                others.append(part)
    if others:
        return [*({"type": "text", "text": text} for text in texts), *others], calls, results
    return "".join(texts), calls, results


def _exported(part: Mapping[str, Any], *keys: str) -> Any:
    found = next((part[key] for key in keys if key in part), REDACTED)
    if found == REDACTED:
        raise _Hidden
    return found


def tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call of a tool that a model asks for."""
    asked = call["function"] if isinstance(call.get("function"), Mapping) else call
    args: Any = next((unwrapped(asked[key]) for key in ("args", "arguments", "input") if asked.get(key)), {})
    id_ = call.get("call_id") or call.get("id")
    return {"name": str(asked.get("name") or ""), "args": args} | ({"id": str(id_)} if id_ else {})


def _result(value: Any) -> tuple[Any, str, Failure | None]:
    """Return what a tool gave back, the id of its call, and the failure that LangChain handed to the model."""
    if isinstance(value, Mapping) and "output" in value and set(value) <= {"output", "kwargs"}:
        value = unwrapped(value["output"])
    if not isinstance(value, Mapping) or not _is_message(value):
        return state(value), "", None
    fields, failure = _fields(value), None
    content = last_text(messages([value]) or [{"content": ABSENT}])
    if fields.get("status") == "error":
        found = _REFUSED.match(str(content))
        failure = Failure(found[1], _argument(found[2])) if found else Failure("ToolException", str(content))
    return unwrapped(content), str(fields.get("tool_call_id") or ""), failure


def failure_of(kind: str, text: str) -> Failure | None:
    """Return a failure by its type ("" if unknown) and text; None if it hands over to another graph.

    A pause is told by its values. Tracebacks are cut off.
    """
    kind, text = kind.rpartition(".")[2], text.partition("Traceback (most recent call last)")[0].strip()
    if kind == "ParentCommand" or text.startswith(("ParentCommand(", "Command(graph=")):
        return None
    if kind == "GraphInterrupt" or text.startswith(("GraphInterrupt(", "(Interrupt(", "[Interrupt(")):
        return Failure("GraphInterrupt", "", True, _interrupts(text))
    if not kind and (found := _RAISED.fullmatch(text)):
        kind, text = found[1], _argument(found[2]) if found[2] is not None else found[3]
    return Failure(kind or "Error", text)


def _argument(text: str) -> str:
    """Return the text inside of the repr of an exception."""
    with suppress(*_UNREADABLE):
        return str(ast.literal_eval(text)) if len(text) <= _LONGEST_REPR else text
    return text


def _interrupts(text: str) -> list[Any] | None:
    """Return the values in the repr of LangGraph's interrupts; None if they cannot be read."""
    with suppress(*_UNREADABLE):
        nodes = ast.walk(ast.parse(text if len(text) <= _LONGEST_REPR else "", mode="eval"))
        calls = [
            node
            for node in nodes
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Interrupt"
        ]
        given = [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "value"]
        return [ast.literal_eval(value) for value in given] or None
    return None


def last_text(values: Sequence[Any]) -> Any:
    """Return the content of the last message."""
    return (
        values[-1].get("content")
        if values and isinstance(values[-1], Mapping)
        else values[-1]
        if values
        else ""
    )
