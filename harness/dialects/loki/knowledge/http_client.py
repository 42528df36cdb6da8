"""HTTP requests of a knowledge base, as effects of the node that searches it."""

from __future__ import annotations

from harness.engine.context import NodeContext
from harness.graph.effects import HTTPCall, HTTPReply


class HTTPClient:
    """Sends requests in one visit of a node. `all_live`: none was answered by a stub or kept in a recording."""

    def __init__(self, ctx: NodeContext) -> None:
        self._ctx = ctx
        self.all_live = True

    async def send(self, call: HTTPCall) -> HTTPReply:
        """The answer, whatever its status.

        Raises:
            Exception: none came.
        """
        self.all_live = self.all_live and self._ctx.asks_live(call)
        reply: HTTPReply = await self._ctx.perform(call)
        return reply
