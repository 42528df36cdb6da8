"""The answers of real systems, live and recorded, as a trace shows them: like the answers of stubs."""

from __future__ import annotations

import json
from typing import Final

from harness.graph.effects import Answer, Effect, HTTPReply, LLMCall
from harness.graph.to_json import from_json
from harness.interception.messages import Response
from harness.world.failures import MalformedAnswerError, RemoteError
from harness.world.wire.format import WireFormat
from harness.world.wire.http import format_of_path

_LONGEST: Final = 200


def answer_to(effect: Effect, url: str, response: Response | None, failure: str) -> Answer:
    """Return the answer to a request that a URL got. `failure` tells why there is no response."""
    if response is None:
        return Answer(error=RemoteError(failure or "no answer came"))
    text = response.body.decode("utf-8", "replace")
    wire = format_of_path(url) if isinstance(effect, LLMCall) else None
    if wire is None:
        return Answer(HTTPReply(response.status, text, from_json(text), dict(response.headers)))
    if response.status >= 400:
        return Answer(error=RemoteError(f"status {response.status}: {text[:_LONGEST]}"))
    try:
        return Answer(wire.answer(_body(wire, response.body)))
    except (LookupError, TypeError, ValueError, AttributeError):
        return Answer(error=MalformedAnswerError(f"the model's reply cannot be read: {text[:_LONGEST]!r}"))


def _body(wire: WireFormat, body: bytes) -> dict[str, object]:
    """Return the JSON of a body; the parts of a stream are joined."""
    parts = wire.framing.parts(body)
    whole: dict[str, object] = wire.joined(parts) if parts else json.loads(body.decode("utf-8", "replace"))
    return whole
