"""Describe an event of a trace in one line, to compare it with that of another run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.graph.narration import route_text
from harness.graph.trace import Event
from harness.report.encoding import encode
from harness.source.display import clip

_MAX_LENGTH: Final = 200
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
    given = f" with {clip(encode(args), _MAX_LENGTH)}" if args is not None else ""
    return f"{event['node']} calls {event['kind']} {event['name']}{given}"


def _answer(event: Event) -> str:
    value = event.get("value", event.get("error"))
    text = value.get("text") if isinstance(value, Mapping) and event.get("ok") else None
    shown = clip(text if isinstance(text, str) and text else encode(value), _MAX_LENGTH)
    word = "refused" if event.get("refused") else "answered" if event.get("ok") else "failed"
    return f"{word}: {shown}"


def _end(event: Event) -> str:
    error = f": {encode(event['error'])}" if event.get("error") else ""
    return f"the run ends: {event.get('status')}{clip(error, _MAX_LENGTH)}"


def _plain(event: Event) -> str:
    rest = {
        key: value
        for key, value in content(event).items()
        if key not in ("event", "graph") and value is not None
    }
    return f"{event['event'].replace('_', ' ')} {clip(encode(rest), _MAX_LENGTH)}"


_SENTENCES: Final[dict[str, Callable[[Event], str]]] = {
    "route": route_text,
    "call": _call,
    "answer": _answer,
    "end": _end,
    "node_start": lambda event: f"{event['graph']}{event['node']} starts",
    "node_end": lambda event: f"{event['graph']}{event['node']} ends",
}
