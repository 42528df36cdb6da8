"""The material of a judge, extracted from the trace of a run: its input, context, tools, calls and output.

    input       what was asked; for a conversation [{role: user | agent, content}], up to the last user message
    context     [{from, args?, content | error}]: answers of retrievals, tools, MCP servers and HTTP services
    tools       [{name, description, arguments}] that were offered to models
    tool_calls  [{name, args}] that models asked for, in order
    output      the result

Parts that a run does not have are missing. Answers of models, handlers, scripts, people and other agents are not
context: the output may be one of them, and would be compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.graph.effects import EFFECTS, Effect, ToolSpec
from harness.graph.trace import Event


def material_of(
    events: Sequence[Event], output: Any, *, since: int = 0, tools: Mapping[str, ToolSpec] | None = None
) -> dict[str, Any]:
    """Return the material of a run, or of the turn that begins with the event number `since`.

    A turn includes earlier questions and context, since models still see them. `tools` are those that were
    offered to models, by name.
    """
    answers = {event["call"]: event for event in events if event["event"] == "answer"}
    calls = [event for event in events if event["event"] == "call"]
    own = [event for event in events[since:] if event["event"] == "call" and event["kind"] == "llm"]
    conversation = _conversation(events, answers)
    offered = dict.fromkeys(name for call in own for name in call["request"].get("tools", ()))
    found: dict[str, Any] = {
        "context": [_source(call, answers[call["call"]]) for call in calls if _is_context(call, answers)],
        "tools": [_tool(name, tools or {}) for name in offered],
    }
    material = {key: value for key, value in found.items() if value}
    if conversation:
        material["input"] = conversation[0]["content"] if len(conversation) == 1 else conversation
    if output is not None:
        material["output"] = output
    return {**material, "tool_calls": [*_tool_calls(own, answers)]}


def _conversation(events: Sequence[Event], answers: Mapping[int, Event]) -> list[dict[str, Any]]:
    """Return the messages of the user and the agent, up to the last of the user."""
    messages: list[dict[str, Any]] = []
    for event in events:
        kind = event["event"]
        if kind == "call" and event["kind"] == "human" and "value" in answers.get(event["call"], ()):
            if not messages or messages[-1]["role"] == "user":  # otherwise the pause has added it
                messages.append(_message("agent", event["request"]["args"]))
            messages.append(_message("user", answers[event["call"]]["value"]))
        elif event.get("graph") != "":
            continue
        elif kind in ("input", "resume") and event["value"] is not None:
            messages.append(_message("user", event["value"]))
        elif kind == "node_pause" and event["values"]:
            messages.append(_message("agent", event["values"]))
        elif kind == "end" and event["status"] == "completed" and event.get("output") is not None:
            messages.append(_message("agent", event["output"]))
    while messages and messages[-1]["role"] == "agent":
        messages.pop()
    return messages


def _message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def _is_context(call: Event, answers: Mapping[int, Event]) -> bool:
    answer = answers.get(call["call"])
    return EFFECTS.get(call["kind"], Effect).informs and answer is not None and not answer.get("refused")


def _source(call: Event, answer: Event) -> dict[str, Any]:
    """Return one answer with the arguments of its call.

    Headers and queries of HTTP requests are left out: they may hold keys.
    """
    kind, args = call["kind"], call["request"].get("args") or {}
    source: dict[str, Any] = {"from": f"{kind} {call['name']}"}
    if kind == "http":
        args = {key: args[key] for key in ("method",) if key in args}
    if args:
        source["args"] = args
    if "error" in answer:
        return {**source, "error": answer["error"]["message"]}
    value = answer.get("value")
    if isinstance(value, Mapping) and kind == "http":
        value = {key: value[key] for key in ("status", "text") if key in value}
    elif isinstance(value, Mapping) and kind == "retrieval":
        value = value.get("passages") or value
    return {**source, "content": value}


def _tool(name: str, known: Mapping[str, ToolSpec]) -> dict[str, Any]:
    tool = known.get(name)
    if tool is None:
        return {"name": name}
    return {"name": name, "description": tool.description, "arguments": tool.schema}


def _tool_calls(calls: Sequence[Event], answers: Mapping[int, Event]) -> Iterator[dict[str, Any]]:
    """Yield the tool calls in the answers of models, without ids."""
    for call in calls:
        value = answers.get(call["call"], {}).get("value")
        for asked in (value.get("tool_calls") or ()) if isinstance(value, Mapping) else ():
            yield {"name": asked.get("name"), "args": asked.get("args")}
