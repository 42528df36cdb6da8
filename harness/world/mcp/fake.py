"""A scripted MCP server that speaks the real protocol in memory, and the results of its tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from harness.errors import HarnessError, WorldError
from harness.world.mcp.build import build_server, check_content
from harness.world.mcp.connect import connect_memory
from harness.world.mcp.session import SDKSession
from harness.world.mcp.tools import MCPResult, MCPSession, MCPTool, request_meta

Answer = Callable[[str, dict[str, Any]], Awaitable[MCPResult]]

CALL_ID = "harness/call"  # the key in `_meta` with the number of the call


@asynccontextmanager
async def fake_session(name: str, tools: Sequence[MCPTool], answer: Answer) -> AsyncIterator[MCPSession]:
    """Open a client session with a server `name` that lists `tools` and calls `answer` for results.

    `answer(tool, args)` is awaited once for each call with valid arguments. It runs with the context variables of the
    task that called `call_tool`, and is cancelled with that call. If it raises a `HarnessError` (such as
    `UnscriptedCall`), `call_tool` raises the same object; `MCPFailure` arrives as a protocol error, any other
    exception as a tool error with its text, as from any server.

    Raises:
        WorldError: a tool's schema is not a valid JSON Schema.
    """
    fake = _FakeSession(answer)
    async with connect_memory(build_server(name, tools, fake.serve)) as session:
        fake.connected(session)
        yield fake


def text_result(text: str) -> MCPResult:
    """Return a result with one text block."""
    return MCPResult([{"type": "text", "text": text}])


def structured_result(value: Any) -> MCPResult:
    """Return a result with structured content, and its compact JSON as a text block for clients that only read text.

    Structured content must be an object: a value that is not a mapping becomes `{"result": value}`, as in the SDK's
    servers; its text is the JSON of the value alone. Source: MCP specification 2025-11-25, Tools, Structured Content.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    plain = json.loads(text)
    structured = plain if isinstance(plain, dict) else {"result": plain}
    return MCPResult([{"type": "text", "text": text}], structured)


def content_result(blocks: Sequence[Mapping[str, Any]]) -> MCPResult:
    """Return a result with these MCP content blocks, in wire spelling (`mimeType`).

    Raises:
        WorldError: a block is not valid.
    """
    for block in blocks:
        try:
            check_content(block)
        except ValueError as error:
            raise WorldError(str(error)) from None
    return MCPResult([dict(block) for block in blocks])


def error_result(text: str) -> MCPResult:
    """Return the result of a tool that failed, with its text."""
    return MCPResult([{"type": "text", "text": text}], is_error=True)


@dataclass
class _Call:
    """A call that is in progress."""

    context: Context = field(default_factory=copy_context)
    answering: asyncio.Task[MCPResult] | None = None
    raised: HarnessError | None = None


class _FakeSession:
    """Both ends of the scripted server: the client session, and the answers of the server."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._session: SDKSession
        self._calls: dict[int, _Call] = {}
        self._ids = count(1)

    def connected(self, session: SDKSession) -> None:
        self._session = session

    async def list_tools(self) -> list[MCPTool]:
        return await self._session.list_tools()

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> MCPResult:
        call_id, call = next(self._ids), _Call()
        self._calls[call_id] = call
        try:
            result = await self._session.call_tool(name, args, meta={CALL_ID: call_id})
        finally:
            del self._calls[call_id]
            if call.answering is not None:
                call.answering.cancel()
        if call.raised is not None:
            raise call.raised
        return result

    async def serve(self, name: str, args: dict[str, Any]) -> MCPResult:
        """Answer a call, on the server side of the protocol."""
        call = self._calls.get(request_meta.get()[CALL_ID])
        if call is None:
            return error_result("the caller is gone")

        async def answer() -> MCPResult:
            return await self._answer(name, args)

        call.answering = asyncio.get_running_loop().create_task(answer(), context=call.context)
        try:
            return await call.answering
        except HarnessError as error:
            call.raised = error
            return error_result(str(error))
        except asyncio.CancelledError:
            server_task = asyncio.current_task()
            if server_task is not None and server_task.cancelling():
                raise
            return error_result("the call was cancelled")
