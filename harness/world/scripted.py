"""The world of a scenario: its responders, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import Span, UnscriptedCall
from harness.graph.effects import Answer, Effect, MCPEndpoint, ToolSpec
from harness.graph.model import State
from harness.world.entries import Entries
from harness.world.faults import Faults
from harness.world.mcp.servers import MCPServers
from harness.world.responder import Responder, Responders, ScriptedResponder
from harness.world.scripts import Scripts
from harness.world.spec import FaultSpec, WorldSpec
from harness.world.stub_lists import StubLists

if TYPE_CHECKING:
    from harness.world.backend import Backend


class ScriptedWorld:
    """Answers effects from what a scenario says, and what it does not say from a backend.

    Args:
        spec: the scenario's world.
        seed: draws the faults.
        folders: where `real: pkg.mod.fn` is imported from, in front of `sys.path`.
        backend: the last responder; closed with this world.
    """

    def __init__(
        self,
        spec: WorldSpec,
        *,
        seed: int = 0,
        folders: Sequence[Path] = (),
        backend: Backend | None = None,
    ) -> None:
        self._backend = backend
        self._scripts = Scripts(confined=backend is None or not backend.is_real)
        self.folders = folders
        self._entries = Entries(folders, self._scripts)
        self._servers = MCPServers(backend)
        self._scripted: tuple[ScriptedResponder, ...] = (StubLists(), self._entries, self._servers)
        last: tuple[Responder, ...] = () if backend is None else (backend,)
        faults = Faults(seed)
        self._responders = Responders(faults, (*self._scripted, *last))
        self.stubs = Responders(faults, self._scripted)
        """The list without the backend: it answers HTTP requests of real tools."""
        self.put_in_front(spec)

    def put_in_front(self, spec: WorldSpec) -> None:
        """Add a turn's world in front of what is there."""
        self._responders.faults.add(spec.faults)
        for responder in self._scripted:
            responder.put_in_front(spec)

    async def answer(self, effect: Effect, state: State) -> Answer:
        """Answer an effect.

        Raises:
            UnscriptedCall: nothing answers it.
        """
        answer = await self._responders.answer(effect, state)
        if answer is None:
            raise self.unscripted(effect, state)
        return answer

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall:
        """The error for an effect that nothing answers, with the nearest stub."""
        return next(error for each in self._scripted if (error := each.unscripted(effect, state)))

    def has_answers(self, effects: Sequence[Effect], state: State) -> bool:
        """True if each of these would be answered, each stub as often as it may; uses nothing up."""
        return self._responders.can_answer(effects, state)

    def answers_for(self, effect: Effect) -> bool:
        """True if the scenario says who answers effects of this kind and name; uses nothing up.

        For kinds answered by a stub list: True if there is a stub in it, used or not.
        """
        return any(responder.covers(effect) for responder in self._scripted)

    def uses_backend(self, effect: Effect, state: State) -> bool:
        """True if no stub would answer this effect, and the real thing, or its recording, could."""
        if self._backend is None or not self._backend.is_available or self._entries.has_stubs(effect):
            return False
        return not self.stubs.can_answer([effect], state)

    def asks_live(self, effect: Effect, state: State) -> bool:
        """True if the real thing would answer this effect, and nothing of it is recorded."""
        return self._backend is not None and self._backend.is_live and self.uses_backend(effect, state)

    async def mcp_tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """The tools of an MCP server; connects on first use.

        Raises:
            UnscriptedCall: the scenario says nothing about this server.
            Exception: the server cannot be reached.
        """
        return await self._servers.tools(endpoint)

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        return [text for responder in self._scripted for text in responder.unused()]

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Of each stub whose `when` never had a value: why, and where it is."""
        return [found for responder in self._scripted for found in responder.undecided()]

    def unused_faults(self) -> list[tuple[FaultSpec, int]]:
        """The faults that hit nothing, each with the number of calls that fit it."""
        return list(self._responders.faults.unused_faults())

    def warnings(self) -> list[str]:
        """What the user should know of how the real things were done."""
        return list(self._scripts.warnings)

    async def close(self) -> None:
        """Close the MCP sessions and the clients, and end the scripts, from any task."""
        self._scripts.close()
        await self._servers.close()
        if self._backend is not None:
            await self._backend.close()
