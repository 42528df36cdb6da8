"""Reads HTTP requests as effects, and writes answers as responses, for the server and for intercepted clients."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from harness.graph.effects import Effect, HTTPCall, HTTPReply, LLMCall, LLMReply
from harness.graph.http_call import query_of
from harness.graph.to_json import from_json, texts_in, to_json
from harness.graph.world import Answer
from harness.interception.messages import Request, Response
from harness.interception.patches import kept_request_headers
from harness.secrets import placeholder, secret_header
from harness.world.failures import ErrorMapping, MalformedAnswerError, RemoteError
from harness.world.providers.access import base_urls
from harness.world.spec import ScriptedAnswer
from harness.world.wire import (
    anthropic_messages,
    bedrock_converse,
    gemini,
    mistral_chat,
    ollama,
    openai_chat,
    openai_responses,
)
from harness.world.wire.format import Json, Refusal, ReplyFactory, WireFormat, compact

PATHS: Final[Mapping[str, Mapping[str, WireFormat]]] = {
    "openai": {"/chat/completions": openai_chat, "/responses": openai_responses},
    "mistral": {"/chat/completions": mistral_chat},
    "anthropic": {"/v1/messages": anthropic_messages},
    "gemini": {"/*:generateContent": gemini, "/*:streamGenerateContent": gemini},
    "bedrock": {"/model/*/converse": bedrock_converse, "/model/*/converse-stream": bedrock_converse},
    "ollama": {"/api/chat": ollama, "/api/generate": ollama},
}
"""The wire formats: by protocol of a provider, and by path below its address, where `*` is any text."""

_MODEL: Final = re.compile(r"/deployments/([^/]+)/|/models/([^/:]+):\w+$|/model/([^/]+)/converse")
_STREAMS: Final = (":streamGenerateContent", "/converse-stream")
_SENT_AS_EVENTS: Final = re.compile(r"[?&](?:alt|%24alt|\$alt)=sse(?:&|#|$)")
_STREAMS_UNLESS_TOLD: Final = ("/api/chat", "/api/generate")

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONNECTION_HEADERS: Final = frozenset(
    {"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"}
)
_LONGEST_RETRY_S: Final = 86_400.0


@dataclass(frozen=True)
class WireResponse:
    """A response: status, headers, and the body in the pieces in which it is sent; if `streamed`, one by one."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterator[bytes] = field(default_factory=lambda: iter(()))
    streamed: bool = False

    def whole(self) -> Response:
        """Return the response as a client has it once all of it has arrived."""
        return Response(self.status, _phrase(self.status), tuple(self.headers.items()), b"".join(self.pieces))


@lru_cache(64)
def _phrase(status: int) -> str:
    return next((each.phrase for each in HTTPStatus if each == status), "")


# ---------------------------------------------------------------- requests


def format_of_path(url: str) -> WireFormat | None:
    """Return the wire format that the path of a URL names, on any host."""
    address = address_of(url)
    formats = (item for of_protocol in PATHS.values() for item in of_protocol.items())
    return next((wire for path, wire in formats if _matches(f"*{path}", address)), None)


def format_at(url: str, environment: Mapping[str, str]) -> WireFormat | None:
    """Return the wire format of the models at a URL; None if it is not that of a model provider.

    `environment` has the variables with addresses of providers, such as OPENAI_BASE_URL.
    """
    address = address_of(url)
    return next((wire for known, wire in _addresses(environment) if _matches(known, address)), None)


def _addresses(environment: Mapping[str, str]) -> Iterator[tuple[str, WireFormat]]:
    for protocol, base_url in base_urls(environment):
        for path, wire in PATHS[protocol].items():
            yield f"{base_url.rstrip('/')}{path}", wire


def _matches(pattern: str, address: str) -> bool:
    """True if an address is the pattern, where `*` is any text."""
    return _compiled(pattern).fullmatch(address) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))))


def address_of(url: str) -> str:
    """Return a URL without its query and fragment."""
    return url.partition("#")[0].partition("?")[0]


def call_of(method: str, url: str, headers: Mapping[str, str], body: bytes, node: str = "") -> HTTPCall:
    """Return a request as an effect of a node. `url` may be a path; its query is separate in `args`."""
    address, _, query = url.partition("#")[0].partition("?")
    text = body.decode("utf-8", "replace")
    args = {
        "method": method,
        "url": address,
        "query": query_of(query),
        "json": from_json(text),
        "headers": dict(headers),
        "text": text,
    }
    return HTTPCall(name=address, node=node, args=args)


class PlainCall:
    """A request as a plain one: few model calls are asked for as such, too. The call is made when it is needed."""

    def __init__(self, request: Request, node: str) -> None:
        self._request, self._node = request, node
        self._call: HTTPCall | None = None

    def __call__(self) -> HTTPCall:
        """Return the call."""
        if self._call is None:
            sent = self._request
            self._call = call_of(sent.method, sent.url, sent.headers, sent.body, self._node)
        return self._call


