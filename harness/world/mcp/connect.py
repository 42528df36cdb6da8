"""Opens connections to MCP servers: in memory, to child processes, over HTTP.

A connection has its own task: anyio's cancel scopes must be closed by the task that opened them, and a server that
breaks must fail its calls, not cancel the run. So a session may be opened, used and closed by any tasks of the loop.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import Any

from harness.errors import HarnessError, WorldError
from harness.graph.effects import Ask, MCPEndpoint
from harness.interception.real_effects import not_intercepted
from harness.secrets import bare_url, bare_urls
from harness.world.mcp.session import (
    CONNECT_LIMIT_S,
    Opening,
    SDKSession,
    SessionOptions,
    http_streams,
    opened_in_time,
    sse_streams,
)
from harness.world.mcp.tools import MCPFailure
from harness.world.mcp.wire import callbacks, require_sdk
from harness.world.network import network_is_closed

_EXPECTED = {
    "stdio": "starts and speaks MCP on its standard input and output",
    "sse": "runs there and speaks MCP over SSE",
    "streamable_http": "runs there and speaks MCP over streamable HTTP",
}


def connect_memory(server: Any) -> AbstractAsyncContextManager[SDKSession]:
    """Return an initialized session with a server of `build_server` in this loop. It takes no virtual time."""
    return connected(memory_streams(server), SessionOptions("the server in memory", is_external=False))


def connect(
    endpoint: MCPEndpoint, limit_s: float = CONNECT_LIMIT_S, asked: Ask | None = None
) -> AbstractAsyncContextManager[SDKSession]:
    """Return an initialized session with a real server: a child process, ended on exit, or a server over HTTP.

    A child process has the endpoint's `env`, the few variables that the SDK passes on (PATH, HOME, …), and the stderr
    of this process. `asked` answers what the server asks its client.

    Raises:
        WorldError: the server requires a client certificate, or the network, which is closed.
        MCPFailure: on entering, if the process or address does not exist, or does not speak MCP, or not within
            `limit_s` real seconds.
    """
    return connected(
        streams_to(endpoint, limit_s), options_for(endpoint, connect_limit_s=limit_s, asked=asked)
    )


def options_for(endpoint: MCPEndpoint, **more: Any) -> SessionOptions:
    """Return the options of a session with a real server."""
    return SessionOptions(
        endpoint.command or bare_url(endpoint.url or ""),
        read_timeout_s=endpoint.read_timeout_s,
        advice=f"check that server {endpoint.id!r} {_EXPECTED[endpoint.transport]}, or script its tools under `mcp:`",
        **more,
    )


def streams_to(endpoint: MCPEndpoint, limit_s: float = CONNECT_LIMIT_S) -> AbstractAsyncContextManager[Any]:
    """Return the SDK's transport to a real server. Entering it gives the streams to read from and to write to.

    Raises:
        WorldError: the server requires a client certificate, or the network, which is closed.
        MCPFailure: on entering, if the transport is not open after `limit_s` real seconds.
    """
    if endpoint.client_certificate:
        raise WorldError(
            f"MCP server {endpoint.id!r} cannot be real: it wants a client certificate (mTLS), and the harness "
            "cannot give one; script the server's tools instead"
        )
    if endpoint.transport != "stdio" and network_is_closed():
        raise WorldError(
            f"MCP server {endpoint.id!r} cannot be real: it is reached over the network, which is closed during a "
            "scenario that is neither recorded nor live; script the server's tools, or record it (--record-mode once)"
        )

    def transport(opening: Opening) -> AbstractAsyncContextManager[Any]:
        if endpoint.transport == "stdio":
            return _stdio_streams(endpoint)
        if endpoint.transport == "sse":
            return sse_streams(endpoint.url or "", endpoint.headers, opening)
        return http_streams(endpoint.url or "", endpoint.headers, opening)

    return opened_in_time(transport, limit_s)


def failure_reason(error: BaseException | None) -> str:
    """Return the reason why a connection failed, on one line."""
    cause = _first_leaf(error)
    return bare_urls(str(cause)).partition("\n")[0].rstrip(".") or type(cause).__name__


def _first_leaf(error: BaseException | None) -> BaseException | None:
    """Return the first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class connected(AbstractAsyncContextManager[SDKSession]):
    """A session over `streams` in its own task, for the duration of the context.

    It is no generator: a loop that ends, such as that of an app's import, would close it before that task.
    """

    def __init__(self, streams: AbstractAsyncContextManager[Any], options: SessionOptions) -> None:
        self._streams, self._options = streams, options

    async def __aenter__(self) -> SDKSession:
        require_sdk()
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[SDKSession] = loop.create_future()
        self._leave = asyncio.Event()
        self._owner = loop.create_task(_run_session(self._streams, self._options, self._ready, self._leave))
        try:
            either: set[asyncio.Future[Any]] = {self._owner, self._ready}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._ready.done():
                cause = _first_leaf(self._owner.exception())
                if isinstance(cause, HarnessError):
                    raise cause
                raise MCPFailure(self._options.not_connected(failure_reason(cause))) from cause
        except BaseException:
            await self.__aexit__()
            raise
        return self._ready.result()

    async def __aexit__(self, *_: object) -> None:
        if not self._ready.done():
            self._owner.cancel()
        self._leave.set()
        await _wait_for_end(self._owner)


async def _wait_for_end(task: asyncio.Task[None]) -> None:
    """Wait for the end of `task`, even if this task is cancelled meanwhile. The exception of `task` is dropped.

    The calls that a broken connection interrupted have failed with its reason already.
    """
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            interrupted = error
    if not task.cancelled():
        task.exception()
    if interrupted is not None:
        raise interrupted


async def _run_session(
    streams: AbstractAsyncContextManager[Any],
    options: SessionOptions,
    ready: asyncio.Future[SDKSession],
    leave: asyncio.Event,
) -> None:
    from mcp import ClientSession

    if options.is_external:
        not_intercepted.set(True)
    with ExitStack() as clock:
        clock.enter_context(options.hold_clock())
        asking = callbacks(options.answer) if options.asked is not None else {}
        async with streams as pair, ClientSession(pair[0], pair[1], **asking) as client:
            session = SDKSession(client, options)
            try:
                await session.initialize()
                ready.set_result(session)
                clock.close()
                await leave.wait()
            finally:
                session.end()
                clock.enter_context(options.use_real_clock())


@asynccontextmanager
async def memory_streams(server: Any) -> AsyncIterator[Any]:
    """Run a server in this loop, and give the streams of its client."""
    import anyio
    from mcp.shared.memory import create_client_server_memory_streams

    async with (
        create_client_server_memory_streams() as (client_side, server_side),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *server_side, server.create_initialization_options())
        try:
            yield client_side
        finally:
            tasks.cancel_scope.cancel()


def _stdio_streams(endpoint: MCPEndpoint) -> AbstractAsyncContextManager[Any]:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(
        command=endpoint.command or "", args=list(endpoint.args), env=dict(endpoint.env), cwd=endpoint.cwd
    )
    # The SDK's default is sys.stderr at import time, which may be a capture that has been closed.
    errlog: Any = sys.__stderr__ or subprocess.DEVNULL
    return stdio_client(parameters, errlog=errlog)
