"""Calls as an app made them: one span each, whatever the exporters wrote.

Several instrumentations may report one call, and those of a provider's client report no calls of tools at all: what a
tool gave back then stands in a later request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.graph.to_json import from_json
from harness.traces.messages import unwrapped
from harness.traces.spans import MAX_DEPTH, Kind, Span, mapping

_OUTPUT_TOOLS: Final = "pydantic"
"""Part of the names of exporters whose models return the output by a tool that nothing executes."""
_AHEAD: Final = 200
"""The most requests that are searched for what a tool gave back."""
_SLACK_S: Final = 0.002
"""Times of some exports are in milliseconds."""


def without_repetitions(spans: Sequence[Span]) -> list[Span]:
    """Return the spans with those of one call joined. The one that tells most stands for all."""
    known = {(span.trace, span.id): span for span in spans}
    left_out: set[Span] = set()
    running: list[Span] = []
    for span in sorted(
        (span for span in spans if span.kind in ("model", "tool")), key=lambda span: span.start
    ):
        running = [each for each in running if each.end + _SLACK_S >= span.start]
        twin = next((each for each in running if _is_same(span, each, known)), None)
        if twin is not None:
            kept, other = (twin, span) if _told(twin) >= _told(span) else (span, twin)
            kept.call, kept.thread = kept.call or other.call, kept.thread or other.thread
            kept.usage, kept.tools = kept.usage or other.usage, kept.tools or other.tools
            if _is_above(other, kept, known):
                kept.parent = other.parent
            left_out.add(other)
            running.remove(twin)
        running.append(span if twin is None else kept)
    return [span for span in spans if span not in left_out]


def _told(span: Span) -> int:
    return bool(span.input) + bool(span.output)


def _is_same(span: Span, other: Span, known: Mapping[tuple[str, str], Span]) -> bool:
    """True if two spans, which overlap, are of one call."""
    if span.kind != other.kind or (span.kind == "tool" and span.name != other.name):
        return False
    if span.kind == "model" and (_is_above(span, other, known) or _is_above(other, span, known)):
        return True
    if span.call and other.call:
        return span.call == other.call
    bare, whole = (span, other) if _told(span) < _told(other) else (other, span)
    first, last = min(span.start, other.start) + _SLACK_S, max(span.end, other.end) - _SLACK_S
    inside = any(each.start <= first and last <= each.end for each in (span, other))
    alike = not _told(bare) or (bare.output and bare.output == whole.output)
    return inside and bool(alike) and bare.source != whole.source


def _is_above(span: Span, other: Span, known: Mapping[tuple[str, str], Span]) -> bool:
    above = other
    for _ in range(MAX_DEPTH):
        above = known.get((above.trace, above.parent))  # type: ignore[assignment]
        if above is None or above is span:
            return above is span
    return False


def calls_of_tools(spans: Sequence[Span]) -> list[Span]:
    """Return calls of tools that no span tells of, beside the models that asked for them.

    They are made from the replies that asked and the requests that follow; a hand-off to another agent becomes a
    route. Spans of tools get what they lack from the same places.
    """
    ordered = sorted(spans, key=lambda span: span.start)
    models, tools = ([span for span in ordered if span.kind == kind] for kind in ("model", "tool"))
    beside = {child: span for span in spans for child in span.children}
    asked = [
        (at, call) for at, model in enumerate(models) for call in mapping(model.output).get("tool_calls", ())
    ]
    _complete(tools, [(models[at], call) for at, call in asked])
    named = {tool.name for tool in tools}
    has_routes = any(span.kind == "route" for span in spans)
    found = []
    for at, call in asked:
        model = models[at]
        result, end = next(_results(call.get("id"), models[at + 1 : at + 1 + _AHEAD]), ("", 0.0))
        if not end or call["name"] in named or _OUTPUT_TOOLS in model.source:
            continue
        agent = mapping(from_json(result) if isinstance(result, str) else result)
        # By this the OpenAI Agents SDK tells a model of a hand-off.
        kind: Kind = "route" if set(agent) == {"assistant"} else "tool"
        if (kind == "route" and has_routes) or model not in beside:
            continue
        id_ = f"{model.id}/{call['id']}"
        made = Span(
            id_, model.id, model.trace, call["name"], kind, model.end, max(end, model.end), model.source
        )
        made.input, made.output = (
            ("", agent["assistant"]) if kind == "route" else (call["args"], unwrapped(result))
        )
        made.call = call["id"]
        siblings = beside[model].children
        siblings.append(made)
        siblings.sort(key=lambda span: (span.start, str(span.order)))
        found.append(made)
    return found


def _results(id_: Any, models: Sequence[Span]) -> Iterator[tuple[Any, float]]:
    """Yield what requests say that a call of a tool gave back, and when they were made."""
    for model in models:
        for message in model.input or () if id_ else ():
            if message["type"] == "tool" and message.get("tool_call_id") == id_:
                yield message["content"], model.start


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
                tool.input = tool.input if isinstance(tool.input, Mapping) else call["args"]
                break
