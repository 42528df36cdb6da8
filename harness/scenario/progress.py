"""What the run of this process is doing, for an error that has to say where it was stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.graph.trace import Event, Trace

_SHOWN: Final = 3


class Progress:
    """Where the current run is. `listener` gets each node, call and check when it begins."""

    def __init__(self) -> None:
        self.listener: Callable[[str], None] | None = None
        self._trace: Trace | None = None
        self._check = ""

    def begin(self) -> None:
        """A run begins: its manifest is loaded first."""
        self._trace, self._check = None, ""
        if self.listener is not None:
            self.listener("")

    def watch(self, trace: Trace) -> None:
        """The run goes on in this trace."""
        self._trace = trace
        if self.listener is not None:
            trace.listener = self._tell

    def check(self, name: str) -> None:
        """A check begins."""
        self._check = f"check '{name}'"
        if self.listener is not None:
            self.listener(self._check)

    @property
    def trace(self) -> Trace | None:
        """The trace of the run, whole or as far as it got; None where no graph was run."""
        return self._trace

    def doing(self) -> tuple[str, str | None]:
        """What is under way, as text, and the node it is in."""
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
"""That of this process: scenarios run one after another."""
