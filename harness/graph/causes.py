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
    for event in events:
        kind = event["event"]
        if kind not in ("node_start", "node_error", "because", "route"):
            continue
        node = event["graph"] + event.get("node", event.get("source"))
        if kind == "node_start":
            left.pop(node, None)
        elif kind == "node_error":
            left[node] = "fallback", told_error(event["type"], event["message"])
        elif kind == "because" and event["then"] in _LEFT:
            left[node] = event["then"], event["message"]
        elif kind == "because":
            yield f"{node} {_DID[event['then']]} {event['message']}"
        elif node in left:
            then, message = left[node]
            if then == "branch" or event["condition"] == ON_ERROR:
                target = event["graph"] + end_name(event["target"])
                yield f"{node} → {target} {_LEFT[then].format(node=node)} {message}"
