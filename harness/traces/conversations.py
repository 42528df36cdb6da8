"""The events of conversations, told from spans (`harness.graph.trace` has the events).

Two things differ from the events of a run: a value that the export lacks is left out, and `gap` of its event names
it; and there are routes only where the export tells them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from harness.graph.trace import Event
from harness.report.formatting import plural
from harness.report.traces import RunTrace
from harness.traces.calls import calls_of_tools, without_repetitions
from harness.traces.messages import is_command, last_text, state, update_of
from harness.traces.spans import ABSENT, Failure, Span, mapping
from harness.traces.turns import conversations, mark_nodes

_GENERIC: Final = frozenset({"", "LangGraph", "Agent workflow", "RunnableSequence"})
_LONGEST_NAME: Final = 72
_CALLS: Final = {"model": "llm", "tool": "tool", "handler": "handler", "retrieval": "retrieval"}


def traces_of(spans: Sequence[Span], source: str) -> list[RunTrace]:
    """Return the traces of the conversations, in order of time. `source` is the name of the format."""
    found = [_Conversation(turns) for turns in conversations(without_repetitions(spans))]
    used: Counter[str] = Counter()
    traces = []
    for conversation in found:
        name = conversation.name
        used[name] += 1
        traces.append(conversation.trace(source, name if used[name] == 1 else f"{name} ({used[name]})"))
    return traces


class _Conversation:
    def __init__(self, turns: Sequence[Span]) -> None:
        self._turns = turns
        self._spans = [span for turn in turns for span in (turn, *turn.below())]
        self._has_graph = any(span.node for span in self._spans)
        for turn in turns:
            mark_nodes(turn, has_graph=self._has_graph)
        self._spans += calls_of_tools(self._spans)
        self._nodes = {span.name for span in self._spans if span.kind == "node"}
        told = [span for span in self._spans if span.kind in _CALLS]
        self._has_content = not told or any(span.output is not ABSENT or span.input for span in told)
        self._keys = _keys(self._spans)
        self._paused: set[tuple[str, str]] = set()
        inputs = [self._told(_inherited(turn, "input")) for turn in turns]
        self._inputs = inputs if any(inputs) else [*map(_question, turns)]

    @property
    def name(self) -> str:
        """A name for the conversation: what began, and the first input."""
        first, begun = self._inputs[0], self._turns[0].name
        parts = [
            begun if begun not in _GENERIC else "",
            " ".join(first.split()) if isinstance(first, str) else "",
        ]
        name = ": ".join(filter(None, parts)) or begun or "conversation"
        # Whole words are left out, as half a secret would not be recognised as one.
        return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME].rpartition(' ')[0]} …".strip()

    def trace(self, source: str, name: str) -> RunTrace:
        """Return the trace with all events."""
        events: list[Event] = []
        for number, turn in enumerate(self._turns, start=1):
            for event in self._turn(turn, number, events):
                events.append(event)
        calls: dict[int, int] = {}
        at = 0.0
        for event in events:
            event["at"] = at = round(max(at, event["at"] - self._turns[0].start), 6)
            if "call" in event:
                event["call"] = calls.setdefault(event["call"], len(calls) + 1)
        head = {
            **{
                "event": "trace",
                "format": source,
                "scenario": name,
                "id": name,
                "status": events[-1]["status"],
            },
            **dict.fromkeys(("manifest", "dialect", "agent", "variant", "verdict", "digest")),
            **{"repeat": 0, "seed": 0, "kinds": {}},
        }
        return RunTrace(head, events, missing=missing(self._spans, events, self._has_content))

    def _told(self, value: Any) -> Any:
        """Return an input: text for the one message of a state that has nothing else."""
        if value == {} and not self._has_content:
            return ABSENT
        args = mapping(value).get("args")
        if isinstance(args, list) and set(value) == {"args", "kwargs"}:  # of a function that was observed
            questions = [_question(turn) for turn in self._turns]
            value = next((each for each in args if isinstance(each, str) and each in questions), value)
        if isinstance(value, str):
            return {self._keys[value]: value} if value in self._keys else value
        value = value if is_command(value) else state(value)
        said, *rest = ([value.get("messages"), *value.values()]) if isinstance(value, dict) else [None]
        if isinstance(said, list) and len(said) == 1 and mapping(said[0]).get("type") == "human":
            return value if any(each not in ("", None, [], {}, said) for each in rest) else said[0]["content"]
        return value

    def _turn(self, turn: Span, number: int, before: list[Event]) -> Iterator[Event]:
        value = self._inputs[number - 1]
        # A turn without an input among others with one was resumed: some exporters do not write what with.
        if is_command(value) or (value is ABSENT and number > 1 and any(self._inputs)):
            if before[-1]["status"] == "completed":
                before[-1] |= {"status": "interrupted", "output": None}
            yield _resumed(turn.start, value["resume"] if value else ABSENT)
        else:
            self._paused.clear()
            yield _valued(_event("input", turn.start, graph=""), value, "the input")
        inside = turn.children if turn.kind in ("agent", "step") else [turn]
        events = self._inside(inside, "", turn.name if turn.kind in ("agent", "step") else "", number)
        for event in events:
            if event["event"] == "node_resume" and before[-1]["event"] == "node_pause":  # in one span
                yield _ended(event["at"]) | {"status": "interrupted"}
                yield _resumed(event["at"], ABSENT)
            yield event
        yield self._end(turn, events)

    def _end(self, turn: Span, events: Sequence[Event]) -> Event:
        output = state(_inherited(turn, "output"))
        asked = "__interrupt__" in mapping(output) or (turn.failure and turn.failure.is_pause)
        if asked or self._paused:
            return _ended(turn.end) | {"status": "interrupted"}
        if turn.failure:
            failed = [each["graph"] + each["node"] for each in events if each["event"] == "node_error"]
            error = {"error": self._error(turn.failure), "node": failed[0] if failed else None}
            return _ended(turn.end) | {"status": "failed", **error}
        if isinstance(said := mapping(output).get("messages"), list):
            output = last_text(said)
        if not output and not self._has_graph:
            replies = [each.output for each in (turn, *turn.below()) if each.kind == "model"]
            output = mapping(replies[-1]).get("text", ABSENT) if replies else output
        return _ended(turn.end) | ({"gap": "the output"} if output is ABSENT else {"output": output})

    def _inside(self, spans: Sequence[Span], graph: str, node: str, turn: int) -> list[Event]:
        """Return the events of spans side by side, in order: of supersteps, then of time."""
        steps = {span.step for span in spans if span.kind == "node"}
        ordered = sorted(spans, key=lambda span: span.step or 0) if steps and None not in steps else [*spans]
        events: list[Event] = []
        for _, together in groupby(ordered, key=lambda span: span.step if ordered != spans else None):
            events += merge(
                *(self._events(span, graph, node, turn) for span in together), key=itemgetter("at")
            )
        at = 0.0
        for event in events:
            event["at"] = at = max(at, event["at"])
        return events

    def _events(self, span: Span, graph: str, node: str, turn: int) -> list[Event]:
        if span.kind == "node":
            return self._node(span, graph, turn)
        if span.kind == "route":
            above, _, name = str(span.input or node).rpartition("/")
            target = str(span.output or "")
            route = _event("route", span.start, graph=above and f"{above}/", source=name, target=target)
            return [route | {"condition": "hand-off"}]
        if span.kind in _CALLS:
            return [
                self._call(span, node),
                *self._inside(span.children, graph, node, turn),
                self._answer(span),
            ]
        return self._inside(span.children, graph, node, turn)

    def _node(self, span: Span, graph: str, turn: int) -> list[Event]:
        path, name = f"{graph}{span.name}", {"graph": graph, "node": span.name}
        latency = {"latency": round(span.end - span.start, 6)}
        kind = "node_resume" if (graph, span.name) in self._paused else "node_start"
        self._paused.discard((graph, span.name))
        step = turn if span.step is None else span.step
        events = [_event(kind, span.start, **name, step=step, invocation=turn)]
        events += self._inside(span.children, f"{path}/", path, turn)
        if span.failure and span.failure.is_pause:
            self._paused.add((graph, span.name))
            values = span.failure.values if self._has_content else None
            pause = _event("node_pause", span.end, **name, values=values or [], **latency)
            return [*events, pause | ({} if values else {"gap": "what the pause asks"})]
        if span.failure:
            return [*events, _event("node_error", span.end, **name, **self._error(span.failure), **latency)]
        update, goto = update_of(span.output or {})
        if isinstance(update, str) and update in self._keys:
            update = {self._keys[update]: update}
        ended = _event("node_end", span.end, **name, update=update, **latency)
        events.append(ended | ({} if self._has_content or span.output else {"gap": "the update"}))
        for target, condition in [*((target, "Command") for target in goto), *span.routes]:
            if target in self._nodes or target == "__end__":
                edge = {"source": span.name, "target": target, "condition": condition}
                events.append(_event("route", span.end, graph=graph, **edge))
        return events

    def _call(self, span: Span, node: str) -> Event:
        given = ABSENT if span.input == {} and not self._has_content else span.input
        request: dict[str, Any] = {"tools": sorted(span.tools)} if span.tools else {}
        if span.kind == "model" and given:
            request = {"messages": given, **request}
        elif given is not ABSENT:
            request["args"] = state(given) if isinstance(given, Mapping) else {"input": given}
        what = "the prompt" if span.kind == "model" else "the arguments"
        event = _event("call", span.start, call=id(span), kind=_CALLS[span.kind], name=span.name, node=node)
        return event | {"request": request} | ({"gap": what} if given is ABSENT else {})

    def _answer(self, span: Span) -> Event:
        event = _event(
            "answer", span.end, call=id(span), ok=True, latency=round(max(0.0, span.end - span.start), 6)
        )
        if span.failure and not span.failure.is_pause:
            return event | {"ok": False, "error": self._error(span.failure)}
        if span.kind != "model":
            return _valued(event, state(span.output), "the result")
        value = span.output and span.output | ({"usage": span.usage} if span.usage else {})
        return _valued(event | {"usage": span.usage}, value, "the reply")

    def _error(self, failure: Failure) -> dict[str, str]:
        """Return a failure as data. Its message may hold what was not to be exported."""
        return {"type": failure.type, "message": failure.message if self._has_content else ""}


def _event(event: str, at: float, **data: Any) -> Event:
    return {"event": event, "at": at, **data}


def _valued(event: Event, value: Any, what: str) -> Event:
    return event | ({"gap": what} if value is ABSENT else {"value": value})


def _resumed(at: float, value: Any) -> Event:
    return _valued(_event("resume", at, graph=""), value, "the answer to the pause")


def _ended(at: float) -> Event:
    return _event("end", at, graph="", status="completed", output=None, error=None, node=None)


def _inherited(turn: Span, side: str) -> Any:
    """Return the input or output of a turn, else that of the only agent or graph in it."""
    span: Span | None = turn
    while span is not None and span.kind in ("agent", "step"):
        if (value := getattr(span, side)) is not ABSENT:
            return value
        span = span.children[0] if len(span.children) == 1 else None
    return ABSENT


def _question(turn: Span) -> Any:
    """Return the question of the first request of a turn."""
    asked: Sequence[Any] = next(
        (span.input for span in (turn, *turn.below()) if span.kind == "model" and span.input), []
    )
    questions = [each for each in asked if each["type"] == "human"]
    return last_text(questions) if questions else ABSENT


def _keys(spans: Sequence[Span]) -> dict[str, str]:
    """Return the keys of texts in states: OpenInference writes a mapping with one text as the bare text."""
    if not any("openinference" in span.source and span.kind == "node" for span in spans):
        return {}
    states = [
        mapping(value) for span in spans if span.kind not in _CALLS for value in (span.input, span.output)
    ]
    return {
        value: str(key) for each in states for key, value in each.items() if value and isinstance(value, str)
    }


_OTEL: Final = "content capture was off: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CONTENT: Final = (
    ("openai_v2", f"{_OTEL}=true, and export the log records into the same file"),
    ("opentelemetry.instrumentation.genai", f"{_OTEL}=span_only"),
    ("opentelemetry.util.genai", f"{_OTEL}=span_only"),
    ("openinference", "unset OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS"),
    ("opentelemetry.instrumentation", "set TRACELOOP_TRACE_CONTENT=true"),
    ("pydantic-ai", "instrument with include_content=True"),
    ("langsmith", "select INPUTS and OUTPUTS, and unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS"),
    ("com.anthropic", "the Anthropic SDK writes none: add an instrumentation, such as OpenInference"),
    ("harness", "export with --content"),
)
"""Ways to export content, by a part of the exporter's name. The first that fits counts."""
_LIMITS: Final = (
    (
        "genai.langchain",
        "the nodes and pauses of a graph: opentelemetry-instrumentation-genai-langchain writes none",
    ),
    (
        "openai_v2",
        "calls with structured output (`parse`), if any: opentelemetry-instrumentation-openai-v2 sees none",
    ),
    ("golden", "earlier visits of a node: a golden run has each node as it was last"),
)
"""Sentences on what exporters never write."""
_PROVIDERS: Final = "instrument the client of the provider too"
_RESPONSES: Final = "the Responses API has them outside of the messages, and {} does not export them"


