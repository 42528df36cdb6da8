"""The Starlette application: which path is answered in which wire format, and what happens on the connection."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from harness.errors import UnscriptedCall
from harness.graph.effects import LLMReply
from harness.serve import anthropic, http, mcp, openai, responses
from harness.serve.responder import Asker, Desk, Said
from harness.serve.wire import STATUS, Json, Refusal, Wire, compact, reply_to
from harness.source.suggest import did_you_mean
from harness.world.failures import to_exception
from harness.world.spec import ErrorAnswer

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

WIRES: Final[Mapping[str, Wire]] = {
    "/v1/chat/completions": openai,
    "/v1/responses": responses,
    "/v1/messages": anthropic,
}
LARGEST_BODY: Final = 50 * 1024 * 1024
_LONGEST_RETRY_S: Final = 86_400.0

Drop = Callable[[Any], None]
"""Closes the connection with a client, given by its address in the ASGI scope."""


def build_app(desk: Desk, drop: Drop) -> Starlette:
    """The application.

    Raises:
        WorldError: a tool's schema is not a valid JSON Schema.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    front = _Front(desk, drop)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with front.mcp.open():
            yield

    every = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Starlette(
        routes=[
            *(Route(path, front.model(wire), methods=["POST"]) for path, wire in WIRES.items()),
            Route("/v1/models", front.models, methods=["GET"]),
            Route("/mcp/{name:path}", front.tools, methods=every),
            Route("/{path:path}", front.http, methods=every),
        ],
        lifespan=lifespan,
    )


class _Front:
    """The endpoints. Each gives an ASGI application that answers its one request."""

    def __init__(self, desk: Desk, drop: Drop) -> None:
        self.mcp = mcp.MCPOverHTTP(desk)
        self._desk = desk
        self._drop = drop

    def model(self, wire: Wire) -> Callable[[Request], Awaitable[ASGIApp]]:
        """The endpoint of a wire format."""

        async def answered(request: Request) -> ASGIApp:
            body = _object(await _body(request))
            call = wire.read(body)
            said = self._desk.ask(call, _asker(request))
            failed = await self._failure(said)
            if failed is not None:
                return failed
            cut = said.error is not None
            told = LLMReply(str(to_exception(said.error))) if said.error else said.value
            reply = reply_to(call, told, self._desk.next_reply(call.provider), self._desk.next_call_id)
            if body.get("stream") is True:
                return _stream(wire.events(reply, body), cut=cut)
            return _json(wire.whole(reply, body), cut=cut)

        return self._guarded(answered, lambda _request: wire)

    async def models(self, request: Request) -> ASGIApp:
        """The models that stubs name, in a form both providers' clients read."""
        named = dict.fromkeys(stub.model for stub in self._desk.world.llm if stub.model)
        names = [name for name in named if not set(name) & set("*?[")]
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "harness"}
            | {"type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
            for name in names
        ]
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return _json({"object": "list", "data": data, "has_more": False, **ends})

    async def tools(self, request: Request) -> ASGIApp:
        """An MCP server."""
        return await self._guarded(self._tools, _provider)(request)

    async def _tools(self, request: Request) -> ASGIApp:
        name = request.path_params["name"].rstrip("/")
        if name not in (known := mcp.scripted(self._desk)):
            near = did_you_mean(name, known) or "the scenario scripts none"
            raise Refusal("not_found", f"no MCP server '{name}' is served here ({near})")
        broken = self._desk.world.mcp[name].error
        if broken is not None:
            self._desk.refused(_asker(request), f"the server has an error: {broken.kind}")
            return await self._failure(Said(error=broken)) or _malformed(broken)
        if request.method != "POST":  # no server-sent events of its own, and no sessions to end
            raise Refusal("not_found", "an MCP server is asked by POST: it keeps no sessions")
        app: ASGIApp = self.mcp.app(name)
        return app

    async def http(self, request: Request) -> ASGIApp:
        """Any other request."""
        return await self._guarded(self._http, _provider)(request)

    async def _http(self, request: Request) -> ASGIApp:
        call = http.call_of(request, await _body(request))
        if not self._desk.world.http:
            served = ", ".join((*WIRES, "/v1/models", *(f"/mcp/{name}" for name in mcp.scripted(self._desk))))
            raise Refusal(
                "not_found", f"nothing is served at {request.method} {call.name}; there are {served}"
            )
        try:
            said = self._desk.ask(call, _asker(request))
        except UnscriptedCall as error:
            raise _Told("not_found", str(error)) from None
        failed = await self._failure(said)
        if failed is not None:
            return failed
        return _malformed(said.error) if said.error else http.response_of(said.value)

    # ------------------------------------------------------------ errors

    def _guarded(
        self, answered: Callable[[Request], Awaitable[ASGIApp]], wire_of: Callable[[Request], Wire]
    ) -> Callable[[Request], Awaitable[ASGIApp]]:
        """The endpoint with every failure as an error in the provider's format."""

        async def endpoint(request: Request) -> ASGIApp:
            wire = wire_of(request)
            try:
                return await answered(request)
            except UnscriptedCall as error:
                return _refused(wire, Refusal("unscripted", str(error)))
            except _Scripted as scripted:
                return _refused(wire, scripted.refusal, scripted.headers)
            except Refusal as refusal:
                if not isinstance(refusal, _Told):
                    self._desk.refused(_asker(request), f"{refusal.status}: {refusal}")
                return _refused(wire, refusal)
            except Exception as error:
                told = f"harness broke: {type(error).__name__}: {error}"
                self._desk.refused(_asker(request), told)
                return _refused(wire, Refusal("server_error", told))

        return endpoint

    async def _failure(self, said: Said) -> ASGIApp | None:
        """What is to be done instead of an answer, after the latency; None for one, were it cut off (`malformed`).

        Raises:
            _Scripted: an error with a status is to be answered.
        """
        error = said.error
        if error is not None and error.kind == "timeout":
            return self._hang_up(said.latency_s or None)
        if not await self._desk.wait(said.latency_s) or (error is not None and error.kind == "connection"):
            return self._hang_up()
        if error is None or error.kind == "malformed":
            return None
        raise _Scripted(error)

    def _hang_up(self, seconds: float | None = 0.0) -> ASGIApp:
        return _HangUp(self._desk, self._drop, seconds)


