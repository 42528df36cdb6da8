"""The events of conversations, told from spans (`harness.graph.trace` has the events).

A span that began an app is a turn; turns of one conversation are joined by its id. Calls of models without anything
around them are one conversation, as their exporters write each as a trace of its own. Two things differ from the
events of a run: a value that the export lacks is left out, and `gap` of its event names it; and there are routes only
where the export tells them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from harness.graph.trace import Event
from harness.report.traces import RunTrace
from harness.source.display import clip
from harness.traces.calls import calls_of_tools, without_repetitions
from harness.traces.messages import Message, is_command, last_text, state, update_of
from harness.traces.missing import missing
from harness.traces.spans import ABSENT, Absent, Failure, Span, forest

_GENERIC: Final = frozenset({"", "LangGraph", "Agent workflow", "RunnableSequence"})
_LONGEST_NAME: Final = 72
_END: Final = "__end__"
_CALLS: Final = {"model": "llm", "tool": "tool", "handler": "handler", "retrieval": "retrieval"}


def traces_of(spans: Sequence[Span], source: str) -> list[RunTrace]:
    """Return the traces of the conversations, in order of time. `source` is the name of the format."""
    groups: dict[str, list[Span]] = {}
    for turn in sorted(_turns(forest(without_repetitions(spans))), key=lambda turn: turn.start):
        groups.setdefault(_thread(turn), []).append(turn)
    found = []
    for turns in groups.values():
        if all(turn.kind == "model" for turn in turns):
            found += [_Conversation(some) for some in _by_client(turns)]
        else:
            found.append(_Conversation(turns))
    names: dict[str, int] = {}
    traces = []
    for conversation in found:
        name = conversation.name
        names[name] = names.get(name, 0) + 1
        traces.append(conversation.trace(source, name if names[name] == 1 else f"{name} ({names[name]})"))
    return traces


def _turns(roots: Sequence[Span]) -> Iterator[Span]:
    """Yield a span for each turn: the outermost that has to do with agents, or one around several of a trace."""
    by_trace: dict[str, list[Span]] = {}
    for root in roots:
        by_trace.setdefault(root.trace, []).append(root)
    for together in by_trace.values():
        found = [each for root in together for each in _outermost(root)]
        if len(found) == 1:
            yield found[0]
        elif found:
            turn = _turn_of(found[0], together[0].name if len(together) == 1 else "")
            turn.children, turn.end = found, max(each.end for each in found)
            yield turn


def _outermost(root: Span) -> Iterator[Span]:
    if root.kind != "other":
        yield root
    for child in root.children if root.kind == "other" else ():
        yield from _outermost(child)


def _thread(root: Span) -> str:
    """Return what joins turns: the id of the conversation, else that of the trace."""
    thread = root.thread or next((span.thread for span in root.below() if span.thread), "")
    return f"thread {thread}" if thread else "" if root.kind == "model" else f"trace {root.trace}"


def _by_client(calls: Sequence[Span]) -> Iterator[list[Span]]:
    """Split calls of models into conversations, each a list of turns: spans that hold the calls of one.

    A conversation begins where a request has the first system prompt with another question, and nothing else; a turn
    where the messages of a request continue those of the one before with another question.
    """
    turns: list[Span] = []
    before: list[Message] = []
    opening: list[Message] = []
    for call in calls:
        said = call.input if isinstance(call.input, list) else []
        is_opening = [each["type"] for each in said] == ["system", "human"]
        if not turns or (is_opening and opening and said[0] == opening[0] and said[1] != opening[1]):
            if turns:
                yield turns
            turns, opening, before = [], said if is_opening else [], said
            turns.append(_turn_of(call))
        elif (
            before
            and said[: len(before)] == before
            and any(each["type"] == "human" for each in said[len(before) :])
        ):
            turns.append(_turn_of(call))
        turns[-1].children.append(call)
        turns[-1].end, before = call.end, said
    yield turns


def _turn_of(first: Span, name: str = "") -> Span:
    return Span("", "", first.trace, name, "agent", first.start, first.end, first.source, thread=first.thread)


class _Conversation:
    def __init__(self, turns: Sequence[Span]) -> None:
        self.turns = turns
        self._base = turns[0].start
        every = [span for turn in turns for span in (turn, *turn.below())]
        self.spans = every
        self._has_graph = any(span.node for span in every)
        for turn in turns:
            _find_nodes(turn, has_graph=self._has_graph)
        for made in calls_of_tools(every):
            beside = next(span for span in every if any(_asked_for(child, made) for child in span.children))
            beside.children.append(made)
            beside.children.sort(key=lambda span: (span.start, str(span.order)))
            every.append(made)
        self.nodes = {span.name for span in every if span.kind == "node"}
        told = [span for span in every if span.kind in _CALLS]
        self.has_content = not told or any(span.has_content and span.input != {} for span in told)
        self._asked = [span for span in _of(every, "model") if isinstance(span.input, list)]
        self._keys = _keys(every)
        self._paused: set[tuple[str, str]] = set()
        self.inputs = [self._input(turn) for turn in turns]
        if not any(self.inputs):
            self.inputs = [self._question(turn) for turn in turns]

    @property
    def name(self) -> str:
        """A name for the conversation: what began, and the first input."""
        first = self.inputs[0]
        text = first if isinstance(first, str) else ""
        named = self.turns[0].name if self.turns[0].name not in _GENERIC else ""
        name = (
            ": ".join(filter(None, (named, " ".join(text.split())))) or self.turns[0].name or "conversation"
        )
        return clip(name, _LONGEST_NAME)

    def trace(self, source: str, name: str) -> RunTrace:
        """Return the trace with all events."""
        events: list[Event] = []
        for number, turn in enumerate(self.turns, start=1):
            for event in self._turn(turn, number, events):
                events.append(event)
        calls: dict[int, int] = {}
        at = 0.0
        for event in events:
            event["at"] = at = round(max(at, event["at"]), 6)
            if "call" in event:
                event["call"] = calls.setdefault(event["call"], len(calls) + 1)
        head = {
            **{
                "event": "trace",
                "format": source,
                "scenario": name,
                "id": name,
                "manifest": None,
                "dialect": None,
            },
            **{"agent": None, "variant": None, "repeat": 0, "seed": 0, "status": events[-1]["status"]},
            **{"verdict": None, "digest": None, "kinds": {}},
        }
        return RunTrace(head, events, missing=missing(self.spans, events, self.has_content))

    def _input(self, turn: Span) -> Any:
        """Return what a turn began with: its input, or that of what it contains."""
        span: Span | None = turn
        while span is not None:
            if span.input is not ABSENT and span.kind != "model" and (self.has_content or span.input != {}):
                return self._told(span.input)
            inner = [child for child in span.children if child.kind in ("agent", "step")]
            span = inner[0] if len(inner) == 1 == len(span.children) else None
        return ABSENT

    def _question(self, turn: Span) -> Any:
        """Return the question of the first request of a turn."""
        asked = [span for span in (turn, *turn.below()) if span in self._asked]
        questions = [each for each in asked[0].input if each["type"] == "human"] if asked else []
        return last_text(questions) if questions else ABSENT

    def _told(self, value: Any) -> Any:
        """Return an input: text for the one message of a state that has nothing else."""
        if is_command(value):
            return value
        if (
            isinstance(value, Mapping)
            and set(value) == {"args", "kwargs"}
            and isinstance(value["args"], list)
        ):
            questions = (
                {each["content"] for each in self._asked[0].input if each["type"] == "human"}
                if self._asked
                else set()
            )
            texts = [each for each in value["args"] if isinstance(each, str) and each in questions]
            value = texts[0] if texts else value
        if isinstance(value, str) and value in self._keys:
            return {self._keys[value]: value}
        value = state(value)
        if isinstance(value, dict) and isinstance(said := value.get("messages"), list) and said:
            rest = [
                each for key, each in value.items() if key != "messages" and each not in ("", None, [], {})
            ]
            if not rest and len(said) == 1 and isinstance(said[0], dict) and said[0].get("type") == "human":
                return said[0]["content"]
        return value

    def _turn(self, turn: Span, number: int, before: list[Event]) -> Iterator[Event]:
        at, value = self._at(turn.start), self.inputs[number - 1]
        # A turn without an input among others with one was resumed: some exporters do not write what with.
        if is_command(value) or (value is ABSENT and number > 1 and any(self.inputs)):
            if before[-1]["status"] == "completed":
                before[-1] |= {"status": "interrupted", "output": None}
            given = value["resume"] if is_command(value) else ABSENT
            yield _valued({"event": "resume", "at": at, "graph": ""}, given, "the answer to the pause")
        else:
            self._paused.clear()
            yield _valued({"event": "input", "at": at, "graph": ""}, value, "the input")
        inside = [turn] if turn.kind in (*_CALLS, "node") else turn.children
        events = self._inside(inside, "", "" if turn.kind == "model" else turn.name, number)
        for event in events:
            if event["event"] == "node_resume" and before[-1]["event"] == "node_pause":  # both in one span
                yield self._ended(event["at"]) | {"status": "interrupted"}
                yield _valued(
                    {"event": "resume", "at": event["at"], "graph": ""}, ABSENT, "the answer to the pause"
                )
            yield event
        yield self._end(turn, events)

    def _end(self, turn: Span, events: Sequence[Event]) -> Event:
        end = self._ended(self._at(turn.end))
        output = self._output(turn)
        asked = isinstance(output, Mapping) and "__interrupt__" in output
        if asked or self._paused or (turn.failure and turn.failure.is_pause):
            return end | {"status": "interrupted"}
        if turn.failure:
            failed = [each["graph"] + each["node"] for each in events if each["event"] == "node_error"]
            return end | {
                "status": "failed",
                "error": self._error(turn.failure),
                "node": failed[0] if failed else None,
            }
        return (
            end
            | {"output": None if output is ABSENT else output}
            | ({"gap": "the output"} if output is ABSENT else {})
        )

    def _ended(self, at: float) -> Event:
        end: Event = {"event": "end", "at": at, "graph": "", "status": "completed"}
        return end | {"output": None, "error": None, "node": None}

    def _output(self, turn: Span) -> Any:
        """Return the output of a turn; without one, that of what it contains, or else the last reply."""
        span: Span | None = turn if turn.kind != "model" else None
        while span is not None:
            if span.output is not ABSENT:
                output = state(span.output)
                if isinstance(output, dict) and isinstance(said := output.get("messages"), list) and said:
                    return last_text(said) if isinstance(said[-1], dict) else said[-1]
                return output["text"] if isinstance(output, dict) and set(output) == {"text"} else output
            inner = [child for child in span.children if child.kind in ("agent", "step")]
            span = inner[0] if len(inner) == 1 == len(span.children) else None
        replies = [each for each in (turn, *turn.below()) if each.kind == "model"]
        last = replies[-1].output if replies and not self._has_graph else ABSENT
        return last["text"] if last and not last.get("tool_calls") else ABSENT

    def _inside(self, spans: Sequence[Span], graph: str, node: str, turn: int) -> list[Event]:
        """Return the events of spans side by side, in order: of supersteps, then of time."""
        steps = all(span.step is not None for span in spans if span.kind == "node")
        ordered = (
            sorted(spans, key=lambda span: span.step or 0) if steps and _of(spans, "node") else list(spans)
        )
        events: list[Event] = []
        for _, together in groupby(
            ordered, key=lambda span: span.step if steps and span.kind == "node" else None
        ):
            each = [self._events(span, graph, node, turn) for span in together]
            events += merge(*each, key=itemgetter("at"))
        at = 0.0
        for event in events:
            event["at"] = at = max(at, event["at"])
        return events

    def _events(self, span: Span, graph: str, node: str, turn: int) -> list[Event]:
        match span.kind:
            case "node":
                return self._node(span, graph, turn)
            case "route":
                above, _, name = str(span.input or node).rpartition("/")
                route = {"graph": above and f"{above}/", "source": name, "target": span.output}
                return [{"event": "route", "at": self._at(span.start), **route, "condition": "hand-off"}]
            case "model" | "tool" | "handler" | "retrieval":
                call = self._call(span, node)
                return [call, *self._inside(span.children, graph, node, turn), self._answer(span)]
        return self._inside(
            span.children, graph, span.name if span.kind == "agent" and not graph else node, turn
        )

    def _node(self, span: Span, graph: str, turn: int) -> list[Event]:
        path = f"{graph}{span.name}"
        start = {"graph": graph, "node": span.name}
        at, end, latency = self._at(span.start), self._at(span.end), round(span.end - span.start, 6)
        again = (graph, span.name) in self._paused
        self._paused.discard((graph, span.name))
        step = span.step if span.step is not None else turn
        kind = "node_resume" if again else "node_start"
        events = [{"event": kind, "at": at, **start, "step": step, "invocation": turn}]
        events += self._inside(span.children, f"{path}/", path, turn)
        if span.failure and span.failure.is_pause:
            self._paused.add((graph, span.name))
            values = span.failure.values if self.has_content else None
            pause = {"event": "node_pause", "at": end, **start, "latency": latency, "values": values or []}
            return [*events, pause | ({} if values else {"gap": "what the pause asks"})]
        if span.failure:
            return [
                *events,
                {"event": "node_error", "at": end, **start, **self._error(span.failure), "latency": latency},
            ]
        update, goto = update_of(span.output) if span.output is not ABSENT else ({}, [])
        if isinstance(update, str) and update in self._keys:
            update = {self._keys[update]: update}
        gap = {} if self.has_content or span.output is not ABSENT else {"gap": "the update"}
        events.append({"event": "node_end", "at": end, **start, "update": update, "latency": latency} | gap)
        routes = [*((target, "Command") for target in goto), *span.routes]
        for target, condition in routes:
            if target in self.nodes or target == _END:
                edge = {"source": span.name, "target": target, "condition": condition}
                events.append({"event": "route", "at": end, "graph": graph, **edge})
        return events

    def _call(self, span: Span, node: str) -> Event:
        event: Event = {
            "event": "call",
            "at": self._at(span.start),
            "call": id(span),
            "kind": _CALLS[span.kind],
        }
        event |= {"name": span.name, "node": node}
        given = ABSENT if span.input == {} and not self.has_content else span.input
        request: dict[str, Any] = {}
        if given is not ABSENT:
            key = "messages" if span.kind == "model" else "args"
            request[key] = given if span.kind == "model" or isinstance(given, Mapping) else {"input": given}
            request[key] = state(request[key])
        if span.tools:
            request["tools"] = sorted(span.tools)
        what = "the prompt" if span.kind == "model" else "the arguments"
        return event | {"request": request} | ({"gap": what} if given is ABSENT else {})

    def _answer(self, span: Span) -> Event:
        latency = round(max(0.0, span.end - span.start), 6)
        event: Event = {
            "event": "answer",
            "at": self._at(span.end),
            "call": id(span),
            "ok": True,
            "latency": latency,
        }
        if span.failure and not span.failure.is_pause:
            return event | {"ok": False, "error": self._error(span.failure)}
        if span.kind != "model":
            return _valued(event, state(span.output), "the result")
        if span.output is ABSENT:
            return _valued(event, ABSENT, "the reply") | {"usage": span.usage}
        return event | {
            "value": span.output | ({"usage": span.usage} if span.usage else {}),
            "usage": span.usage,
        }

    def _error(self, failure: Failure) -> dict[str, str]:
        """Return a failure as data. Its message may hold prompts that were not to be exported."""
        return {"type": failure.type, "message": failure.message if self.has_content else ""}

    def _at(self, time: float) -> float:
        return max(0.0, time - self._base)


def _of(spans: Sequence[Span], kind: str) -> list[Span]:
    return [span for span in spans if span.kind == kind]


def _asked_for(model: Span, made: Span) -> bool:
    """True if a call of a tool was made from the reply of this model."""
    return model.kind == "model" and made.parent == model.id and made.trace == model.trace


def _valued(event: Event, value: Any, what: str) -> Event:
    return event | ({"gap": what} if isinstance(value, Absent) else {"value": value})


def _keys(spans: Sequence[Span]) -> dict[str, str]:
    """Return the keys of texts in states: OpenInference writes a mapping with one text as the bare text."""
    if not any("openinference" in span.source and span.kind == "node" for span in spans):
        return {}
    states = [
        value
        for span in spans
        if span.kind in ("node", "step", "agent")
        for value in (span.input, span.output)
    ]
    return {
        value: str(key)
        for each in states
        if isinstance(each, Mapping)
        for key, value in each.items()
        if isinstance(value, str) and value
    }


def _find_nodes(turn: Span, has_graph: bool) -> None:
    """Mark the spans that are nodes. Those inside of a node that belong to its task are not, and tell its routes."""
    waiting: list[tuple[Span, Span | None]] = [(child, None) for child in reversed(turn.children)]
    while waiting:
        span, above = waiting.pop()
        if span.kind in ("step", "agent"):
            if has_graph and span.node == span.name and span.name[:2] != "__" and not _is_inside(span, above):
                span.kind = "node"
            elif (
                not has_graph
                and span.kind == "agent"
                and span.name not in (turn.name, above.name if above else "")
            ):
                span.kind = "node"
            elif (
                above is not None
                and _is_inside(span, above)
                and not span.children
                and isinstance(span.output, str)
            ):
                above.routes = [(span.output, span.name)]
        inside = span if span.kind == "node" else above
        waiting += [(child, inside) for child in reversed(span.children)]


def _is_inside(span: Span, above: Span | None) -> bool:
    if above is None:
        return False
    return span.place == above.place if span.place else (span.node, span.step) == (above.node, above.step)
