"""Find the first event where the traces of two runs differ.

Events are compared in order, ignoring their times. Only if nothing else differs, the first difference of times is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from harness.graph.model import END, START
from harness.graph.narration import end_name, role_of, route_text
from harness.graph.trace import Event
from harness.report.compare.text_diff import diff_lines, steps
from harness.report.encoding import encode
from harness.report.formatting import cut, seconds
from harness.source.display import clip

_MAX_EVENT: Final = 200
_OF_NO_INTEREST: Final = frozenset({"at", "latency", "step", "invocation", "cut", "call"})
"""Fields that do not count as content: times, and numbers that only count."""


def content(event: Event) -> dict[str, Any]:
    """Return the event without its times and counters."""
    return {key: value for key, value in event.items() if key not in _OF_NO_INTEREST}


def sentence(event: Event) -> str:
    """Describe the event in one line."""
    return _SENTENCES.get(event["event"], _plain)(event)


def _call(event: Event) -> str:
    args = event["request"].get("args")
    given = f" with {clip(encode(args), _MAX_EVENT)}" if args is not None else ""
    return f"{event['node']} calls {event['kind']} {event['name']}{given}"


def _answer(event: Event) -> str:
    value = event.get("value", event.get("error"))
    text = value.get("text") if isinstance(value, Mapping) and event.get("ok") else None
    shown = clip(text if isinstance(text, str) and text else encode(value), _MAX_EVENT)
    word = "refused" if event.get("refused") else "answered" if event.get("ok") else "failed"
    return f"{word}: {shown}"


def _end(event: Event) -> str:
    error = f": {encode(event['error'])}" if event.get("error") else ""
    return f"the run ends: {event.get('status')}{clip(error, _MAX_EVENT)}"


def _plain(event: Event) -> str:
    rest = {
        key: value
        for key, value in content(event).items()
        if key not in ("event", "graph") and value is not None
    }
    return f"{event['event'].replace('_', ' ')} {clip(encode(rest), _MAX_EVENT)}"


_SENTENCES: Final[dict[str, Callable[[Event], str]]] = {
    "route": route_text,
    "call": _call,
    "answer": _answer,
    "end": _end,
    "node_start": lambda event: f"{event['graph']}{event['node']} starts",
    "node_end": lambda event: f"{event['graph']}{event['node']} ends",
}


class Absent:
    """The type of `ABSENT`, which stands for a missing value."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = Absent()
_MAX_DEPTH: Final = 50


class ValueChange(NamedTuple):
    """A place where two values differ, such as `city` or `items.2`; "" is the value as a whole."""

    path: str
    before: Any
    after: Any


