"""Answers the requests of clients from the stubs of a world, and keeps a list of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from harness.errors import Span, UnscriptedCall
from harness.graph.effects import Answer, Effect, HTTPCall, MCPCall
from harness.serve.worlds import anywhere
from harness.source.display import clip, printable
from harness.world.answers import ScriptedAnswer
from harness.world.faults import Faults
from harness.world.mcp.stubs import MCPStubs
from harness.world.responder import Responders
from harness.world.spec import WorldSpec
from harness.world.stub_lists import StubLists
from harness.world.unscripted import unscripted, without_headers
from harness.world.wire.http import without_keys
from harness.world.wire.reply import ReplyFactory


@dataclass(frozen=True)
class Client:
    """A client program, by the name it gives itself, and what it requests (`POST /v1/messages`)."""

    name: str
    request: str


@dataclass(frozen=True)
class ServedRequest:
    """One request, and what answered it.

    `effect` is the request as stubs see it, None for a request that could not be read. `answered` describes what
    answered, at `span`; empty when nothing did: `problem` is the reason.
    """

    client: Client
    effect: Effect | None = None
    answered: str = ""
    span: Span | None = None
    problem: str = ""

    def __str__(self) -> str:
        # The name of an HTTP call is its path, which stands there already.
        name = f" {self.effect.name}" if self.effect and not isinstance(self.effect, HTTPCall) else ""
        client = f" ({self.client.name})" if self.client.name else ""
        place = f" ({self.span})" if self.span else ""
        result = f"{self.answered}{place}" if self.answered else self.problem.partition("\n")[0]
        return printable(f"{clip(self.client.request + name, 160)}{client} -> {clip(result, 400)}")


class StubResponder:
    """Answers effects from the faults and the `llm`, `http` and `mcp` stubs of worlds, and keeps a list of them.

    Args:
        worlds: the stubs of the first come first; node matchers always hold, and hosts of HTTP stubs do not count.
        seed: draws the faults.
        on_request: is given every request as soon as it is answered; `requests` then stays empty, so that a server
            that runs for days does not grow.
    """

    def __init__(
        self,
        worlds: Sequence[WorldSpec],
        *,
        seed: int = 0,
        on_request: Callable[[ServedRequest], object] | None = None,
    ) -> None:
        self.worlds = [anywhere(world) for world in worlds]
        self.requests: list[ServedRequest] = []
        self.closing = asyncio.Event()
        self.replies = ReplyFactory()
        self.mcp = MCPStubs()
        self._lists = StubLists()
        self._on_request = on_request
        faults = Faults(seed)
        for world in self.worlds:
            faults.add(world.faults)
        for world in reversed(self.worlds):
            self._lists.put_in_front(world)
            self.mcp.put_in_front(world.mcp)
        self._responders = Responders(faults, (self._lists, self.mcp))

    async def answer(self, effect: Effect, client: Client) -> Answer:
        """The answer to an effect; whoever carries it to the client waits for its latency.

        Raises:
            UnscriptedCall: nothing answers.
        """
        answer = await self._responders.answer(effect, {})
        if answer is None:
            error = self._unscripted(effect)
            near = error.nearest
            place = f" (nearest stub: {near.span or near.description})" if near else ""
            self._keep(ServedRequest(client, without_keys(effect), problem=f"nothing answers{place}"))
            raise error
        assert isinstance(answer, ScriptedAnswer)
        self._keep(ServedRequest(client, without_keys(effect), answer.description, answer.span))
        return answer

    def refused(self, client: Client, problem: str) -> None:
        """Keep a request that never reached the stubs."""
        self._keep(ServedRequest(client, problem=problem))

    async def wait(self, seconds: float) -> bool:
        """Wait real seconds; False when the server is stopped meanwhile."""
        if seconds <= 0:
            return not self.closing.is_set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.closing.wait(), seconds)
        return not self.closing.is_set()

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        return [*self._lists.unused(), *self.mcp.unused()]

    def _keep(self, request: ServedRequest) -> None:
        if self._on_request is None:
            self.requests.append(request)
        else:
            with suppress(OSError):  # nobody reads the log any more: that is no reason not to answer
                self._on_request(request)

    def _unscripted(self, effect: Effect) -> UnscriptedCall:
        if isinstance(effect, MCPCall):
            return unscripted(effect, self.mcp.nearest(effect, {}), f"add a stub under `mcp.{effect.server}`")
        error = self._lists.unscripted(without_headers(effect), {})
        assert error is not None
        return error
