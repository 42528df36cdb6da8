"""What a stub answers, in the form its kind of effect wants. Source: docs/scenario-format.md, "The world"."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import WorldError
from harness.graph.effects import Answer, HTTPReply, LLMReply, RetrievalReply
from harness.world.failures import to_exception
from harness.world.spec import Stub

Said = Mapping[str, Any]


def answer_of(stub: Stub, kind: str) -> Answer:
    """The answer a stub gives to an effect of this kind, with its virtual latency."""
    if stub.error is not None:
        return Answer(error=to_exception(stub.error), latency_s=stub.latency_s)
    # A copy: who gets it may change it, and the stub may answer again.
    said = copy.deepcopy(dict(stub.answer))
    return Answer(value=_FORMS.get(kind, _returned)(said), latency_s=stub.latency_s)


def compact_json(value: Any) -> str:
    """The value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _llm(said: Said) -> LLMReply:
    chunks = tuple(str(chunk) for chunk in said.get("chunks", ()))
    if "json" in said:
        text = compact_json(said["json"])
    elif "reply" in said:
        text = str(said["reply"])
    else:
        text = "".join(chunks)
    return LLMReply(
        text=text,
        tool_calls=tuple(said.get("tool_calls", ())),
        usage=dict(said.get("usage") or {}),
        finish_reason=said.get("finish_reason"),
        chunks=chunks,
    )


def _http(said: Said) -> HTTPReply:
    has_json = "json" in said
    return HTTPReply(
        status=int(said.get("status", 200)),
        text=compact_json(said["json"]) if has_json else str(said.get("text", "")),
        json=said["json"] if has_json else _parsed(said.get("text", "")),
        headers={str(name).lower(): str(value) for name, value in (said.get("headers") or {}).items()},
    )


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def _human(said: Said) -> Any:
    return said.get("reply")


def _retrieval(said: Said) -> RetrievalReply:
    try:
        return RetrievalReply.of(said.get("return"))
    except ValueError as error:
        raise WorldError(f"a stub under `retrieval:` cannot answer: {error}") from None


def _returned(said: Said) -> Any:
    return said.get("return")


_FORMS: dict[str, Callable[[Said], Any]] = {
    "llm": _llm,
    "http": _http,
    "human": _human,
    "retrieval": _retrieval,
}
