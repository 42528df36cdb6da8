"""The server itself: uvicorn on a port of its own, in the foreground or beside a test."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from harness.errors import FormatError, Problem
from harness.serve.hosts import AllowedHosts
from harness.serve.mcp import scripted
from harness.serve.responder import ServedRequest, StubResponder
from harness.serve.worlds import chosen
from harness.source.extras import import_extra
from harness.world.spec import WorldSpec

_PATIENCE_S: Final = 1.0
"""Real seconds that connections have to end by themselves."""

_PROVIDERS: Final = ("openai", "anthropic")
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


@dataclass(frozen=True)
class Serving:
    """A server that is answering. `url` is `http://HOST:PORT`."""

    url: str
    responder: StubResponder

    @property
    def openai_url(self) -> str:
        """What an OpenAI client takes for its `base_url`."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """What an Anthropic client takes for its `base_url`."""
        return self.url

    @property
    def mcp_urls(self) -> dict[str, str]:
        """Where each scripted MCP server is, over streamable HTTP."""
        return {name: f"{self.url}/mcp/{quote(name)}" for name in scripted(self.responder)}

    @property
    def requests(self) -> list[ServedRequest]:
        """The requests so far, in order, and what answered them."""
        return list(self.responder.requests)

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        return self.responder.unused()


def responder_for(
    target: str | Path | WorldSpec, *, on_request: Callable[[ServedRequest], object] | None = None
) -> StubResponder:
    """The responder for `FILE`, `FILE::NAME` or a world.

    Raises:
        FormatError: the file cannot be used, or does not say which of its scenarios is meant.
    """
    if isinstance(target, WorldSpec):
        return StubResponder([target], on_request=on_request)
    scenario = chosen(target)
    worlds = [*(turn.world for turn in scenario.turns), scenario.world]
    return StubResponder(worlds, seed=scenario.seed, on_request=on_request)


@contextmanager
def serving(
    target: str | Path | WorldSpec, *, host: str = "127.0.0.1", port: int = 0, allow_hosts: Sequence[str] = ()
) -> Iterator[Serving]:
    """Serve the stubs of a scenario (`FILE`, `FILE::NAME`) or of a world while inside, from a thread of its own.

    Port 0 is any that is free. Requests may name the hosts of `allow_hosts` beside those of this machine; `*` is any.

    Raises:
        ExtraMissing: the extra `serve` is not installed.
        FormatError: the file cannot be used, it does not say which of its scenarios is meant, or nobody can listen
            there (`cannot-listen`).
        WorldError: an MCP tool's schema is not a valid JSON Schema.
    """
    ready = threading.Event()
    server, listening, served = _prepared(
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
    """Serve until SIGINT or SIGTERM. `ready` is called once clients are answered and signals end it.

    Raises: as `serving`.
    """
    server, listening, _ = _prepared(responder, host, port, allow_hosts, ready)
    with listening, suppress(KeyboardInterrupt):
        server.run([listening])


def _prepared(
    responder: StubResponder,
    host: str,
    port: int,
    allow_hosts: Sequence[str],
    ready: Callable[[Serving], object],
) -> tuple[Any, socket.socket, Serving]:
    """The server, the socket it listens on, and where that is. `ready` is called from its loop once it answers."""
    _check_extra()
    from harness.serve.app import build_app

    transports: dict[Any, asyncio.Transport] = {}

    def drop(client: Any) -> None:
        transport = transports.get(client)
        if transport is not None:
            transport.abort()

    app = build_app(responder, drop, AllowedHosts(allow_hosts))
    listening = _listening(host, port)
    shown = _WILDCARDS.get(host, host)
    shown = f"[{shown}]" if ":" in shown else shown
    served = Serving(f"http://{shown}:{listening.getsockname()[1]}", responder)
    return _server(app, responder, transports, lambda: ready(served)), listening, served


def _check_extra() -> None:
    for name in ("starlette", "uvicorn"):
        import_extra(name, "serve", "to serve")


def _import_providers() -> None:
    """Import what answers to their clients are made of. It takes seconds; an answer waits for what is left of it."""
    for name in _PROVIDERS:
        with suppress(ImportError):
            import_module(name)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        hint = "port 0 is any that is free"
        raise FormatError(
            Problem("cannot-listen", f"cannot listen on {host}:{port}: {why}", hint=hint)
        ) from None


def _server(
    app: Any,
    responder: StubResponder,
    transports: dict[Any, asyncio.Transport],
    ready: Callable[[], object],
) -> Any:
    import uvicorn

    from harness.serve.connections import BoundedConnection
    from harness.serve.prompt_server import PromptServer

    class Server(PromptServer):
        """Says when it can be asked, and does not wait for those that wait for ever."""

        async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
            await super().startup(list(sockets or ()))
            ready()
            if any(world.llm for world in responder.worlds):
                threading.Thread(target=_import_providers, name="import providers", daemon=True).start()

        async def shutdown(self, sockets: Sequence[socket.socket] | None = None) -> None:
            responder.closing.set()
            asyncio.get_running_loop().call_later(_PATIENCE_S, self._leave)
            await super().shutdown(list(sockets or ()))

        def _leave(self) -> None:
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
