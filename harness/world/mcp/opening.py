"""Opens connections to real MCP servers, with a limit in real seconds, and closes those that a server breaks off.

The SDK waits for ever for the first event of an SSE server, even if the connection has been closed. The SDK 1.x also
waits for ever for an answer over streamable HTTP that was broken off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from threading import Timer
from typing import Any, Final

from harness.world.mcp.tools import MCPFailure

CONNECT_LIMIT_S: Final = 50.0
"""Time limit, in real seconds, for connecting to a server, and again for its answer to `initialize`.

A command such as `npx` may download the server first.
"""


@contextmanager
def after_real_seconds(seconds: float, then: Callable[[], None]) -> Iterator[None]:
    """Call `then` in the running loop if the context lasts longer, even while the loop's clock is stopped."""
    timer = Timer(seconds, asyncio.get_running_loop().call_soon_threadsafe, (then,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Opening:
    """Closes a connection with a reason, from within its transport."""

    def __init__(self) -> None:
        import anyio

        self.scope = anyio.CancelScope()
        self.is_done = False
        self.failure = ""

    def fail(self, reason: str) -> None:
        """Close the connection."""
        self.failure = self.failure or reason
        self.scope.cancel()

    def fail_unless_done(self, reason: str) -> None:
        """Close a connection that is still being opened."""
        if not self.is_done:
            self.fail(reason)


@asynccontextmanager
async def opened_in_time(
    streams: Callable[[Opening], AbstractAsyncContextManager[Any]], limit_s: float
) -> AsyncIterator[Any]:
    """Open the SDK's transport and yield its streams.

    Raises:
        MCPFailure: it was not open within `limit_s` real seconds, or has failed.
    """
    opening = Opening()
    with opening.scope:
        async with AsyncExitStack() as stack:
            transport = streams(opening)
            late = f"the server sent no event within {limit_s:g} s"
            with after_real_seconds(limit_s, lambda: opening.fail_unless_done(late)):
                pair = await stack.enter_async_context(transport)
            opening.is_done = True
            yield pair
    if opening.failure:
        raise MCPFailure(opening.failure)


def sse_streams(url: str, headers: Mapping[str, str], opening: Opening) -> AbstractAsyncContextManager[Any]:
    """Return the SDK's transport over SSE, which is closed where the SDK alone would wait for ever."""
    from mcp.client.sse import sse_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async def on_request(request: Any) -> None:
        if request.method == "GET":
            request.extensions = {**request.extensions, "trace": on_trace}

    async def on_trace(event: str, _info: Mapping[str, Any]) -> None:
        if event.endswith((".receive_response_body.complete", ".receive_response_body.failed")):
            opening.fail_unless_done("the server ended the connection before its first event, `endpoint`")

    async def on_response(response: Any) -> None:
        if response.request.method == "POST" and response.is_error:
            opening.fail(f"the server answered a message with status {response.status_code}")

    def with_hooks(**options: Any) -> Any:
        http = create_mcp_http_client(**options)
        http.event_hooks = {"request": [on_request], "response": [on_response]}
        return http

    factory: Any = with_hooks  # typed with names that differ between the versions of the SDK
    return sse_client(url, headers=dict(headers), httpx_client_factory=factory)


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str], opening: Opening) -> AsyncIterator[Any]:
    """Open the SDK's transport over streamable HTTP, which is closed if an answer is broken off."""
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    from harness.world.mcp.broken_answers import end_with_broken_answers

    async with create_mcp_http_client(headers=dict(headers)) as http:
        end_with_broken_answers(http, opening.fail)
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams
