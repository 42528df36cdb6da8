"""The Starlette application: the wire format of each path, and errors that close the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from harness.errors import UnscriptedCall, WorldError
from harness.graph.effects import MCPEndpoint
from harness.graph.world import Answer
from harness.serve import mcp
from harness.serve.responder import Client, StubResponder
from harness.source.display import did_you_mean
from harness.world.wire import anthropic_messages, openai_chat
from harness.world.wire.format import Refusal, WireFormat
from harness.world.wire.http import (
    PATHS,
    WireResponse,
    call_of,
    error_response,
    failure_of,
    http_response,
    json_response,
    model_response,
    request_json,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send


ANY: Final = "*"
_LOCAL: Final = "localhost"


class AllowedHosts:
    """The names that are allowed: those of this machine, the address of the connection, and `more`; `*` is any."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = {_plain(name) for name in more}

    def disallowed(self, headers: Iterable[tuple[str, str]], address: str) -> str | None:
        """Return the first host in `Host` or `Origin` that is not allowed; None if all are.

        `address` is the local address of the connection. A missing or invalid `Host` is returned as "".
        """
        if ANY in self._more:
            return None
        hosts = [value for name, value in headers if name == "host"]
        origins = [value for name, value in headers if name == "origin"]
        named = [*(_host_of(f"//{host}") for host in hosts or [""]), *map(_host_of, origins)]
        return next((host for host in named if not self._allows(host, address)), None)

    def _allows(self, host: str, address: str) -> bool:
        if host in self._more or host == _LOCAL or host.endswith(f".{_LOCAL}"):
            return True
        try:
            ip = ip_address(host)
            return ip.is_loopback or ip == ip_address(address)
        except ValueError:  # a name, or an address of another kind
            return False


def _host_of(url: str) -> str:
    """Return the host in a URL; "" if there is none, as in the origin `null`."""
    try:
        return _plain(urlsplit(url).hostname or "") if "@" not in url else ""
    except ValueError:
        return ""


def _plain(name: str) -> str:
    return name.lower().rstrip(".")


_BASES: Final = {"openai": ("/v1",), "mistral": ("/mistral/v1", "/openai/v1")}  # the last is in Groq's client
WIRES: Final = {
    f"{base}{path}": wire
    for protocol, paths in PATHS.items()
    for base in _BASES.get(protocol, ("",))
    for path, wire in paths.items()
}
MAX_BODY_BYTES: Final = 50 * 1024 * 1024
_MAX_READ_BYTES: Final = 2 * MAX_BODY_BYTES

_LONGEST_HOST: Final = 80

Drop = Callable[[Any], None]
"""Closes the connection with a client, given by its address in the ASGI scope."""


