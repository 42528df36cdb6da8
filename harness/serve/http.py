"""`http` stubs over the wire: any request, answered by its method and path. Whose host it is does not matter."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import HTTPCall, HTTPReply
from harness.serve.wire import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OF_THE_CONNECTION: Final = frozenset(
    {"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"}
)


def call_of(request: Request, body: bytes) -> HTTPCall:
    """The request as an effect. Its URL is its path, as it was sent."""
    path = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0] or request.url.path
    text = body.decode("utf-8", "replace")
    query: dict[str, str | list[str]] = {}
    for key in request.query_params:
        values = request.query_params.getlist(key)
        query[key] = values if len(values) > 1 else values[0]
    args = {
        "method": request.method,
        "url": path,
        "query": query,
        "json": _parsed(text),
        "headers": dict(request.headers),
        "text": text,
    }
    return HTTPCall(name=path, args=args)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def response_of(reply: HTTPReply) -> Response:
    """The response.

    Raises:
        Refusal: the stub's answer cannot be sent.
    """
    from starlette.responses import Response

    if reply.status < 200:
        raise Refusal("server_error", f"the stub's status {reply.status} is no answer of a server")
    response = Response(reply.text.encode("utf-8", "replace"), reply.status)
    if reply.status in (204, 304):
        response = Response(status_code=reply.status)
    kind = "application/json" if reply.json is not None else "text/plain; charset=utf-8"
    for name, value in _headers({"content-type": kind, **reply.headers}).items():
        response.headers[name] = value
    return response


def _headers(said: Mapping[str, str]) -> dict[str, str]:
    """Those that a response may carry; the length and the like are the connection's own."""
    wrong = next((name for name in said if not _NAME.fullmatch(name)), None)
    if wrong is not None:
        raise Refusal("server_error", f"{wrong!r}, in the headers of the stub, is not the name of a header")
    return {
        name: "".join(c if c.isprintable() else " " for c in value)
        .encode("latin-1", "replace")
        .decode("latin-1")
        for name, value in said.items()
        if name not in _OF_THE_CONNECTION
    }
