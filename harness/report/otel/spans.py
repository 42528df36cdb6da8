"""The spans of a run: the run, in it a span for each node visit, and in those a span for each effect.

Times are virtual seconds. Ids are hashes of the run's identity and digest, so the same run always has the same ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from harness.graph.observe import ENDS_OF_VISITS
from harness.report.encoding import encode
from harness.report.otel.effects import Event, describe, plain_message, provider_name
from harness.report.traces import RunTrace
from harness.units import parse_instant

_UNKNOWN_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The beginning of virtual time for a trace that does not have it: it was written by an earlier version."""
_FAILED: Final = ("failed", "timeout")
_RESULTS: Final = {"passed": "pass", "failed": "fail", "error": "fail"}
_MAX_MESSAGE: Final = 1_000


@dataclass
class SpanEvent:
    """An event at one moment of a span."""

    name: str
    at: float
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Span:
    """A span, independent of OpenTelemetry.

    number   its position in the run, from 0 on
    parent   the number of its parent; None for the run itself
    start, end  virtual seconds; `end` is None while it is open
    error    the type of the error it ended with; "" for none
    message  the text of that error
    """

    number: int
    parent: int | None
    name: str
    start: float
    attributes: dict[str, Any]
    is_remote: bool = False
    end: float | None = None
    error: str = ""
    message: str = ""
    events: list[SpanEvent] = field(default_factory=list)

    def fail(self, error: Mapping[str, Any]) -> None:
        """Mark the span as failed, with an error or an event that has `type` and `message`."""
        self.error = str(error.get("type") or "_OTHER")
        self.message = str(error.get("message") or "")[:_MAX_MESSAGE]


@dataclass(frozen=True)
class RunSpans:
    """The spans of a run; the first one is the run itself. `began` is the instant at which virtual time began."""

    trace_id: int
    began: datetime
    spans: list[Span]

    def span_id(self, number: int) -> int:
        """Return the id of the span with this number."""
        return _id(f"{self.trace_id:032x} {number}", 8)


def run_spans(trace: RunTrace, line: Mapping[str, Any], *, content: bool = False) -> RunSpans:
    """Return the spans of a run, from its trace and its line of results.

    `content` includes prompts, replies, arguments and results.
    """
    head = trace.head
    named = (head["id"], head.get("variant") or "", str(head["repeat"]), str(head["seed"]), head["digest"])
    began = parse_instant(head["now"]) if head.get("now") else _UNKNOWN_BEGINNING
    return RunSpans(_id("\0".join(named), 16), began, [*_Builder(trace, line, content).spans()])


def _id(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size], "big") or 1