def build_app(responder: StubResponder, drop: Drop, hosts: AllowedHosts) -> Starlette:
    """Return the application. It answers requests whose `Host` and `Origin` are among the hosts.

    Raises:
        WorldError: a tool's schema is not a valid JSON Schema.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    endpoints = _Endpoints(responder, drop, hosts)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with endpoints.mcp.open():
            yield

    every = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Starlette(
        routes=[
            *(
                Route(path.replace("*", "{any:path}"), endpoints.model(wire), methods=["POST"])
                for path, wire in WIRES.items()
            ),
            Route("/v1/models", endpoints.guarded(endpoints.models, _provider), methods=["GET"]),
            Route("/mcp/{name:path}", endpoints.guarded(endpoints.tools, _provider), methods=every),
            Route("/{path:path}", endpoints.guarded(endpoints.http, _provider), methods=every),
        ],
        lifespan=lifespan,
    )


class _Endpoints:
    """The endpoints. Each returns an ASGI application that answers one request."""

    def __init__(self, responder: StubResponder, drop: Drop, hosts: AllowedHosts) -> None:
        self.mcp = mcp.MCPOverHTTP(responder)
        self._responder = responder
        self._drop = drop
        self._hosts = hosts

    def model(self, wire: WireFormat) -> Callable[[Request], Awaitable[ASGIApp]]:
        """Return the endpoint of a wire format."""

        async def handler(request: Request) -> ASGIApp:
            body = request_json(f"{_path(request)}?{request.url.query}", await _body(request))
            call = wire.read(body)
            answer = await self._responder.answer(call, _client(request))
            if (hang_up := await self._wait_or_hang_up(answer)) is not None:
                return hang_up
            return _to_starlette(model_response(wire, call, body, answer, self._responder.replies))

        return self.guarded(handler, lambda _request: wire)

    async def models(self, _request: Request) -> ASGIApp:
        """List the models named in stubs, in a form that both providers' clients read."""
        stubs = (stub for world in self._responder.worlds for stub in world.llm)
        named = dict.fromkeys(stub.model for stub in stubs if stub.model)
        names = [name for name in named if not set(name) & set("*?[")]
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "harness"}
            | {"type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
            for name in names
        ]
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return _to_starlette(json_response({"object": "list", "data": data, "has_more": False, **ends}))

    async def tools(self, request: Request) -> ASGIApp:
        """Answer a request to an MCP server."""
        name = request.path_params["name"].rstrip("/")
        if name not in (known := mcp.scripted_servers(self._responder)):
            near = did_you_mean(name, known) or "the scenario scripts none"
            raise Refusal("not_found", f"no MCP server '{name}' is served here ({near})")
        broken = self._responder.mcp.failure(MCPEndpoint(name, "streamable_http"))
        if broken is not None:
            self._responder.log_refusal(_client(request), f"the server has an error: {broken.title}")
            return await self._answered(request, broken)
        if request.method != "POST":  # no server-sent events of its own, and no sessions to end
            raise Refusal("not_found", "an MCP server is asked by POST: it keeps no sessions")
        app: ASGIApp = self.mcp.app(name)
        return app

    async def http(self, request: Request) -> ASGIApp:
        """Answer any other request from the `http` stubs."""
        url = f"{_path(request)}?{request.url.query}"
        call = call_of(request.method, url, dict(request.headers), await _body(request))
        if not any(world.http for world in self._responder.worlds):
            names = mcp.scripted_servers(self._responder)
            usual = [path for path in WIRES if path.startswith("/v1/")]
            others = f"{len(WIRES) - len(usual)} of other providers (docs/serve.md)"
            served = ", ".join((*usual, "/v1/models", *(f"/mcp/{name}" for name in names), others))
            what = f"nothing is served at {request.method} {call.name}"
            raise Refusal("not_found", f"{what}; there are {served}")
        try:
            answer = await self._responder.answer(call, _client(request))
        except UnscriptedCall as error:
            raise _LoggedRefusal("not_found", str(error)) from None
        return await self._answered(request, answer)

    async def _answered(self, request: Request, answer: Answer) -> ASGIApp:
        hang_up = await self._wait_or_hang_up(answer)
        return hang_up or _to_starlette(http_response(_provider(request), answer))

    def guarded(
        self,
        handler: Callable[[Request], Awaitable[ASGIApp]],
        wire_of: Callable[[Request], WireFormat],
    ) -> Callable[[Request], Awaitable[ASGIApp]]:
        """Return the endpoint with all failures converted to errors in the provider's format."""

        async def endpoint(request: Request) -> ASGIApp:
            try:
                self._check_hosts(request)
                return await handler(request)
            except UnscriptedCall as error:
                refusal = Refusal("unscripted", str(error))
            except Refusal as error:
                refusal = error
                if not isinstance(refusal, _LoggedRefusal):
                    self._responder.log_refusal(_client(request), f"{refusal.status}: {refusal}")
            except Exception as error:
                broke = "" if isinstance(error, WorldError) else f"harness broke: {type(error).__name__}: "
                refusal = Refusal("server_error", f"{broke}{error}")
                self._responder.log_refusal(_client(request), str(refusal))
            response = _to_starlette(error_response(wire_of(request), refusal))
            if refusal.kind == "too_large":
                response.headers["connection"] = "close"  # the rest of the body has not been read
            return response

        return endpoint

    def _check_hosts(self, request: Request) -> None:
        address = (request.scope.get("server") or ("",))[0]
        host = self._hosts.disallowed(request.headers.items(), address)
        if host is not None:
            named = f"names the host '{host[:_LONGEST_HOST]}'" if host else "names no host that can be read"
            allowed = "only this machine's own names are answered, and those of --allow-host"
            raise Refusal("forbidden", f"the request {named}; {allowed}")

    async def _wait_or_hang_up(self, answer: Answer) -> ASGIApp | None:
        """Wait for the latency of an answer. Return an application that hangs up if the answer is not a response."""
        failure = failure_of(answer)
        kind = "" if failure is None else failure.kind
        if kind == "timeout":
            return _HangUp(self._responder, self._drop, answer.latency_s or None)
        if not await self._responder.wait(answer.latency_s) or kind == "connection":
            return _HangUp(self._responder, self._drop, 0.0)
        return None


class _LoggedRefusal(Refusal):
    """A refusal of a request that the responder has logged already."""


class _HangUp:
    """Closes the connection after `seconds` without an answer; None waits until the client closes it."""

    def __init__(self, responder: StubResponder, drop: Drop, seconds: float | None) -> None:
        self._responder = responder
        self._drop = drop
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        closing = asyncio.ensure_future(self._responder.closing.wait())
        either: set[asyncio.Future[Any]] = {gone, closing}
        await asyncio.wait(either, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        self._drop(scope.get("client"))
        await gone  # the server would answer itself unless the disconnect was received


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _client(request: Request) -> Client:
    name = request.headers.get("user-agent", "").partition(" ")[0]
    return Client(name[:80], f"{request.method} {request.url.path}")


def _path(request: Request) -> str:
    """Return the path as the client wrote it."""
    return request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0] or request.url.path


def _provider(request: Request) -> WireFormat:
    """Return the wire format for errors at an unknown path, judged by the headers of the client."""
    asks_anthropic = "anthropic-version" in request.headers or "x-api-key" in request.headers
    return anthropic_messages if asks_anthropic else openai_chat


async def _body(request: Request) -> bytes:
    """Read the whole body. More than the limit is read, so that most clients get to read the error.

    Raises:
        Refusal: the body is too large, or the client has left.
    """
    from starlette.requests import ClientDisconnect

    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size <= MAX_BODY_BYTES:
                parts.append(part)
            elif size > _MAX_READ_BYTES:
                break
    except ClientDisconnect:
        raise Refusal("invalid_request", "the client left before its request ended") from None
    if size > MAX_BODY_BYTES:
        raise Refusal("too_large", f"the body is too large: at most {MAX_BODY_BYTES:,} bytes are taken")
    return b"".join(parts)


def _to_starlette(response: WireResponse) -> Response:
    """Return the response for Starlette; a stream is sent with one write per event."""
    from starlette.responses import Response, StreamingResponse

    if not response.streamed:
        return Response(b"".join(response.pieces), response.status, dict(response.headers))

    async def pieces() -> AsyncIterator[bytes]:
        for piece in response.pieces:
            yield piece
            await asyncio.sleep(0)

    return StreamingResponse(pieces(), response.status, dict(response.headers))
