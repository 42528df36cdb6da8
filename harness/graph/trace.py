"""The trace: all events of a run, in order, as plain data.

Events are mappings with `event` and `at` (virtual seconds since the run began):

    node_start   node, step, invocation       node_resume  node, step, invocation
    node_pause   node, values, latency        node_end     node, update, latency
    node_error   node, type, message          route        source, target, condition
    pause        when, nodes                  reroute      instead_of
    join_timeout node, type, message
    because      node, then, message
    call         call, kind, name, node, …    answer       call, ok, latency, value | error, refused
    input        value                        resume       value
    end          status, output, error, node  warning      text

Node, route and pause events also have `graph`: "" for the outermost graph, the path of nodes that leads to it
(`outer/`) for a nested one. The `node` of a call is a full path. The `update` of a node_pause is the partial update
that the state shows until the node is resumed. A pause is a static breakpoint before or after `nodes`. A reroute
records that an update of the state replaces the last `instead_of` routes. `because` says why a node did not simply
go on (`Then`); it explains the events around it, so the digest leaves it out. Nodes with the same `step` and
`invocation` ran in one superstep; the event scheduler has no supersteps, and numbers each start. `call` numbers the
effects; `refused` is true for an effect that was requested and never performed. The request of a model call keeps its
messages by reference; they are converted when the trace is rendered.

An event that was read from an export of another tool (`harness.traces`) may have `gap`, the name of a value that the
export lacks, such as "the reply"; the key of that value is then missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.errors import Span
from harness.graph.effects import Effect, LLMCall, LLMReply, ToolSpec
from harness.graph.snapshots import Hashes, Snapshots
from harness.graph.to_json import error_text, to_json

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Event = dict[str, Any]
Then = Literal["retry", "fallback", "branch", "default", "skip"]
"""The deeds of a node `because` of something: it ran again, left by its fallback or by the branch for other values,
used a default, or went on without an update."""
BECAUSE: Final = "because"
Rewritten = Callable[[Any], Any]
"""Replaces texts in JSON data (secrets)."""

_REFERENCE: Final = 5
"""The size of a message in a request: that of its hash, as messages are recorded by reference and hashed once."""


class Trace:
    """The events of a run, in order, and their digest."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.snapshots = Snapshots()
        self.tools: dict[str, ToolSpec] = {}
        """The tools that models were offered, by name. Events contain only the names."""
        self.spans: dict[int, Span] = {}
        """The locations of warnings, by `id` of the event. Events must not depend on the folder."""
        self.listener: Callable[[Event], None] | None = None
        self._numbers = count(1)
        self._plain_messages: dict[int, tuple[BaseMessage, Any]] = {}
        self._fingerprints: dict[int, tuple[BaseMessage, str]] = {}

    def snapshot(self, value: Any) -> Any:
        """Return the value as JSON data to record. Do not change it: it may share long lists with earlier events."""
        return self.snapshots.of(value)

    def record(self, event: str, at: float, **data: Any) -> None:
        """Add an event. The data must be JSON data already."""
        self._add({"event": event, "at": at, **data})

    def _add(self, event: Event) -> None:
        self.events.append(event)
        if self.listener is not None:
            self.listener(event)

    def warn(self, text: str, at: float, span: Span | None = None) -> None:
        """Add a warning, and keep its location in `spans`."""
        event = {"event": "warning", "at": at, "text": text}
        if span is not None:
            self.spans[id(event)] = span
        self._add(event)

    def record_call(self, effect: Effect, at: float) -> int:
        """Record that an effect is performed, and return its number."""
        number = next(self._numbers)  # atomic, as real tools perform effects from threads
        request = effect.recorded()
        if "args" in request:
            request["args"] = self.snapshot(request["args"])
        if isinstance(effect, LLMCall):
            request["messages"] = tuple(request["messages"])
            self.snapshots.count(len(request["messages"]) * _REFERENCE)
            self.tools.update({tool.name: tool for tool in effect.tools})
        self.record(
            "call",
            at,
            call=number,
            kind=effect.kind,
            name=effect.name,
            node=effect.node,
            request=request,
        )
        return number

    def record_answer(
        self, call: int, at: float, latency_s: float, value: Any, error: BaseException | None
    ) -> None:
        """Record the answer to an effect."""
        if error is not None:
            self.record("answer", at, call=call, ok=False, latency=latency_s, error=_failure(error))
            return
        plain = value.as_mapping() if hasattr(value, "as_mapping") else value
        data: dict[str, Any] = {"value": self.snapshot(plain)}
        if isinstance(value, LLMReply):
            data["usage"] = dict(value.usage)
        # An MCP tool reports its own failure in its answer.
        ok = not getattr(value, "is_error", False)
        self.record("answer", at, call=call, ok=ok, latency=latency_s, **data)

    def record_refusal(self, effect: Effect, at: float, why: Exception) -> None:
        """Record an effect that was requested and never performed, with the error."""
        call = self.record_call(effect, at)
        self.record("answer", at, call=call, ok=False, latency=0.0, error=_failure(why), refused=True)

    def rendered(self) -> Iterator[Event]:
        """Yield the events as pure JSON data."""
        return (to_json(event) for event in self.events)

    def plain_message(self, message: BaseMessage) -> Any:
        """Return a message of this trace as JSON data. Cached: the result must not be changed."""
        found = self._plain_messages.get(id(message))
        if found is None:
            found = self._plain_messages[id(message)] = (message, to_json(message))
        return found[1]

    def digest(self, rewritten: Rewritten | None = None) -> str:
        """Return the SHA-256 of the canonical trace without its `because` events, as hexadecimal digits.

        `rewritten` is applied to the JSON data of events and messages first. Long lists and texts are hashed
        separately, each once.
        """
        events = [self._fingerprinted(event, rewritten) for event in self.events if event["event"] != BECAUSE]
        if rewritten is not None:
            events = [rewritten(to_json(_whole(event))) for event in events]
        if self.snapshots.has_long:
            hashes = Hashes(_canonical)
            events = [hashes.shortened(event) for event in events]
        return hashlib.sha256(_canonical(events).encode("utf-8", "surrogatepass")).hexdigest()

    def _fingerprinted(self, event: Event, rewritten: Rewritten | None) -> Event:
        """Return the event with its messages replaced by hashes, as a message is sent many times and hashed once."""
        if event["event"] != "call" or "messages" not in event["request"]:
            return event
        request = {**event["request"], "messages": self._hashes(event["request"]["messages"], rewritten)}
        return {**event, "request": request}

    def _hashes(self, messages: Sequence[BaseMessage], rewritten: Rewritten | None) -> list[str]:
        known = self._fingerprints
        hashes = []
        for message in messages:
            found = known.get(id(message))
            if found is None:
                plain = self.plain_message(message)
                data = plain if rewritten is None else rewritten(plain)
                text = _canonical(data).encode("utf-8", "surrogatepass")
                found = known[id(message)] = (message, hashlib.sha256(text).hexdigest())
            hashes.append(found[1])
        return hashes


def _failure(error: BaseException) -> dict[str, str]:
    return {"type": type(error).__name__, "message": error_text(error)}


def _whole(event: Event) -> Event:
    """Return the event with the chunks of a streamed reply joined: a text to rewrite may span several of them."""
    if "usage" not in event or "chunks" not in event["value"]:
        return event
    return {**event, "value": {**event["value"], "chunks": "".join(event["value"]["chunks"])}}


_canonical = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=to_json
).encode
