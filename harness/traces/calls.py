"""Calls as an app made them: one span each, whatever the exporters wrote.

Several instrumentations may report one call, and those of a provider's client report no calls of tools at all: what a
tool gave back then stands in a later request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.graph.to_json import from_json
from harness.traces.messages import Message, unwrapped
from harness.traces.spans import ABSENT, Span

_OUTPUT_TOOLS: Final = "pydantic"
"""Part of the names of exporters whose models return the output by a tool that nothing executes."""
_SLACK_S: Final = 0.002
"""Times of some exports are in milliseconds."""


def without_repetitions(spans: Sequence[Span]) -> list[Span]:
    """Return the spans with those of one model call joined. The one that tells most stands for all."""
    known = {(span.trace, span.id): span for span in spans}
    models = [span for span in spans if span.kind == "model"]
    models.sort(key=lambda span: (-_told(span), span.start))
    kept: list[Span] = []
    same: dict[tuple[str, str], Span] = {}
    for span in models:
        twin = next((each for each in kept if _is_same(span, each, known)), None)
        if twin is None:
            kept.append(span)
            continue
        same[span.trace, span.id] = twin
        twin.call, twin.thread = twin.call or span.call, twin.thread or span.thread
        twin.usage, twin.tools = twin.usage or span.usage, twin.tools or span.tools
        if span.id == twin.parent and span.trace == twin.trace:
            twin.parent = span.parent
    return [span for span in spans if (span.trace, span.id) not in same]


def _told(span: Span) -> int:
    return (span.input is not ABSENT) + (span.output is not ABSENT)


def _is_same(span: Span, other: Span, known: Mapping[tuple[str, str], Span]) -> bool:
    if span.start > other.end + _SLACK_S or other.start > span.end + _SLACK_S:
        return False
    if _is_above(span, other, known) or _is_above(other, span, known):
        return True
    if span.call and other.call:
        return span.call == other.call
    inside = other.start - _SLACK_S <= span.start and span.end <= other.end + _SLACK_S
    return inside and not span.has_content and span.source != other.source


def _is_above(span: Span, other: Span, known: Mapping[tuple[str, str], Span]) -> bool:
    above, depth = known.get((other.trace, other.parent)), 0
    while above is not None and depth < len(known):
        if above is span:
            return True
        above, depth = known.get((above.trace, above.parent)), depth + 1
    return False


def calls_of_tools(spans: Sequence[Span]) -> list[Span]:
    """Return calls of tools that no span tells of, made from the replies that asked and the requests that follow.

    Spans of tools get what they lack from the same places. A hand-off to another agent becomes a route.
    """
    models, tools = ([span for span in spans if span.kind == kind] for kind in ("model", "tool"))
    has_routes = any(span.kind == "route" for span in spans)
    asked = [(model, call) for model in models for call in _calls(model)]
    named = {tool.name for tool in tools}
    _complete(tools, asked)
    found = []
    for model, call in asked:
        later = [each for each in models if each.start > model.start and isinstance(each.input, list)]
        result, after = _result(call.get("id"), later)
        if result is None or call["name"] in named or _OUTPUT_TOOLS in model.source:
            continue
        end = max(after.start, model.end)
        kind = "route" if _hands_over(result) else "tool"
        if kind == "route" and has_routes:
            continue
        id_ = f"{model.id}/{call.get('id')}"
        tool = Span(id_, model.id, model.trace, call["name"], kind, model.end, end, model.source)
        tool.order, tool.thread, tool.call = f"{model.order}", model.thread, str(call.get("id"))
        tool.input, tool.output = call["args"], unwrapped(result["content"])
        if kind == "route":
            tool.input, tool.output = "", from_json(result["content"])["assistant"]
        found.append(tool)
    return found


def _calls(model: Span) -> list[dict[str, Any]]:
    return list(model.output.get("tool_calls", ())) if isinstance(model.output, dict) else []


def _result(id_: Any, later: Sequence[Span]) -> tuple[Message | None, Any]:
    for model in later:
        for message in model.input if id_ else ():
            if message["type"] == "tool" and message.get("tool_call_id") == id_:
                return message, model
    return None, None


def _hands_over(result: Message) -> bool:
    """True for the result by which the OpenAI Agents SDK tells a model of a hand-off."""
    content = result["content"]
    told = from_json(content) if isinstance(content, str) else None
    return isinstance(told, dict) and set(told) == {"assistant"}


def _complete(tools: Sequence[Span], asked: Sequence[tuple[Span, dict[str, Any]]]) -> None:
    """Give each span of a tool the id of its call, and its arguments if they were written as a bare text."""
    left = list(asked)
    for tool in tools:
        for model, call in left:
            matches = (
                tool.call == call.get("id") if tool.call and call.get("id") else tool.name == call["name"]
            )
            if matches and model.start <= tool.start:
                left.remove((model, call))
                tool.call = tool.call or str(call.get("id") or "")
                if not isinstance(tool.input, Mapping):
                    tool.input = call["args"]
                break
