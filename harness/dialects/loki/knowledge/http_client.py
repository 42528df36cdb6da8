"""HTTP requests of a knowledge base, which are effects of the node that searches it."""

from __future__ import annotations

from harness.engine.context import NodeContext
from harness.graph.effects import HTTPCall, HTTPReply


class HTTPClient:
    """An HTTP client for one visit of a node. `all_live`: no request was answered by a stub or recorded."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self.all_live = True

    async def send(self, call: HTTPCall) -> HTTPReply:
        """Send a request and return the response, whatever its status.

        Raises:
            Exception: the request failed without a response.
        """
        self.all_live = self.all_live and self._ctx.asks_live(call)
        reply: HTTPReply = await self._ctx.perform(call)
        return reply
