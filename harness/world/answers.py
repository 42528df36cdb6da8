"""Converts the answer of a stub to the value of its kind of effect. Source: docs/scenario-format.md, "The world"."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import Span, WorldError
from harness.graph.effects import Answer, HTTPReply, LLMReply, RetrievalReply
from harness.graph.to_json import compact_json, from_json
from harness.source.display import clip
from harness.world.failures import to_exception
from harness.world.spec import ErrorAnswer, FaultSpec, MCPServerSpec, Stub

Written = Mapping[str, Any]


@dataclass(frozen=True)
class ScriptedAnswer(Answer):
    """An answer from a stub, a fault or a scripted server (`source`). `title` names the stub list in messages."""

    source: Stub | FaultSpec | MCPServerSpec | None = None
    title: str = ""

    @property
    def failure(self) -> ErrorAnswer | None:
        """The error as written in the scenario; None if the answer is a value."""
        return None if self.source is None else self.source.error

    @property
    def span(self) -> Span | None:
        """The location of the source in the scenario."""
        return None if self.source is None else self.source.span

    @property
    def description(self) -> str:
        """A short description of the answer, for messages."""
        return describe(self.source, self.title) if isinstance(self.source, Stub) else self.title


def describe(stub: Stub, title: str) -> str:
    """Return a short description of a stub's answer, for messages."""
    if stub.error is not None:
        return f"{title}: error {stub.error.kind}"
    written = ", ".join(f"{key}: {clip(repr(value), 60)}" for key, value in stub.answer.items())
    return f"{title}: {written or 'an empty answer'}"


def answer_of(stub: Stub, kind: str, title: str) -> ScriptedAnswer:
    """Return the answer of a stub to an effect of this kind, with its virtual latency."""
    if stub.error is not None:
        return ScriptedAnswer(
            error=to_exception(stub.error), latency_s=stub.latency_s, source=stub, title=title
        )
    # A copy: the caller may change it, and the stub may answer again.
    written = copy.deepcopy(dict(stub.answer))
    value = _CONVERTERS[kind](written) if kind in _CONVERTERS else written.get("return")
    return ScriptedAnswer(value, latency_s=stub.latency_s, source=stub, title=title)


def _llm(written: Written) -> LLMReply:
    chunks = tuple(str(chunk) for chunk in written.get("chunks", ()))
    if "json" in written:
        text = compact_json(written["json"])
    elif "reply" in written:
        text = str(written["reply"])
    else:
        text = "".join(chunks)
    return LLMReply(
        text=text,
        tool_calls=tuple(written.get("tool_calls", ())),
        usage=dict(written.get("usage") or {}),
        finish_reason=written.get("finish_reason"),
        chunks=chunks,
    )


def _http(written: Written) -> HTTPReply:
    has_json = "json" in written
    text = compact_json(written["json"]) if has_json else str(written.get("text", ""))
    return HTTPReply(
        status=int(written.get("status", 200)),
        text=text,
        json=written["json"] if has_json else from_json(text),
        headers={str(name).lower(): str(value) for name, value in (written.get("headers") or {}).items()},
    )


def _retrieval(written: Written) -> RetrievalReply:
    try:
        return RetrievalReply.of(written.get("return"))
    except ValueError as error:
        raise WorldError(f"a stub under `retrieval:` cannot answer: {error}") from None


_CONVERTERS: dict[str, Callable[[Written], Any]] = {
    "llm": _llm,
    "http": _http,
    "human": lambda written: written.get("reply"),
    "retrieval": _retrieval,
}