def without_keys(effect: Effect) -> Effect:
    """Return an effect as it is recorded: the values of headers that hold keys, which stubs see, are replaced.

    Headers that only concern the client or the transport are left out.
    """
    if not isinstance(effect, HTTPCall):
        return effect
    headers = kept_request_headers(effect.args["headers"])
    shown = {name: placeholder(name) if secret_header(name) else value for name, value in headers.items()}
    return replace(effect, args={**effect.args, "headers": shown})


def request_json(url: str, body: bytes) -> Json:
    """Parse the body of a model call. `model` and `stream` are set if the URL says them.

    Raises:
        Refusal: it is not a JSON object.
    """
    written, address = _json_object(body), address_of(url)
    if (named := _MODEL.search(address)) is not None:
        written["model"] = unquote(next(filter(None, named.groups())))
    if address.endswith(_STREAMS):
        written["stream"] = True
        written |= {"alt": "sse"} if _SENT_AS_EVENTS.search(url) else {}
    elif address.endswith(_STREAMS_UNLESS_TOLD):
        written.setdefault("stream", True)
    return written


def _json_object(body: bytes) -> Json:
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
    said = answer.value
    if failure is not None and wire.statuses.get(failure.kind) == 200:
        said, failure = LLMReply("", finish_reason=failure.kind), None
    if failure is not None and failure.kind != "malformed":
        return error_response(wire, Refusal(failure.kind, str(answer.error)), failure.retry_after)
    truncated = failure is not None
    reply = replies.make(call, LLMReply(str(answer.error)) if truncated else said)
    if body.get("stream") is not True:
        return json_response(wire.response_json(reply, body), truncated=truncated)
    events, framing = wire.events(reply, body), wire.framing
    if wire is gemini and "alt" not in body:
        framing, events = gemini.ARRAY, gemini.as_array(events)
    headers = {"content-type": framing.content_type, "cache-control": "no-cache"}
    cut = iter([framing.cut(next(events))]) if truncated else events
    return WireResponse(200, headers, cut, streamed=True)


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
    return json_response(wire.error_json(refusal), wire.statuses.get(refusal.kind, refusal.status), headers)


def json_response(
    value: Json, status: int = 200, headers: Mapping[str, str] | None = None, *, truncated: bool = False
) -> WireResponse:
    """Return a response with this JSON; if `truncated`, with the first half of its text."""
    text = compact(value).encode()
    headers = {"content-type": "application/json", **(headers or {})}
    return WireResponse(status, headers, iter([text[: len(text) // 2] if truncated else text]))


def _stub_response(reply: HTTPReply) -> WireResponse:
    """Return the response of a stub."""
    if reply.status < 200:
        raise Refusal("server_error", f"the stub's status {reply.status} is not the status of an answer")
    kind = "application/json" if reply.json is not None else "text/plain; charset=utf-8"
    pieces = iter(()) if reply.status in (204, 304) else iter([reply.text.encode("utf-8", "replace")])
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


# ---------------------------------------------------------------- answers of real systems

_SHOWN: Final = 200


def answer_to(effect: Effect, url: str, response: Response | None, failure: str) -> Answer:
    """Return the answer to a request that a URL got, live or recorded, as a trace shows it: like that of a stub.

    `failure` tells why there is no response.
    """
    if response is None:
        return Answer(error=RemoteError(failure or "no answer came"))
    text = response.body.decode("utf-8", "replace")
    wire = format_of_path(url) if isinstance(effect, LLMCall) else None
    if wire is None:
        return Answer(HTTPReply(response.status, text, from_json(text), dict(response.headers)))
    if response.status >= 400:
        return Answer(error=RemoteError(f"status {response.status}: {text[:_SHOWN]}"))
    try:
        parts = wire.framing.parts(response.body)  # of a stream
        return Answer(wire.answer(wire.joined(parts) if parts else json.loads(text)))
    except (LookupError, TypeError, ValueError, AttributeError):
        return Answer(error=MalformedAnswerError(f"the model's reply cannot be read: {text[:_SHOWN]!r}"))


# ---------------------------------------------------------------- numbers of tokens

_CHARACTERS: Final = 4.0
"""The characters of a token, on average."""
_ADDRESSES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "/responses/input_tokens": ("input_tokens", {"object": "response.input_tokens"}),
    "/v1/messages/count_tokens": ("input_tokens", {}),
    ":countTokens": ("totalTokens", {}),
}
"""By the end of the address: the key of the number in the answer, and what else is in it."""


def token_count(call: HTTPCall) -> HTTPReply | None:
    """Return the answer to a request by which a client lets a provider count tokens; None for any other request.

    No stub says how many there are, and none is needed: the number is estimated from the length of the texts.
    """
    found = next((answer for end, answer in _ADDRESSES.items() if call.name.endswith(end)), None)
    if found is None or call.args["method"] != "POST":
        return None
    key, rest = found
    number = math.ceil(sum(len(text) for _, text in texts_in(call.args["json"])) / _CHARACTERS)
    value = to_json({**rest, key: number})
    return HTTPReply(status=200, text=compact(value), json=value)