class _Told(Refusal):
    """A refusal that the desk knows of."""


class _Scripted(Exception):
    """An error that a stub or a fault answers with."""

    def __init__(self, error: ErrorAnswer) -> None:
        assert error.kind in STATUS
        self.refusal = Refusal(error.kind, str(to_exception(error)))
        self.headers = _retry_after(error.retry_after_s)
        super().__init__()


def _retry_after(seconds: float | None) -> dict[str, str]:
    """`retry-after` has whole seconds; the providers' clients prefer the milliseconds beside it."""
    if seconds is None:
        return {}
    seconds = min(seconds, _LONGEST_RETRY_S)
    return {"retry-after": str(math.ceil(seconds)), "retry-after-ms": f"{seconds * 1000:.3f}"}


class _HangUp:
    """Gives no answer, and closes the connection after `seconds`; None: not before the client does."""

    def __init__(self, desk: Desk, drop: Drop, seconds: float | None) -> None:
        self._desk = desk
        self._drop = drop
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_gone(receive))
        closing = asyncio.ensure_future(self._desk.closing.wait())
        either: set[asyncio.Future[Any]] = {gone, closing}
        await asyncio.wait(either, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        self._drop(scope.get("client"))
        await gone  # the server wants to see that the client is gone, or it would answer itself


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


# ---------------------------------------------------------------- requests


def _asker(request: Request) -> Asker:
    client = request.headers.get("user-agent", "").partition(" ")[0]
    return Asker(client[:80], f"{request.method} {request.url.path}")


def _provider(request: Request) -> Wire:
    """Whose errors a client reads that asks for something nobody knows."""
    asks_anthropic = "anthropic-version" in request.headers or "x-api-key" in request.headers
    return anthropic if asks_anthropic else openai


async def _body(request: Request) -> bytes:
    """The whole body. One that is too large is read to its end, so that the client comes to read the answer."""
    from starlette.requests import ClientDisconnect

    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size <= LARGEST_BODY:
                parts.append(part)
    except ClientDisconnect:
        raise Refusal("invalid_request", "the client left before its request ended") from None
    if size > LARGEST_BODY:
        raise Refusal("too_large", f"the request has {size:,} bytes, and at most {LARGEST_BODY:,} are taken")
    return b"".join(parts)


def _object(body: bytes) -> Json:
    try:
        said = json.loads(body)
    except RecursionError:
        raise Refusal("invalid_request", "the request is nested too deeply") from None
    except ValueError as error:
        raise Refusal("invalid_request", f"the request is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise Refusal("invalid_request", "the request is not a JSON object")
    return said


# ---------------------------------------------------------------- answers


def _json(
    value: Json, status: int = 200, headers: Mapping[str, str] | None = None, *, cut: bool = False
) -> Response:
    from starlette.responses import Response

    text = compact(value)
    return Response(text[: len(text) // 2] if cut else text, status, headers, "application/json")


def _malformed(error: ErrorAnswer) -> Response:
    return _json({"error": str(to_exception(error))}, cut=True)


def _stream(events: Iterator[str], *, cut: bool) -> Response:
    from starlette.responses import StreamingResponse

    async def sent() -> AsyncIterator[str]:
        for event in events:
            if cut:
                yield event[: len(event) // 2] + "\n\n"
                return
            yield event
            await asyncio.sleep(0)  # one write for each event

    return StreamingResponse(sent(), media_type="text/event-stream", headers={"cache-control": "no-cache"})


def _refused(wire: Wire, refusal: Refusal, headers: Mapping[str, str] | None = None) -> Response:
    return _json(wire.error(refusal), refusal.status, headers)
