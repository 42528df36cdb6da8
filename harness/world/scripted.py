"""The world of a scenario: its responders in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.errors import Span, UnscriptedCall
from harness.graph.effects import Effect, HTTPCall, MCPEndpoint, ToolSpec
from harness.graph.model import State
from harness.graph.world import Answer
from harness.world.entries import Entries, StubLists
from harness.world.mcp.servers import MCPServers
from harness.world.responder import Faults, LastResponder, Responder, Responders, ScriptedResponder
from harness.world.scripts import Scripts
from harness.world.spec import Fault, WorldSpec

if TYPE_CHECKING:
    from harness.world.backend import Backend

_MOST_TOLD: Final = 3
"""The most warnings for what an import asked in vain."""


class ScriptedWorld:
    """Answers effects from a scenario's stubs and entries, and all others from a backend.

    Args:
        spec: the scenario's world.
        seed: seed of the faults.
        folders: import path of `real: pkg.mod.fn`, in front of `sys.path`.
        backend: the last responder. It is closed with this world.
        last: answers what the stubs leave open, where there is no backend.
    """

    def __init__(
        self,
        spec: WorldSpec,
        *,
        seed: int = 0,
        folders: Sequence[Path] = (),
        backend: Backend | None = None,
        last: LastResponder | None = None,
    ) -> None:
        self._backend = backend
        self.last = last
        self._scripts = Scripts(confined=backend is None or not backend.is_real)
        self.folders = folders
        self._entries = Entries(folders, self._scripts, are_last=last is None)
        self._servers = MCPServers(backend or last, last)
        self._lists = StubLists()
        scripted: tuple[ScriptedResponder, ...] = (self._lists, self._entries, self._servers)
        self._scripted = scripted if last is None else (*scripted, last)
        behind: tuple[Responder, ...] = () if backend is None else (backend,)
        faults = Faults(seed)
        self._responders = Responders(faults, (*self._scripted, *behind))
        self.stubs = Responders(faults, self._scripted)
        """The responders without the backend. They answer HTTP requests of real tools."""
        self.connected: set[str] = set()
        """The ids of the MCP servers whose tools were listed."""
        self._unanswered: list[UnscriptedCall] = []
        self.put_in_front(spec)

    def put_in_front(self, spec: WorldSpec) -> None:
        """Add the world of a turn, in front of the existing stubs."""
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
        """Return the error for an effect that nothing answers, with the nearest stub."""
        found = next(error for each in self._scripted if (error := each.unscripted(effect, state)))
        self._unanswered.append(found)
        return found

    def unanswered_by_import(self) -> list[str]:
        """Return a warning for each call that the import of an app made in vain, and that the app went on without."""
        found = dict.fromkeys(str(error).splitlines()[0].removesuffix(":") for error in self._unanswered)
        return [f"the import of the app went on without an answer: {text}" for text in found][:_MOST_TOLD]

    def has_answers(self, effects: Sequence[Effect], state: State) -> bool:
        """True if all effects would be answered, in this order. Consumes nothing."""
        return self._responders.can_answer(effects, state)

    def answers_for(self, effect: Effect) -> bool:
        """True if the scenario has stubs or an entry for effects of this kind and name. Consumes nothing.

        For kinds with one stub list: True if the list has a stub, used or not.
        """
        return any(responder.covers(effect) for responder in self._scripted)

    def stubs_name_address(self, effect: Callable[[], HTTPCall], state: State) -> bool:
        """True if an `http` stub that names an address would answer a request. Consumes nothing."""
        return self._lists.names_address and self.stubs.can_answer([effect()], state)

    def uses_backend(self, effect: Effect, state: State) -> bool:
        """True if no stub would answer this effect, and the backend could."""
        if self._backend is None or not self._backend.is_available or self._entries.has_stubs(effect):
            return False
        return not self.stubs.can_answer([effect], state)

    def asks_live(self, effect: Effect, state: State) -> bool:
        """True if a real system would answer this effect, without recording it."""
        return self._backend is not None and self._backend.is_live and self.uses_backend(effect, state)

    async def mcp_tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """Return the tools of an MCP server. Connects on first use.

        Raises:
            UnscriptedCall: the scenario has no such server.
            Exception: the server cannot be reached.
        """
        try:
            tools = await self._servers.tools(endpoint)
        except UnscriptedCall as error:
            self._unanswered.append(error)
            raise
        self.connected.add(endpoint.id)
        return tools

    def unused(self) -> list[str]:
        """Return a description of each stub with uses left."""
        return [text for responder in self._scripted for text in responder.unused()]

    def unmet(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub that calls were compared with and never met."""
        return [found for responder in self._scripted for found in responder.unmet()]

    def unused_faults(self) -> list[tuple[Fault, int]]:
        """Return the faults that changed nothing, each with the number of matching calls."""
        return list(self._responders.faults.unused_faults())

    def warnings(self) -> list[str]:
        """Return warnings about the execution of real scripts."""
        return list(self._scripts.warnings)

    async def close(self) -> None:
        """Close the MCP sessions and the clients, and end the scripts. May be called from any task."""
        self._scripts.close()
        await self._servers.close()
        if self._backend is not None:
            await self._backend.close()
