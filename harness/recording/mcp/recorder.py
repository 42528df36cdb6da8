"""One run's traffic with an MCP server: played from what was recorded, or really sent and recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from harness.errors import CassetteError
from harness.graph.effects import MCPEndpoint
from harness.recording.interactions import Exchange
from harness.recording.matching import Matcher
from harness.recording.mcp.proxy import OpenExchange, Proxy
from harness.recording.mcp.replay import Recorded
from harness.world.mcp.connect import connected, options_for, streams_to
from harness.world.mcp.tools import MCPSession
from harness.world.mcp.wire import Message


class MCPRecorder:
    """The exchanges with one server in one run. Sessions are opened on it one after the other.

    A session raises, from `list_tools` and `call_tool` or on entering: `CassetteMismatch` for what no recorded
    exchange of the current `turn` answers, `CassetteMissing` when nothing was recorded at all.

    Args:
        exchanges: what was recorded before, in order.
        server: the server's id, for people.
        hint: how to record it again, shown in errors.
        file: where `exchanges` stand, for people.
        matcher: tells which requests are the same.
        comparable: makes of a message what recorded ones are compared with, without secrets as they are. It is
            given all messages, in the order they come in.
        learn: is given the name and value of a secret that stands where a recording has its placeholder.
    """

    def __init__(
        self,
        exchanges: Sequence[Exchange] = (),
        *,
        server: str,
        hint: str = "",
        file: str = "",
        matcher: Matcher | None = None,
        comparable: Callable[[Message], Message] = lambda message: message,
        learn: Callable[[str, str], None] = lambda name, value: None,
    ) -> None:
        self.turn = 1
        self._comparable = comparable
        self._learn = learn
        # As they would be recorded now: what is secret here need not have been one there.
        exchanges = [replace(each, sent=comparable(each.sent)) for each in exchanges]
        self._recorded = Recorded(
            exchanges, server=server, hint=hint, file=file, matcher=matcher or Matcher()
        )
        self._log: list[Exchange | OpenExchange] = []

    def replaying(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """A session that what was recorded answers; no process and no socket is opened."""
        return self._session(endpoint, replays=True, reach=None)

    def recording(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """A session with the real server, recorded.

        Raises (on entering):
            WorldError: the server wants a client certificate.
            MCPFailure: there is no such process or address, or it does not speak MCP.
        """
        return self._session(endpoint, replays=False, reach=lambda: streams_to(endpoint))

    def extending(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """A session that what was recorded answers; for the rest the real server is asked, and recorded."""
        return self._session(endpoint, replays=True, reach=lambda: streams_to(endpoint))

    def exchanges(self) -> tuple[Exchange, ...]:
        """What was sent in this run, in order, with what came back; what was replayed as it was recorded."""
        return tuple(item.exchange() if isinstance(item, OpenExchange) else item for item in self._log)

    @property
    def added(self) -> bool:
        """Whether the real server was asked."""
        return any(isinstance(item, OpenExchange) for item in self._log)

    def asked(self) -> list[Exchange]:
        """What the real server was asked."""
        return [item.exchange() for item in self._log if isinstance(item, OpenExchange)]

    def unused(self) -> list[Exchange]:
        """The requests that were recorded and not made."""
        return self._recorded.unused()

    def _session(
        self,
        endpoint: MCPEndpoint,
        *,
        replays: bool,
        reach: Callable[[], AbstractAsyncContextManager[Any]] | None,
    ) -> AbstractAsyncContextManager[MCPSession]:
        # Nothing is outside: the recorder spends on the loop's clock what the server takes.
        options = options_for(endpoint, is_external=False)
        return connected(Proxy(self, replays=replays, reach=reach).streams(), options)

    # ------------------------------------------------------------------ for the proxy

    def play(self, message: Message) -> Exchange | None:
        """The recorded exchange that answers a message of the client, used up with this."""
        asked = self._comparable(message)
        exchange = self._recorded.take(asked, self.turn)
        if exchange is None and (revealed := self._recorded.reveal(asked, self.turn)) is not None:
            exchange, secrets = revealed
            for name, value in secrets.items():
                self._learn(name, value)
        if exchange is not None:
            self._log.append(exchange)
        return exchange

    def refusal(self, request: Message) -> CassetteError:
        """Why nothing recorded answers a request."""
        return self._recorded.refusal(self._comparable(request), self.turn)

    def note(self, message: Message) -> OpenExchange:
        """Begin an exchange with a message that is sent to the server."""
        self._comparable(message)
        exchange = OpenExchange(message, self.turn)
        self._log.append(exchange)
        return exchange

    def hear(self, message: Message) -> None:
        """See a message of the server, as soon as it is there."""
        self._comparable(message)

    def last(self) -> OpenExchange | None:
        """The exchange that was begun last."""
        return next((item for item in reversed(self._log) if isinstance(item, OpenExchange)), None)
