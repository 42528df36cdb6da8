"""The common ground of two traces, one or both of which are exports of other tools.

Exports have no routes but those of conditions, no parameters of requests, other ids, real times, and gaps. These are
left out on both sides, so that the first difference is one of behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.graph.trace import Event
from harness.report.traces import FORMAT, RunTrace

_LEFT_OUT: Final = frozenset({"route", "reroute", "because", "warning", "pause"})
_OF_REQUESTS: Final = ("messages", "args")
_OF_MESSAGES: Final = frozenset(
    {"additional_kwargs", "response_metadata", "id", "tool_call_id", "status", "name"}
)
_AGENT: Final = "the agent"
"""The node of calls if the nodes are not compared."""
_VALUES: Final = ("value", "values", "request", "update", "output")


def comparable(before: RunTrace, after: RunTrace) -> tuple[RunTrace, RunTrace]:
    """Return the traces with what both can tell. Two traces of runs are returned as they are."""
    if before.head.get("format") == after.head.get("format") == FORMAT:
        return before, after
    traces = before, after
    kinds = [{event["kind"] for event in trace.events if event["event"] == "call"} for trace in traces]
    has_nodes = all(any(event["event"] == "node_start" for event in trace.events) for trace in traces)
    one, other = (_told(trace.events, kinds[0] & kinds[1], has_nodes) for trace in traces)
    for event, twin in zip(one, other, strict=False):
        if event["event"] == twin["event"]:
            _fill(event, twin)
            _fill(twin, event)
    return replace(before, events=one), replace(after, events=other)


def _told(events: Sequence[Event], kinds: set[str], has_nodes: bool) -> list[Event]:
    """Return the events with calls of some kinds, and with nodes or without."""
    left_out = {event["call"] for event in events if event["event"] == "call" and event["kind"] not in kinds}
    found = []
    for event in events:
        is_node = event["event"].startswith("node_")
        if event["event"] in _LEFT_OUT or event.get("call") in left_out or (is_node and not has_nodes):
            continue
        told = {
            key: _bare(value) if key in _VALUES else value for key, value in event.items() if key != "usage"
        }
        told |= {key: 0.0 for key in ("at", "latency") if key in told}
        if "request" in told:
            told["request"] = {key: told["request"][key] for key in _OF_REQUESTS if key in told["request"]}
        if isinstance(told.get("value"), dict) and "text" in told["value"]:
            told["value"] = {
                key: told["value"][key] for key in ("text", "tool_calls") if key in told["value"]
            }
        if event["event"] == "call" and not has_nodes:
            told["node"] = _AGENT
        found.append(told)
    return found


def _bare(value: Any) -> Any:
    """Return data with messages and calls of tools without ids and what else only one side has."""
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    is_message = "content" in value and "type" in value
    dropped = _OF_MESSAGES if is_message else {"id"} if "name" in value and "args" in value else set()
    kept = {key: _bare(each) for key, each in value.items() if key not in dropped}
    return {key: each for key, each in kept.items() if not is_message or each or key == "content"}


def _fill(event: Event, twin: Event) -> None:
    """Take the value that an event lacks from the event of the other trace."""
    if event.get("name") == "":
        event["name"] = twin.get("name", "")
    if event.pop("gap", None) is not None:
        event |= {key: twin[key] for key in (*_VALUES, "error", "ok") if key in twin}
