"""Opening a connection to a real MCP server, with a limit in real seconds and an end where the server breaks off.

The SDK waits for ever for the first event of an SSE server, also where the connection it should come over is closed.
The SDK 1.x waits for ever, too, for an answer over streamable HTTP that broke off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from threading import Timer
from typing import Any, Final

from harness.world.mcp.tools import MCPFailure

CONNECT_LIMIT_S: Final = 50.0
"""Real seconds that a server may take until it is connected, and again until it has answered `initialize`.

A command such as `npx` downloads it first.
"""


@contextmanager
def after_real_seconds(seconds: float, then: Callable[[], None]) -> Iterator[None]:
    """Call `then` in the running loop if the block takes longer, even while the loop's clock stands still."""
    timer = Timer(seconds, asyncio.get_running_loop().call_soon_threadsafe, (then,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Opening:
    """Ends a connection from inside, with the reason."""

    def __init__(self) -> None:
        import anyio

        self.scope = anyio.CancelScope()
        self.is_done = False
        self.failure = ""

    def fail(self, why: str) -> None:
        """Leave the connection."""
        self.failure = self.failure or why
        self.scope.cancel()

    def fail_unless_done(self, why: str) -> None:
        """Leave a connection that is still being opened."""
        if not self.is_done:
            self.fail(why)


@asynccontextmanager
async def opened_in_time(
    streams: Callable[[Opening], AbstractAsyncContextManager[Any]], limit_s: float
) -> AsyncIterator[Any]:
    """The streams of the SDK's transport, once it is open.

    Raises:
        MCPFailure: it was not open in time, or has failed.
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
    """The SDK's transport over SSE, which ends where the SDK alone would wait for ever."""
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
    """The SDK's transport over streamable HTTP, which ends where an answer breaks off."""
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    from harness.world.mcp.broken_answers import end_with_broken_answers

    async with create_mcp_http_client(headers=dict(headers)) as http:
        end_with_broken_answers(http, opening.fail)
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams
