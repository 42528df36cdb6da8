"""Detects that an MCP server breaks off an answer over streamable HTTP. The SDK 1.x would wait for ever.

The SDK gets an HTTP client whose answers are watched while they are read.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import httpx


def end_with_broken_answers(http: Any, fail: Callable[[str], None]) -> None:
    """Call `fail` with the reason if an answer to this client is incomplete.

    The SDK 2.x detects this itself. Its client is not of httpx, and is left unchanged.
    """
    if not isinstance(http, httpx.AsyncClient):
        return

    async def on_response(response: httpx.Response) -> None:
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        is_readable = not (is_stream and "content-encoding" in response.headers)
        if response.request.method == "POST" and response.is_success and is_readable:
            response.stream = _WatchedBody(response.stream, is_stream, fail)

    http.event_hooks = {"response": [on_response]}


class _WatchedBody(httpx.AsyncByteStream):
    """The body of an answer. A stream of events with ids may end without an answer: the SDK requests the rest."""

    def __init__(self, body: Any, is_stream: bool, fail: Callable[[str], None]) -> None:
        self._body, self._is_stream, self._fail = body, is_stream, fail

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = b""
        try:
            async for chunk in self._body:
                if self._is_stream and not _ENDS.search(seen):
                    seen += chunk
                yield chunk
        except httpx.TransportError:
            if not _ENDS.search(seen):
                self._fail(_BROKEN_STREAM if self._is_stream else "the server broke off its answer")
            raise
        if self._is_stream and not _ENDS.search(seen):
            self._fail(_BROKEN_STREAM)

    async def aclose(self) -> None:
        await self._body.aclose()


_ENDS: Final = re.compile(rb'(?m)^id:|^data:.*"(?:result|error)"')
"""Matches an answer, or an event with an id, after which the stream can be resumed."""

_BROKEN_STREAM: Final = "SSE stream ended without a response"  # as the SDK 2.x says it
