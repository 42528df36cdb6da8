"""Replays and records the traffic of one run with an MCP server."""

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
from harness.recording.mcp.replay import RecordedExchanges
from harness.world.mcp.connect import connected, options_for, streams_to
from harness.world.mcp.tools import MCPSession
from harness.world.mcp.wire import Message


class MCPRecorder:
    """Replays and records the exchanges with one server in one run. Its sessions are opened one after the other.

    A session raises, on entering or from `list_tools` and `call_tool`: `CassetteMismatch` if no recorded exchange of
    the current `turn` answers, `CassetteMissing` if there is no recording at all.

    Args:
        exchanges: the recorded exchanges, in order.
        server: id of the server, shown in errors.
        hint: how to record it again, shown in errors.
        file: path of the file with the exchanges, shown in errors.
        matcher: compares requests.
        comparable: converts a message to the form in which it is compared, without secrets. It is called with all
            messages in the order they arrive.
        learn: called with the name and value of a secret found at a placeholder of the recording.
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
        # Scrub again: a text that is a secret here need not have been one where it was recorded.
        exchanges = [replace(each, sent=comparable(each.sent)) for each in exchanges]
        self._recorded = RecordedExchanges(
            exchanges, server=server, hint=hint, file=file, matcher=matcher or Matcher()
        )
        self._log: list[Exchange | OpenExchange] = []

    def replaying(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """Return a session that recorded exchanges answer; no process and no socket is opened."""
        return self._session(endpoint, replays=True, reach=None)

    def recording(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """Return a session with the real server, which is recorded.

        Raises (on entering):
            WorldError: the server wants a client certificate.
            MCPFailure: the process or address does not exist, or does not speak MCP.
        """
        return self._session(endpoint, replays=False, reach=lambda: streams_to(endpoint))

    def extending(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """Return a session that recorded exchanges answer; for all other requests the real server is called."""
        return self._session(endpoint, replays=True, reach=lambda: streams_to(endpoint))

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the exchanges of this run, in order, replayed ones included."""
        return tuple(item.exchange() if isinstance(item, OpenExchange) else item for item in self._log)

    @property
    def added(self) -> bool:
        """True if the real server was called."""
        return any(isinstance(item, OpenExchange) for item in self._log)

    def asked(self) -> list[Exchange]:
        """Return the exchanges with the real server."""
        return [item.exchange() for item in self._log if isinstance(item, OpenExchange)]

    def unused(self) -> list[Exchange]:
        """Return the recorded requests that were not replayed."""
        return self._recorded.unused()

    def _session(
        self,
        endpoint: MCPEndpoint,
        *,
        replays: bool,
        reach: Callable[[], AbstractAsyncContextManager[Any]] | None,
    ) -> AbstractAsyncContextManager[MCPSession]:
        # is_external=False: the proxy itself advances the loop's clock by the time the server takes.
        options = options_for(endpoint, is_external=False)
        return connected(Proxy(self, replays=replays, reach=reach).streams(), options)

    # ------------------------------------------------------------------ for the proxy

    def consume(self, message: Message) -> Exchange | None:
        """Consume and return the recorded exchange that answers a message of the client; None if none does."""
        asked = self._comparable(message)
        exchange = self._recorded.consume(asked, self.turn)
        if (
            exchange is None
            and (found := self._recorded.consume_by_placeholders(asked, self.turn)) is not None
        ):
            exchange, secrets = found
            for name, value in secrets.items():
                self._learn(name, value)
        if exchange is not None:
            self._log.append(exchange)
        return exchange

    def mismatch_error(self, request: Message) -> CassetteError:
        """Return the error for a request that no recorded exchange answers."""
        return self._recorded.mismatch_error(self._comparable(request), self.turn)

    def begin(self, message: Message) -> OpenExchange:
        """Begin an exchange with a message that is sent to the server."""
        self._comparable(message)  # the scrubber behind it learns the secrets in the message
        exchange = OpenExchange(message, self.turn)
        self._log.append(exchange)
        return exchange

    def on_message(self, message: Message) -> None:
        """Handle a message of the server as soon as it arrives."""
        self._comparable(message)

    def last(self) -> OpenExchange | None:
        """Return the exchange that was begun last; None if there is none."""
        return next((item for item in reversed(self._log) if isinstance(item, OpenExchange)), None)