def missing(spans: Sequence[Span], events: Sequence[Event], has_content: bool) -> tuple[str, ...]:
    """Return sentences on what is missing in the events of a conversation."""
    sources = Counter(span.source for span in spans if span.kind not in ("step", "other"))
    source = sources.most_common(1)[0][0] if sources else ""
    calls = {event["call"]: event for event in events if event["event"] == "call"}
    llm = [call for call in calls.values() if call["kind"] == "llm"]
    gaps = Counter(_gap(event, calls) for event in events if "gap" in event)
    found = [f"{_plural(what, count)} of {plural(count, whose)}" for (what, whose), count in gaps.items()]
    hint = next((hint for part, hint in _CONTENT if part in source), "")
    if found and not has_content and hint:
        found = [f"{', '.join(found)} ({hint})"]
    if not llm:
        found.append(f"the model calls: this export has none ({_PROVIDERS})")
    if "openai_agents" in source and llm:
        bare = [
            call
            for call in llm
            if not any(each["type"] == "system" for each in call["request"].get("messages", ()))
        ]
        if with_messages := [call for call in bare if "messages" in call["request"]]:
            found.append(
                f"the system prompts of {plural(len(with_messages), 'model call')} ({_RESPONSES.format(source)})"
            )
        elif bare:
            found.append(
                "all of the Responses API but ids: the SDK's own exporter has none (use logfire or OpenInference)"
            )
    found += [text for part, text in _LIMITS if part in source]
    if not any(span.children for span in spans if span.kind != "agent" or span.name) and len(llm) > 1:
        found.append(
            "which calls belong together: each is a trace of its own, and their order is that of time"
        )
    return tuple(found)


def _plural(what: str, count: int) -> str:
    irregular = {"the reply": "the replies", "the answer to the pause": "the answers to the pauses"}
    return what if count == 1 or what[-1] in "ks" else irregular.get(what, f"{what}s")


def _gap(event: Event, calls: dict[int, Event]) -> tuple[str, str]:
    """Return what an event lacks, and whose it is."""
    call = event if event["event"] == "call" else calls.get(event.get("call", 0))
    if call is None:
        return event["gap"], "node" if event.get("node") else "turn"
    return event["gap"], "model call" if call["kind"] == "llm" else f"{call['kind']} call"
