"""Who answers: the stubs of a world, whatever wire format a request comes in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from harness.draw.escaping import clip, printable
from harness.errors import Nearest, Span, UnscriptedCall
from harness.graph.effects import Answer, Effect, HTTPCall, MCPCall
from harness.secrets import placeholder, secret_header
from harness.serve.worlds import anywhere
from harness.world.answers import answer_of
from harness.world.faults import Faults, distorted
from harness.world.mcp.fake import content_result, structured_result, text_result
from harness.world.scripted import request_text
from harness.world.spec import ErrorAnswer, Stub, WorldSpec
from harness.world.stubs import StubList, describe


@dataclass(frozen=True)
class Asker:
    """Who asked: the client program, as it calls itself, and what it asked (`POST /v1/messages`)."""

    client: str
    where: str


@dataclass(frozen=True)
class Asked:
    """One request, and what answered it.

    `effect` is what the stubs were asked, None for a request that could not be read. `answered` describes what
    answered, at `span`; empty when nothing did, and then `problem` says why.
    """

    client: str
    where: str
    effect: Effect | None = None
    answered: str = ""
    span: Span | None = None
    problem: str = ""

    def __str__(self) -> str:
        # what an HTTP call is called is its path, which stands there already
        name = f" {self.effect.name}" if self.effect and not isinstance(self.effect, HTTPCall) else ""
        client = f" ({self.client})" if self.client else ""
        place = f" ({self.span})" if self.span else ""
        said = f"{self.answered}{place}" if self.answered else self.problem.partition("\n")[0]
        return printable(f"{clip(self.where + name, 160)}{client} -> {clip(said, 400)}")


@dataclass(frozen=True)
class Said:
    """What is answered: a value in the form of the effect's kind, or an error; after `latency_s` seconds."""

    value: Any = None
    error: ErrorAnswer | None = None
    latency_s: float = 0.0


class Desk:
    """Answers effects from a world's `llm`, `http` and `mcp` stubs, and keeps what was asked.

    Args:
        world: the world; what it says of nodes is taken to hold, and hosts of HTTP stubs do not count.
        seed: draws the faults.
        tell: is given every request as soon as it is answered.
    """

    def __init__(
        self, world: WorldSpec, *, seed: int = 0, tell: Callable[[Asked], object] | None = None
    ) -> None:
        self.world = anywhere(world)
        self.requests: list[Asked] = []
        self.closing = asyncio.Event()
        self._tell = tell
        self._faults = Faults(self.world.faults, seed)
        self._replies: Counter[str] = Counter()
        self._calls = count(1)
        self._stubs: dict[tuple[str, ...], StubList] = {
            ("llm",): StubList(self.world.llm, "llm"),
            ("http",): StubList(self.world.http, "http"),
        }
        for name, server in self.world.mcp.items():
            for tool in server.tools:
                stubs = StubList(tool.stubs, f"mcp.{name}.{tool.name}")
                self._stubs["mcp", name, tool.name] = stubs

    def ask(self, effect: Effect, asker: Asker) -> Said:
        """What the world says to an effect; who carries it to the client waits for its latency.

        Raises:
            UnscriptedCall: nothing answers.
        """
        faults = self._faults.strike(effect)
        latency_s = sum(fault.latency_s or 0.0 for fault in faults)
        for fault in faults:
            if fault.error is not None:
                self._keep(asker, effect, f"fault: error {fault.error.kind}", fault.span)
                return Said(error=fault.error, latency_s=latency_s)
        stub = self._taken(effect, asker)
        if stub.error is not None:
            return Said(error=stub.error, latency_s=stub.latency_s + latency_s)
        answer = distorted(_answer(stub, effect), faults)
        return Said(answer.value, latency_s=answer.latency_s)

    def _taken(self, effect: Effect, asker: Asker) -> Stub:
        stubs = self._stubs[_key(effect)]
        stub = stubs.take(effect, {})
        if stub is None:
            unanswered = _unscripted(effect, stubs.nearest(effect, {}))
            near = unanswered.nearest
            place = f" (nearest stub: {near.span or near.description})" if near else ""
            self._keep(asker, effect, "", None, f"nothing answers{place}")
            raise unanswered
        self._keep(asker, effect, describe(stub, stubs.title), stub.span)
        return stub

    def refused(self, asker: Asker, problem: str) -> None:
        """Keep a request that never reached the stubs."""
        self._keep(asker, None, "", None, problem)

    def _keep(
        self, asker: Asker, effect: Effect | None, answered: str, span: Span | None, problem: str = ""
    ) -> None:
        asked = Asked(asker.client, asker.where, effect and _kept(effect), answered, span, problem)
        self.requests.append(asked)
        if self._tell is not None:
            with suppress(OSError):  # nobody reads the log any more: that is no reason not to answer
                self._tell(asked)

    async def wait(self, seconds: float) -> bool:
        """Real seconds; False when the server is told to end meanwhile."""
        if seconds <= 0:
            return not self.closing.is_set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.closing.wait(), seconds)
        return not self.closing.is_set()

    def next_reply(self, provider: str) -> int:
        """The number of an answer of a model of this provider, from 1."""
        self._replies[provider] += 1
        return self._replies[provider]

    def next_call_id(self) -> str:
        """The id of a tool call whose stub gives it none."""
        return f"call_{next(self._calls)}"

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        return [text for stubs in self._stubs.values() for text in stubs.unused()]


def _key(effect: Effect) -> tuple[str, ...]:
    return ("mcp", effect.server, effect.name) if isinstance(effect, MCPCall) else (effect.kind,)


def _answer(stub: Stub, effect: Effect) -> Answer:
    if not isinstance(effect, MCPCall):
        return answer_of(stub, effect.kind)
    if "content" in stub.answer:
        return Answer(content_result(stub.answer["content"]), latency_s=stub.latency_s)
    value = stub.answer.get("return")
    result = text_result(value) if isinstance(value, str) else structured_result(value)
    return Answer(result, latency_s=stub.latency_s)


def _unscripted(effect: Effect, nearest: Nearest | None) -> UnscriptedCall:
    place = f"mcp.{effect.server}" if isinstance(effect, MCPCall) else f"{effect.kind}:"
    asked = effect
    if isinstance(effect, HTTPCall):  # the headers say nothing to people, and may hold a key
        asked = replace(effect, args={key: value for key, value in effect.args.items() if key != "headers"})
    return UnscriptedCall(request_text(asked), nearest, f"add a stub under `{place}`")


def _kept(effect: Effect) -> Effect:
    """The effect without the values of headers that carry keys: stubs see them, nothing that is kept does."""
    headers = effect.args.get("headers")
    if not isinstance(effect, HTTPCall) or not headers:
        return effect
    shown = {name: placeholder(name) if secret_header(name) else value for name, value in headers.items()}
    return replace(effect, args={**effect.args, "headers": shown})