class _Builder:
    """Builds spans from the events of a run."""

    def __init__(self, trace: RunTrace, line: Mapping[str, Any], content: bool) -> None:
        self._events, self._head, self._line, self._content = trace.events, trace.head, line, content
        self._answers = {each["call"]: each for each in trace.events if each["event"] == "answer"}
        self._spans: list[Span] = []
        self._visits: dict[str, list[Span]] = {}
        self._calls: dict[int, Span] = {}

    def spans(self) -> Iterator[Span]:
        """Build the spans, and yield them in the order of their starts."""
        root = self._add(None, f"invoke_agent {self._head['agent']}", 0.0, self._run_attributes())
        for event in self._events:
            self._add_event(event, root)
        ended = max((event["at"] for event in self._events), default=0.0)
        for span in self._spans:
            if span.end is None:
                span.end = ended
                if span is not root:
                    span.attributes["harness.unfinished"] = True
        root.events += self._checks(ended)
        yield from self._spans

    def _add(self, parent: int | None, name: str, start: float, attributes: dict[str, Any]) -> Span:
        span = Span(len(self._spans), parent, name, start, attributes)
        self._spans.append(span)
        return span

    def _add_event(self, event: Event, root: Span) -> None:
        kind = event["event"]
        if kind in ("node_start", "node_resume"):
            self._start_visit(event)
        elif kind in ENDS_OF_VISITS:
            self._end_visit(event)
        elif kind == "call":
            self._call(event)
        elif kind == "answer":
            self._answer(event)
        elif kind == "route":
            names = {"source": event["source"], "target": event["target"], "condition": event["condition"]}
            found = {f"harness.route.{key}": value for key, value in names.items() if value is not None}
            root.events.append(SpanEvent("harness.route", event["at"], found))
        elif kind in ("input", "resume"):
            root.events.append(SpanEvent(f"harness.{kind}", event["at"]))
        elif kind == "end" and event.get("error") and event["status"] in _FAILED:
            root.fail(event["error"])

    def _start_visit(self, event: Event) -> None:
        path = event["graph"] + event["node"]
        attributes = {"harness.node": path, "harness.step": event["step"]}
        if (kind := self._head.get("kinds", {}).get(event["node"])) and not event["graph"]:
            attributes["harness.node.kind"] = kind
        span = self._add(self._visit(event["graph"].rstrip("/")), f"node {path}", event["at"], attributes)
        self._visits.setdefault(path, []).append(span)

    def _visit(self, path: str) -> int:
        """Return the number of the node's open visit; 0, the run, if none or several are open."""
        found = self._visits.get(path, [])
        return found[0].number if len(found) == 1 else 0

    def _end_visit(self, event: Event) -> None:
        path = event["graph"] + event["node"]
        found = self._visits.get(path)
        if not found:
            return
        began = event["at"] - event["latency"]
        span = min(found, key=lambda each: abs(each.start - began))
        found.remove(span)
        span.end = event["at"]
        if event["event"] == "node_error":
            span.fail(event)
        elif event["event"] == "node_pause":
            span.attributes["harness.paused"] = True

    def _call(self, event: Event) -> None:
        answer = self._answers.get(event["call"])
        described = describe(event, answer, content=self._content)
        parent = self._visit(event["node"])
        span = self._calls[event["call"]] = self._add(
            parent, described.name, event["at"], described.attributes
        )
        span.is_remote = described.is_remote
        if described.attributes.get("gen_ai.operation.name") == "chat":
            span.attributes["gen_ai.conversation.id"] = self._conversation

    def _answer(self, event: Event) -> None:
        span = self._calls.get(event["call"])
        if span is None:
            return
        span.end = event["at"]
        if event.get("refused"):
            span.attributes["harness.refused"] = True
        if not event["ok"]:
            span.fail(event.get("error") or {})

    @property
    def _conversation(self) -> str:
        variant = f" [{self._head['variant']}]" if self._head.get("variant") else ""
        return f"{self._head['id']}{variant} #{self._head['repeat']}"

    def _run_attributes(self) -> dict[str, Any]:
        head = self._head
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": head["agent"],
            "gen_ai.conversation.id": self._conversation,
            "test.suite.name": head["suite"],
            "test.case.name": head["scenario"],
            "harness.time": "virtual",
            "harness.status": head["status"],
            "harness.verdict": head["verdict"],
            "harness.score": float(self._line.get("score") or 0.0),
            **{f"harness.{name}": head[name] for name in ("manifest", "dialect", "repeat", "seed", "digest")},
        }
        if head.get("variant"):
            attributes["harness.variant"] = head["variant"]
        if result := _RESULTS.get(head["verdict"]):
            attributes["test.case.result.status"] = result
        providers = {
            each["request"]["provider"]
            for each in self._events
            if each["event"] == "call" and each["request"].get("provider")
        }
        if len(providers) == 1:
            attributes["gen_ai.provider.name"] = provider_name(providers.pop())
        usage = self._line.get("usage") or {}
        attributes |= {
            f"gen_ai.usage.{key}": int(usage[key])
            for key in ("input_tokens", "output_tokens")
            if usage.get(key)
        }
        return attributes | (self._messages() if self._content else {})

    def _messages(self) -> dict[str, Any]:
        """Return the input and output of the run as messages."""
        inputs = [each["value"] for each in self._events if each["event"] == "input"]
        ends = [each for each in self._events if each["event"] == "end" and each.get("output") is not None]
        asked = [message for value in inputs for message in plain_message("user", value)]
        said = {"gen_ai.input.messages": encode(asked)}
        if ends:
            said["gen_ai.output.messages"] = encode(plain_message("assistant", ends[-1]["output"]))
        return said

    def _checks(self, at: float) -> Iterator[SpanEvent]:
        """Yield the checks of the run, as evaluation results."""
        for check in self._line.get("checks", ()):
            attributes = {
                "gen_ai.evaluation.name": check["name"],
                "gen_ai.evaluation.score.value": float(check["score"]),
                "gen_ai.evaluation.score.label": "pass" if check["passed"] else "fail",
            }
            if self._content and check["message"]:
                attributes["gen_ai.evaluation.explanation"] = check["message"]
            yield SpanEvent("gen_ai.evaluation.result", at, attributes)
