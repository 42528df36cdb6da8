"""Why a run went the way it did where something went wrong, in words, made from its trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from harness.graph.model import ON_ERROR
from harness.graph.narration import end_name
from harness.graph.to_json import told_error
from harness.graph.trace import Event

_DID: Final = {
    "retry": "ran again because it failed:",
    "default": "used a default because",
    "skip": "went on without an update because",
}
_LEFT: Final = {"fallback": "because {node} failed:", "branch": "because"}


def causes(events: Sequence[Event]) -> list[str]:
    """Return why nodes ran again, left by their fallback or for a default, in order. `× 2` stands for two in a row.

    Nodes of nested graphs have their path.
    """
    told = [(text, len(list(alike))) for text, alike in groupby(_causes(events))]
    return [f"{text}  × {times}" if times > 1 else text for text, times in told]


def _causes(events: Sequence[Event]) -> Iterator[str]:
    left: dict[str, tuple[str, str]] = {}
    passed_over: dict[str, str] = {}  # the failures of nodes of the outermost graph that nothing has told yet
    for event in events:
        kind, graph = event["event"], event.get("graph", "")
        node = f"{graph}{event.get('node') or event.get('source')}"
        if kind == "node_start":
            left.pop(node, None)
            passed_over.pop(node, None)
        elif kind == "node_error":
            left[node] = "fallback", told_error(event["type"], event["message"])
            if not graph:
                passed_over[node] = left[node][1]
        elif kind == "because" and event["then"] in _LEFT:
            left[node] = event["then"], event["message"]
        elif kind == "because":
            yield f"{node} {_DID[event['then']]} {event['message']}"
        elif kind == "route" and node in left:
            then, message = left[node]
            if then == "branch" or event["condition"] == ON_ERROR:
                passed_over.pop(node, None)
                target = graph + end_name(event["target"])
                yield f"{node} → {target} {_LEFT[then].format(node=node)} {message}"
        elif kind == "warning":
            passed_over = {node: why for node, why in passed_over.items() if why not in event["text"]}
        elif kind == "end" and not graph and event["status"] == "completed":
            yield from (f"the run went on after {node} failed: {why}" for node, why in passed_over.items())
            passed_over = {}
