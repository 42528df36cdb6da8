"""Progress of the run in this process, to report where a run was when it was aborted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.graph.trace import Event, Trace

_SHOWN: Final = 3


class Progress:
    """The current position of a run. `listener` is called with a text when a node, a call or a check begins."""

    def __init__(self) -> None:
        self.listener: Callable[[str], None] | None = None
        self._trace: Trace | None = None
        self._check = ""

    def begin(self) -> None:
        """Start a run. Its manifest is loaded first."""
        self._trace, self._check = None, ""
        if self.listener is not None:
            self.listener("")

    def watch(self, trace: Trace) -> None:
        """Follow the run in this trace."""
        self._trace = trace
        if self.listener is not None:
            trace.listener = self._tell

    def check(self, name: str) -> None:
        """Note that a check begins."""
        self._check = f"check '{name}'"
        if self.listener is not None:
            self.listener(self._check)

    @property
    def trace(self) -> Trace | None:
        """The trace of the run, complete or so far; None if no graph has run."""
        return self._trace

    def doing(self) -> tuple[str, str | None]:
        """Return a text that describes the current activity, and the node it is in, if any."""
        if self._check:
            return self._check, None
        if self._trace is None:
            return "loading the manifest", None
        calls: dict[int, Event] = {}
        visits: dict[tuple[str, str], Event] = {}
        for event in self._trace.events:
            kind = event["event"]
            if kind == "call":
                calls[event["call"]] = event
            elif kind == "answer":
                calls.pop(event["call"], None)
            elif kind in ("node_start", "node_resume"):
                visits[event["graph"], event["node"]] = event
            elif kind in ("node_end", "node_error", "node_pause"):
                visits.pop((event["graph"], event["node"]), None)
        under_way = [*calls.values()] or [*visits.values()]
        texts = [_text(event) for event in under_way[:_SHOWN]]
        return ", ".join(texts), (under_way[0]["node"] if under_way else None)

    def _tell(self, event: Event) -> None:
        if self.listener is not None and event["event"] in ("call", "node_start", "node_resume"):
            self.listener(_text(event))


def _text(event: Event) -> str:
    if event["event"] == "call":
        return f"{event['kind']} '{event['name']}' of node '{event['node']}'"
    return f"node '{event['graph']}{event['node']}'"


progress: Final = Progress()
"""The progress of this process, in which scenarios run one after another."""
