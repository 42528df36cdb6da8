"""Runs the server, uvicorn: in the foreground, or in a thread beside a test."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from harness.errors import FormatError, Problem
from harness.serve.app import AllowedHosts, build_app
from harness.serve.mcp import scripted_servers
from harness.serve.responder import ServedRequest, StubResponder, load_scenario
from harness.source.imports import import_extra
from harness.world.spec import WorldSpec

_GRACE_S: Final = 1.0
"""Real seconds that open connections have on shutdown before they are closed."""

_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


@dataclass(frozen=True)
class Serving:
    """A running server. `url` is `http://HOST:PORT`."""

    url: str
    responder: StubResponder

    @property
    def openai_url(self) -> str:
        """The `base_url` for an OpenAI client."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The `base_url` for an Anthropic client."""
        return self.url

    @property
    def mcp_urls(self) -> dict[str, str]:
        """The URL of each scripted MCP server, for streamable HTTP."""
        return {name: f"{self.url}/mcp/{quote(name)}" for name in scripted_servers(self.responder)}

    @property
    def requests(self) -> list[ServedRequest]:
        """The requests so far, in order, with their answers."""
        return list(self.responder.requests)

    def unused(self) -> list[str]:
        """Return a text for each stub with uses left, such as `never used: llm: reply: 'hi'`."""
        return self.responder.unused()


def responder_for(
    target: str | Path | WorldSpec, *, on_request: Callable[[ServedRequest], object] | None = None
) -> StubResponder:
    """Return the responder for `FILE`, `FILE::NAME` or a world.

    Raises:
        FormatError: the file cannot be used, or it is not clear which of its scenarios is meant.
    """
    if isinstance(target, WorldSpec):
        return StubResponder([target], on_request=on_request)
    scenario = load_scenario(target)
    worlds = [*(turn.world for turn in scenario.turns), scenario.world]
    return StubResponder(worlds, seed=scenario.seed, on_request=on_request)


@contextmanager
def serving(
    target: str | Path | WorldSpec, *, host: str = "127.0.0.1", port: int = 0, allow_hosts: Sequence[str] = ()
) -> Iterator[Serving]:
    """Serve the stubs of a scenario (`FILE`, `FILE::NAME`) or of a world within the context, from a thread.

    Port 0 is any free port. Requests may name the hosts in `allow_hosts` and those of this machine; `*` is any.

    Raises:
        ExtraMissing: the extra `serve` is not installed.
        FormatError: the file cannot be used, it is not clear which of its scenarios is meant, or the port cannot be
            listened on (`cannot-listen`).
        WorldError: an MCP tool's schema is not a valid JSON Schema.
    """
    ready = threading.Event()
    server, listening, served = _prepare(
        responder_for(target), host, port, allow_hosts, lambda _served: ready.set()
    )
    broke: list[BaseException] = []

    def run() -> None:
        try:
            server.run([listening])
        except BaseException as error:
            broke.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="harness serve", daemon=True)
    thread.start()
    try:
        ready.wait()
        if broke:
            raise RuntimeError("the server cannot start") from broke[0]
        yield served
    finally:
        server.end()
        thread.join()
        listening.close()


def serve_until_interrupted(
    responder: StubResponder,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_hosts: Sequence[str] = (),
    ready: Callable[[Serving], object],
) -> None:
    """Serve until SIGINT or SIGTERM. `ready` is called as soon as requests are answered and signals are handled.

    Raises: as `serving`.
    """
    server, listening, _ = _prepare(responder, host, port, allow_hosts, ready)
    with listening, suppress(KeyboardInterrupt):
        server.run([listening])


def _prepare(
    responder: StubResponder,
    host: str,
    port: int,
    allow_hosts: Sequence[str],
    ready: Callable[[Serving], object],
) -> tuple[Any, socket.socket, Serving]:
    """Return the server, its socket, and its description. `ready` is called in its loop as soon as it answers."""
    for name in ("starlette", "uvicorn"):
        import_extra(name, "serve", "to serve")
    transports: dict[Any, asyncio.Transport] = {}

    def drop(client: Any) -> None:
        transport = transports.get(client)
        if transport is not None:
            transport.abort()

    app = build_app(responder, drop, AllowedHosts(allow_hosts))
    listening = _listen(host, port)
    shown = _WILDCARDS.get(host, host)
    shown = f"[{shown}]" if ":" in shown else shown
    served = Serving(f"http://{shown}:{listening.getsockname()[1]}", responder)
    return _server(app, responder, transports, lambda: ready(served)), listening, served


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        text = f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}"
        raise FormatError(Problem("cannot-listen", text, hint="port 0 is any that is free")) from None


def _server(
    app: Any,
    responder: StubResponder,
    transports: dict[Any, asyncio.Transport],
    ready: Callable[[], object],
) -> Any:
    import uvicorn

    from harness.serve.connections import BoundedConnection, ImmediateServer

    class Server(ImmediateServer):
        """Calls `ready` when it is started, and closes connections after a grace period on shutdown."""

        async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
            await super().startup(list(sockets or ()))
            ready()

        async def shutdown(self, sockets: Sequence[socket.socket] | None = None) -> None:
            responder.closing.set()
            asyncio.get_running_loop().call_later(_GRACE_S, self._close_connections)
            await super().shutdown(list(sockets or ()))

        def _close_connections(self) -> None:
            for transport in list(transports.values()):
                transport.abort()

    return Server(
        uvicorn.Config(
            app,
            http=partial(BoundedConnection, transports),  # type: ignore[arg-type]
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
    )