def value_changes(before: Any, after: Any, path: str = "", depth: int = 0) -> Iterator[ValueChange]:
    """Yield the innermost places that differ, in order.

    >>> [*value_changes({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3], "c": 4})]
    [ValueChange(path='b.1', before=2, after=3), ValueChange(path='c', before=nothing, after=4)]
    """
    if same(before, after):
        return
    if depth < _MAX_DEPTH and isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        pairs = [(str(key), before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys]
    elif depth < _MAX_DEPTH and isinstance(before, list) and isinstance(after, list):
        size = max(len(before), len(after))
        pairs = [(str(at), _item(before, at), _item(after, at)) for at in range(size)]
    else:
        yield ValueChange(path, before, after)
        return
    for key, one, other in pairs:
        yield from value_changes(one, other, f"{path}.{key}" if path else key, depth + 1)


def same(one: Any, other: Any) -> bool:
    """True if two values are equal and of the same kind: 1 is not True, but 1.0 is 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _item(values: list[Any], at: int) -> Any:
    return values[at] if at < len(values) else ABSENT


_MAX_LENGTH: Final = 400
_MAX_VALUE: Final = 10_000


class Part(NamedTuple):
    """A place where two events differ, with both values (`ABSENT` for a missing one).

    Texts are compared by words, unless they are sentences written by this package (`is_whole`).
    """

    place: str
    before: Any
    after: Any
    is_whole: bool = False

    @property
    def lines(self) -> list[str]:
        """The difference as lines of a diff (`harness.report.compare.text_diff`)."""
        if isinstance(self.before, str) and isinstance(self.after, str) and not self.is_whole:
            return diff_lines(self.before, self.after)
        found = [f"- {_shown(self.before)}"] if self.before is not ABSENT else []
        return found + ([f"+ {_shown(self.after)}"] if self.after is not ABSENT else [])


@dataclass(frozen=True)
class Difference:
    """The first event where two traces differ.

    kind     input, route, prompt, request, reply, call, result, state, pause, warning, error, end, order or time
    what     a short description of what differs
    node     the path of the node in which it happened, or which the route leaves; "" for none
    before   the time of the event in the earlier run, in virtual seconds; None if that run had ended
    after    the same in the later run
    parts    the places that differ
    more     the number of further places
    edge     for a route, both of its ends; None otherwise
    slower   a description of an earlier difference in time; "" for none
    """

    kind: str
    what: str
    node: str
    before: float | None
    after: float | None
    parts: Sequence[Part]
    more: int = 0
    edge: tuple[str, str] | None = None
    slower: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the difference as JSON data."""
        return {
            "kind": self.kind,
            "what": self.what,
            "node": self.node or None,
            "at": {"before": self.before, "after": self.after},
            "parts": [
                {
                    "place": part.place,
                    **{
                        side: None if value is ABSENT else _bounded(value)
                        for side, value in (("before", part.before), ("after", part.after))
                    },
                    "diff": part.lines,
                }
                for part in self.parts
            ],
            "more": self.more,
            "times": self.slower or None,
        }


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else encode(value)
    return clip(" ".join(text.split("\n")), _MAX_LENGTH)


def _bounded(value: Any) -> Any:
    """Return a value for JSON: a large one becomes the beginning of its text."""
    text = value if isinstance(value, str) else encode(value)
    return value if len(text) <= _MAX_VALUE else cut(text, _MAX_VALUE)


_MAX_PARTS: Final = 8


def first_difference(before: Sequence[Event], after: Sequence[Event]) -> Difference | None:
    """Return the first difference; None if the traces are equal."""
    names = _Calls(), _Calls()
    slower = ""
    for one, other in zip(before, after, strict=False):
        for known, event in zip(names, (one, other), strict=True):
            known.add(event)
        if content(one) != content(other):
            return _difference(one, other, names, slower)
        if not slower and _times(one) != _times(other):
            timed, slower = (one, other), _time_difference(one, other, names[1])
    if len(before) != len(after):
        longer = before if len(before) > len(after) else after
        event = longer[min(len(before), len(after))]
        return _early_end(event, is_before=longer is before, slower=slower)
    if slower:
        return Difference("time", slower, _node(timed[1], names[1]), timed[0]["at"], timed[1]["at"], ())
    return None


@dataclass
class _Calls:
    """The calls of a trace by number. An answer has only the number of its call."""

    known: dict[int, Event] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        if event["event"] == "call":
            self.known[event["call"]] = event

    def of(self, event: Event) -> Mapping[str, Any]:
        return self.known.get(event.get("call", 0), {})


def _times(event: Event) -> tuple[Any, Any]:
    return event["at"], event.get("latency")


def _node(event: Event, calls: _Calls) -> str:
    if event["event"] in ("call", "answer"):
        return str(event.get("node") or calls.of(event).get("node") or "")
    return str(event.get("graph") or "") + str(event.get("node") or _name(event.get("source", "")) or "")


def _name(node: str) -> str:
    return "" if node in (START, END) else node


def _difference(one: Event, other: Event, calls: tuple[_Calls, _Calls], slower: str) -> Difference:
    """Describe the difference between two events at the same position."""
    node = _node(other, calls[1])
    kind, what, found = "order", "what happens", [_sentences(one, other)]
    edge = None
    if one["event"] == other["event"]:
        event = one["event"]
        if event == "call":
            kind, what, found = _compare_calls(one, other)
        elif event == "answer":
            kind, what, found = _compare_answers(one, other, calls[1].of(other))
        elif event == "route" and one["source"] == other["source"]:
            kind, what = "route", f"the route after {end_name(other['source'])}"
            edge = (other["source"], other["target"])
        elif event in _SIMPLE:
            kind, what = _SIMPLE[event]
            found = [*map(_part, value_changes(content(one), content(other)))]
            what = what.format(node=node)
    shown, more = found[:_MAX_PARTS], max(0, len(found) - _MAX_PARTS)
    return Difference(kind, what, node, one["at"], other["at"], shown, more, edge, slower)


_SIMPLE: Final = {
    "input": ("input", "the input"),
    "resume": ("input", "the answer to a pause"),
    "node_end": ("state", "what {node} changes of the state"),
    "node_pause": ("pause", "what {node} pauses with"),
    "node_error": ("error", "how {node} fails"),
    "because": ("error", "why {node} ran again, or went another way"),
    "join_timeout": ("error", "what {node} waited for"),
    "warning": ("warning", "a warning"),
    "end": ("end", "how the run ends"),
    "pause": ("pause", "where the run pauses"),
}
_UPDATE: Final = "update"


def _compare_calls(one: Event, other: Event) -> tuple[str, str, list[Part]]:
    node = other["node"]
    if (one["kind"], one["name"]) != (other["kind"], other["name"]):
        if one["kind"] == other["kind"] == "llm" and one["node"] == node:
            return "request", f"the model that {node} asks", [Part("model", one["name"], other["name"])]
        return "call", f"the call of {node}", [_sentences(one, other)]
    if one["node"] != node:
        return "order", "what happens", [_sentences(one, other)]
    requests = [dict(event["request"]) for event in (one, other)]
    lists = [request.pop("messages", None) for request in requests]
    rest = [*map(_part, value_changes(requests[0], requests[1]))]
    if other["kind"] != "llm":
        return (
            "call",
            f"what {node} calls {other['name']} with",
            [part._replace(place=part.place.removeprefix("args.")) for part in rest],
        )
    if lists[0] != lists[1]:
        return "prompt", f"the prompt of {node}", [*_messages(lists[0] or [], lists[1] or []), *rest]
    return "request", f"the request of {node} to the model", rest


def _messages(before: Sequence[Any], after: Sequence[Any]) -> list[Part]:
    """Return the messages that differ, by role, with the places in each."""
    found: list[Part] = []
    one, other = ([encode(message) for message in messages] for messages in (before, after))
    for kind, start, end, at, to in steps(one, other):
        if kind == "equal":
            continue
        paired = min(end - start, to - at)
        for old, new in zip(before[start : start + paired], after[at : at + paired], strict=True):
            if role_of(old) == role_of(new):
                for place, *values in value_changes(old, new):
                    found.append(Part(role_of(new) + (f".{place}" if place != "content" else ""), *values))
            else:
                found += [_removed(old), _added(new)]
        found += [*map(_removed, before[start + paired : end]), *map(_added, after[at + paired : to])]
    return found


def _removed(message: Any) -> Part:
    return Part(role_of(message), _content_of(message), ABSENT)


def _added(message: Any) -> Part:
    return Part(role_of(message), ABSENT, _content_of(message))


def _content_of(message: Any) -> Any:
    return message.get("content", message) if isinstance(message, Mapping) else message


def _compare_answers(one: Event, other: Event, call: Mapping[str, Any]) -> tuple[str, str, list[Part]]:
    of_model = call.get("kind") == "llm"
    name = call.get("node", "") if of_model else f"{call.get('name', '')} in {call.get('node', '')}"
    kind, what = ("reply", f"the reply to {name}") if of_model else ("result", f"the result of {name}")
    if one["ok"] != other["ok"]:
        return kind, what, [_sentences(one, other)]
    value = [event.get("value", event.get("error")) for event in (one, other)]
    found = [
        Part("" if place.path == "text" else place.path, place.before, place.after)
        for place in value_changes(value[0], value[1])
    ]
    others = [{key: event.get(key) for key in ("usage", "refused")} for event in (one, other)]
    return kind, what, [*found, *map(_part, value_changes(others[0], others[1]))]


def _part(place: ValueChange) -> Part:
    return Part(place.path.removeprefix(f"{_UPDATE}."), place.before, place.after)


def _early_end(event: Event, *, is_before: bool, slower: str) -> Difference:
    said = sentence(event)
    part = Part("", said if is_before else ABSENT, ABSENT if is_before else said)
    what = f"the {'later' if is_before else 'earlier'} run has ended"
    before, after = (event["at"], None) if is_before else (None, event["at"])
    return Difference("end", what, _node(event, _Calls()), before, after, (part,), slower=slower)


def _time_difference(one: Event, other: Event, calls: _Calls) -> str:
    """Describe a difference of times."""
    took = one.get("latency"), other.get("latency")
    node = _node(other, calls)
    if took[0] != took[1]:
        call = calls.of(other)
        name = f"the {call['kind']} call of {node}" if other["event"] == "answer" and call else node
        return f"{name} took {seconds(took[1])}, and {seconds(took[0])} before"
    return f"{sentence(other)} at {seconds(other['at'])}, and at {seconds(one['at'])} before"


def _sentences(one: Event, other: Event) -> Part:
    before, after = sentence(one), sentence(other)
    if before == after:
        before, after = (
            f"{text} {encode(content(event))}" for text, event in ((before, one), (after, other))
        )
    return Part("", before, after, is_whole=True)
