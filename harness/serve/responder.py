"""Answers the requests of clients from the stubs of a world, and logs them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem, Span, UnscriptedCall
from harness.graph.effects import Effect, HTTPCall, MCPCall
from harness.graph.world import Answer
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.settings import load_settings
from harness.source.display import clip, nearest_names, printable
from harness.source.document import shown_path
from harness.world.entries import StubLists, unscripted, without_headers
from harness.world.mcp.servers import MCPStubs
from harness.world.responder import Faults, Responders
from harness.world.spec import ScriptedAnswer, WorldSpec
from harness.world.stub_models import HTTPStub
from harness.world.wire.format import ReplyFactory
from harness.world.wire.http import without_keys

_SCHEME_AND_HOST: Final = re.compile(r"[^/]*://[^/]*")
_HOST: Final = re.compile(r"[^/]*[.:][^/]*(?=/)")


def load_scenario(target: str | Path) -> Scenario:
    """Return the scenario `FILE::NAME`, or the only one in `FILE`.

    Raises:
        FormatError: the file cannot be used, it has no scenario NAME (`unknown-scenario`), or it has several and
            none is named (`which-scenario`).
    """
    file, named, name = str(target).partition("::")
    loaded = load_file(Path(file), load_settings(Path(file).parent))
    scenarios = {scenario.name: scenario for scenario in loaded.scenarios}
    if named and name in scenarios:
        return scenarios[name].whole()
    if named:
        message = f"no scenario '{name}' in {shown_path(file)}"
        raise FormatError(Problem("unknown-scenario", message, hint=nearest_names(name, scenarios)))
    if len(scenarios) > 1:
        message = f"{shown_path(file)} has {len(scenarios)} scenarios, and one is served"
        listed = "\n    ".join(f"{shown_path(file)}::{known}" for known in scenarios)
        raise FormatError(Problem("which-scenario", message, hint=f"name it:\n    {listed}"))
    return next(iter(scenarios.values())).whole()


def without_nodes(world: WorldSpec) -> WorldSpec:
    """Return the world for requests whose node is unknown, and whose host is the server.

    Node matchers of stubs and faults are removed, and the `url` of an HTTP stub is reduced to its path.
    """
    servers = {}
    for name, server in world.mcp.items():
        tools = [
            tool.model_copy(update={"stubs": [stub.for_any_node() for stub in tool.stubs]})
            for tool in server.tools
        ]
        servers[name] = server.model_copy(update={"tools": tools})
    return WorldSpec.model_construct(
        llm=[stub.for_any_node() for stub in world.llm],
        http=[_by_path(stub.for_any_node()) for stub in world.http],
        mcp=servers,
        faults=[fault.model_copy(update={"node": None}) for fault in world.faults],
    )


def _by_path(stub: HTTPStub) -> HTTPStub:
    """`https://shop.example/items/*` becomes `/items/*`."""
    if stub.url is None:
        return stub
    found = _SCHEME_AND_HOST.match(stub.url) or _HOST.match(stub.url)
    if found is None:
        return stub
    path = stub.url[found.end() :]
    return stub.model_copy(update={"url": path or ("*" if stub.url.endswith("*") else "/")})


@dataclass(frozen=True)
class Client:
    """A client: the name in its user agent, and its request (`POST /v1/messages`)."""

    name: str
    request: str


@dataclass(frozen=True)
class ServedRequest:
    """A request and its answer.

    effect    the request as stubs see it; None if it could not be read
    answered  a description of the stub or fault that answered, at `span`; "" if nothing did
    problem   the reason if nothing answered
    """

    client: Client
    effect: Effect | None = None
    answered: str = ""
    span: Span | None = None
    problem: str = ""

    def __str__(self) -> str:
        # The name of an HTTP call is its path, which is part of the client's request already.
        name = f" {self.effect.name}" if self.effect and not isinstance(self.effect, HTTPCall) else ""
        client = f" ({self.client.name})" if self.client.name else ""
        place = f" ({self.span})" if self.span else ""
        result = f"{self.answered}{place}" if self.answered else self.problem.partition("\n")[0]
        return printable(f"{clip(self.client.request + name, 160)}{client} -> {clip(result, 400)}")


class StubResponder:
    """Answers effects from the faults and the `llm`, `http` and `mcp` stubs of worlds, and logs them.

    Args:
        worlds: the worlds, in the order in which their stubs are tried. Node matchers always match, and hosts of HTTP
            stubs are ignored.
        seed: seed of the faults.
        on_request: called with each request as soon as it is answered. `requests` then stays empty, so that the
            memory of a long-running server does not grow.
    """

    def __init__(
        self,
        worlds: Sequence[WorldSpec],
        *,
        seed: int = 0,
        on_request: Callable[[ServedRequest], object] | None = None,
    ) -> None:
        self.worlds = [without_nodes(world) for world in worlds]
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
            self.mcp.put_in_front(world)
        self._responders = Responders(faults, (self._lists, self.mcp))

    async def answer(self, effect: Effect, client: Client) -> Answer:
        """Return the answer to an effect. The caller must wait for its latency.

        Raises:
            UnscriptedCall: nothing answers it.
        """
        answer = await self._responders.answer(effect, {})
        if answer is None:
            error = self._unscripted(effect)
            near = error.nearest
            place = f" (nearest stub: {near.span or near.description})" if near else ""
            self._log(ServedRequest(client, without_keys(effect), problem=f"nothing answers{place}"))
            raise error
        assert isinstance(answer, ScriptedAnswer)
        self._log(ServedRequest(client, without_keys(effect), answer.description, answer.span))
        return answer

    def log_refusal(self, client: Client, problem: str) -> None:
        """Log a request that was refused before it reached the stubs."""
        self._log(ServedRequest(client, problem=problem))

    async def wait(self, seconds: float) -> bool:
        """Wait real seconds; return False if the server is stopped meanwhile."""
        if seconds <= 0:
            return not self.closing.is_set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.closing.wait(), seconds)
        return not self.closing.is_set()

    def unused(self) -> list[str]:
        """Return a text for each stub with uses left, such as `never used: llm: reply: 'hi'`."""
        return [*self._lists.unused(), *self.mcp.unused()]

    def _log(self, request: ServedRequest) -> None:
        if self._on_request is None:
            self.requests.append(request)
        else:
            with suppress(OSError):  # if the log cannot be written, still answer
                self._on_request(request)

    def _unscripted(self, effect: Effect) -> UnscriptedCall:
        if isinstance(effect, MCPCall):
            return unscripted(effect, self.mcp.nearest(effect, {}), f"add a stub under `mcp.{effect.server}`")
        error = self._lists.unscripted(without_headers(effect), {})
        assert error is not None
        return error
