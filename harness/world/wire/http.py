"""Reads HTTP requests as effects, and writes answers as responses, for the server and for intercepted clients."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qs

from harness.graph.effects import Answer, Effect, HTTPCall, HTTPReply, LLMCall, LLMReply
from harness.graph.to_json import from_json
from harness.interception.patches import kept_request_headers
from harness.secrets import placeholder, secret_header
from harness.world.failures import ErrorMapping
from harness.world.spec import ScriptedAnswer
from harness.world.wire import anthropic_messages, openai_chat, openai_responses
from harness.world.wire.format import Json, Refusal, ReplyFactory, WireFormat, compact

PATHS: Final[Mapping[str, Mapping[str, WireFormat]]] = {
    "openai": {"/chat/completions": openai_chat, "/responses": openai_responses},
    "anthropic": {"/v1/messages": anthropic_messages},
}
"""The wire formats: by protocol of a provider, and by path below its address."""

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONNECTION_HEADERS: Final = frozenset(
    {"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"}
)
_LONGEST_RETRY_S: Final = 86_400.0


@dataclass(frozen=True)
class WireResponse:
    """A response: status, headers, and the body in the pieces in which it is sent."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterator[str] = field(default_factory=lambda: iter(()))


# ---------------------------------------------------------------- requests


def format_of_path(url: str) -> WireFormat | None:
    """Return the wire format that the path of a URL names, on any host."""
    address = address_of(url)
    formats = (item for of_protocol in PATHS.values() for item in of_protocol.items())
    return next((wire for ending, wire in formats if address.endswith(ending)), None)


def address_of(url: str) -> str:
    """Return a URL without its query and fragment."""
    return url.partition("#")[0].partition("?")[0]


def call_of(method: str, url: str, headers: Mapping[str, str], body: bytes, node: str = "") -> HTTPCall:
    """Return a request as an effect of a node. `url` may be a path; its query is separate in `args`."""
    address, _, query = url.partition("#")[0].partition("?")
    text = body.decode("utf-8", "replace")
    values = parse_qs(query, keep_blank_values=True)
    args = {
        "method": method,
        "url": address,
        "query": {key: found if len(found) > 1 else found[0] for key, found in values.items()},
        "json": from_json(text),
        "headers": dict(headers),
        "text": text,
    }
    return HTTPCall(name=address, node=node, args=args)


def without_keys(effect: Effect) -> Effect:
    """Return an effect as it is recorded: the values of headers that hold keys, which stubs see, are replaced.

    Headers that only concern the client or the transport are left out.
    """
    if not isinstance(effect, HTTPCall):
        return effect
    headers = kept_request_headers(effect.args["headers"])
    shown = {name: placeholder(name) if secret_header(name) else value for name, value in headers.items()}
    return replace(effect, args={**effect.args, "headers": shown})


def json_object(body: bytes) -> Json:
    """Parse a body that must be a JSON object.

    Raises:
        Refusal: it is not a JSON object.
    """
    try:
        value = json.loads(body)
    except RecursionError:
        raise Refusal("invalid_request", "the request is nested too deeply") from None
    except ValueError as error:
        raise Refusal("invalid_request", f"the request is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refusal("invalid_request", "the request is not a JSON object")
    return value


# ---------------------------------------------------------------- responses


def model_response(
    wire: WireFormat, call: LLMCall, body: Json, answer: Answer, replies: ReplyFactory
) -> WireResponse:
    """Return the answer to a model call in the provider's wire format, streamed if `body` asks for it.

    `answer` has a value, or an error that has a status. The response to a `malformed` error is cut off.
    """
    failure = failure_of(answer)
    if failure is not None and failure.kind != "malformed":
        return error_response(wire, Refusal(failure.kind, str(answer.error)), failure.retry_after)
    truncated = failure is not None
    reply = replies.make(call, LLMReply(str(answer.error)) if truncated else answer.value)
    if body.get("stream") is not True:
        return json_response(wire.response_json(reply, body), truncated=truncated)
    events = wire.events(reply, body)
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    return WireResponse(200, headers, iter([_first_half(next(events)) + "\n\n"]) if truncated else events)


def http_response(wire: WireFormat, answer: Answer) -> WireResponse:
    """Return the answer to an HTTP request. An error is written in the `wire` format.

    Raises:
        Refusal: the stub's answer cannot be sent.
    """
    failure = failure_of(answer)
    if failure is None:
        return _stub_response(answer.value)
    if failure.kind == "malformed":
        return json_response({"error": str(answer.error)}, truncated=True)
    return error_response(wire, Refusal(failure.kind, str(answer.error)), failure.retry_after)


def failure_of(answer: Answer) -> ErrorMapping | None:
    """Return the scripted error of an answer; None if it has a value."""
    return answer.failure if isinstance(answer, ScriptedAnswer) else None


def error_response(wire: WireFormat, refusal: Refusal, retry_after_s: float | None = None) -> WireResponse:
    """Return an error in the provider's wire format.

    `retry-after` is in whole seconds; the providers' clients prefer `retry-after-ms`, which is sent with it.
    """
    headers = {}
    if retry_after_s is not None:
        seconds = min(retry_after_s, _LONGEST_RETRY_S)
        headers = {"retry-after": str(math.ceil(seconds)), "retry-after-ms": f"{seconds * 1000:.3f}"}
    return json_response(wire.error_json(refusal), refusal.status, headers)


def json_response(
    value: Json, status: int = 200, headers: Mapping[str, str] | None = None, *, truncated: bool = False
) -> WireResponse:
    """Return a response with this JSON; if `truncated`, with the first half of its text."""
    text = compact(value)
    headers = {"content-type": "application/json", **(headers or {})}
    return WireResponse(status, headers, iter([_first_half(text) if truncated else text]))


def _first_half(text: str) -> str:
    return text[: len(text) // 2]


def _stub_response(reply: HTTPReply) -> WireResponse:
    """Return the response of a stub."""
    if reply.status < 200:
        raise Refusal("server_error", f"the stub's status {reply.status} is not the status of an answer")
    kind = "application/json" if reply.json is not None else "text/plain; charset=utf-8"
    pieces = iter(()) if reply.status in (204, 304) else iter([reply.text])
    return WireResponse(reply.status, _headers({"content-type": kind, **reply.headers}), pieces)


def _headers(written: Mapping[str, str]) -> dict[str, str]:
    """Return the headers without those that the connection sets itself, such as the length.

    Raises:
        Refusal: the name of a header is invalid.
    """
    wrong = next((name for name in written if not _NAME.fullmatch(name)), None)
    if wrong is not None:
        raise Refusal("server_error", f"{wrong!r}, in the headers of the stub, is not the name of a header")
    return {
        name: "".join(c if c.isprintable() else " " for c in value)
        .encode("latin-1", "replace")
        .decode("latin-1")
        for name, value in written.items()
        if name not in _CONNECTION_HEADERS
    }
