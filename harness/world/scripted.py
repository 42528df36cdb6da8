"""The world of a scenario: stubs, fake MCP servers, where it says so the real thing, and a backend.

Who answers an effect, in this order: a fault, a stub, the real thing that the scenario names, its cassette. When
nobody does, the call is an `UnscriptedCall`; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UnscriptedCall, WorldError
from harness.graph.effects import (
    Answer,
    Effect,
    LLMCall,
    MCPCall,
    MCPEndpoint,
    ScriptCall,
    ToolCall,
    ToolSpec,
)
from harness.graph.messages import message_text
from harness.graph.model import State
from harness.interception.real_effects import within_effect
from harness.source.imports import ImportProblem, import_object
from harness.source.suggest import did_you_mean
from harness.world.answers import answer_of
from harness.world.faults import Faults, distorted, refusal
from harness.world.mcp.servers import MCPServers
from harness.world.scripts import Scripts
from harness.world.spec import Entry, Stub, WorldSpec
from harness.world.stubs import StubList

if TYPE_CHECKING:
    from harness.world.backend import Backend

# The scenario keys that map a name to who answers for it, and the kind of effect they answer.
ENTRY_KINDS = {
    "tool": "tools",
    "handler": "handlers",
    "agent": "agents",
    "script": "scripts",
    "retrieval": "retrieval",
}
LIST_KINDS = ("llm", "http", "human")

Layer = StubList | str | bool
"""Who answers for a name: stubs, the callable at a dotted path, or (True) the one the manifest names."""


class ScriptedWorld:
    """Answers effects from what a scenario wrote.

    Args:
        spec: the scenario's world.
        seed: draws the faults.
        folders: where `real: pkg.mod.fn` is imported from, in front of `sys.path`.
        backend: answers what the scenario does not; closed with this world.
    """

    def __init__(
        self,
        spec: WorldSpec,
        *,
        seed: int = 0,
        folders: Sequence[Path] = (),
        backend: Backend | None = None,
    ) -> None:
        self._folders = folders
        self._backend = backend
        self._faults = Faults(spec.faults, seed)
        self._lists = {kind: StubList(getattr(spec, kind), kind) for kind in LIST_KINDS}
        self._entries: dict[tuple[str, str], list[Layer]] = {}
        self._imported: dict[str, Any] = {}
        self._mcp = MCPServers(backend)
        self._scripts = Scripts(confined=backend is None or not backend.is_real)
        self._add_entries(spec)

    def put_in_front(self, spec: WorldSpec) -> None:
        """Add a turn's world in front of what is there."""
        self._faults.add(spec.faults)
        for kind, stubs in self._lists.items():
            stubs.put_in_front(getattr(spec, kind))
        self._add_entries(spec)

    def _add_entries(self, spec: WorldSpec) -> None:
        for kind, key in ENTRY_KINDS.items():
            entries: Mapping[str, Entry] = getattr(spec, key)
            for name, entry in entries.items():
                layer: Layer = entry.real or StubList(entry.stubs, f"{key}.{name}")
                self._entries.setdefault((kind, name), []).insert(0, layer)
        self._mcp.put_in_front(spec.mcp)

    async def answer(self, effect: Effect, state: State) -> Answer:
        """Answer an effect.

        Raises:
            UnscriptedCall: nothing answers it.
        """
        faults = self._faults.strike(effect)
        refused = refusal(faults)
        if refused is not None:
            return refused
        return distorted(await self._answered(effect, state), faults)

    async def _answered(self, effect: Effect, state: State) -> Answer:
        if isinstance(effect, MCPCall):
            return await self._mcp.call(effect, state)
        for layer in self._layers(effect):
            if isinstance(layer, StubList):
                stub = layer.take(effect, state)
                if stub is not None:
                    return answer_of(stub, effect.kind)
            elif (real := self._real(layer, effect)) is not None:
                return await _really(real)
        if self._backend is not None and not self._is_scripted(effect):
            answer = await self._backend.answer(effect)
            if answer is not None:
                return answer
        found = [
            near for stubs in self._stubs_for(effect) if (near := stubs.nearest(effect, state)) is not None
        ]
        nearest = min(found, key=lambda near: len(near.reasons)) if found else None
        hint = ", ".join(filter(None, (self._hint(effect), effect.hint)))
        raise UnscriptedCall(request_text(effect), nearest, hint)

    def _is_scripted(self, effect: Effect) -> bool:
        """Whether there are stubs for just this name: then none of them answering is a mistake."""
        return any(isinstance(layer, StubList) for layer in self._entry(effect) or ())

    def has_answers(self, effects: Sequence[Effect], state: State) -> bool:
        """Whether all of these would be answered, each stub as often as it may; uses nothing up."""
        taken: list[tuple[StubList, Stub]] = []
        without: list[Effect] = []
        try:
            for effect in effects:
                found = next(
                    (
                        (stubs, stub)
                        for stubs in self._stubs_for(effect)
                        if (stub := stubs.take(effect, state))
                    ),
                    None,
                )
                if found is None:
                    without.append(effect)
                else:
                    taken.append(found)
            return not without or (self._backend is not None and self._backend.has_answers(without))
        finally:
            for stubs, stub in taken:
                stubs.put_back(stub)

    def answers_for(self, effect: Effect) -> bool:
        """Whether the scenario says who answers effects of this kind and name; uses nothing up.

        For kinds answered by a stub list: whether there is a stub in it, used or not.
        """
        if isinstance(effect, MCPCall):
            return self._mcp.knows(effect.server)
        if effect.kind in self._lists:
            return bool(self._lists[effect.kind])
        return self._entry(effect) is not None

    def uses_backend(self, effect: Effect, state: State) -> bool:
        """Whether no stub would answer this effect, and the real thing, or its recording, could."""
        if self._backend is None or not self._backend.has_anything or self._is_scripted(effect):
            return False
        for stubs in self._stubs_for(effect):
            if (stub := stubs.take(effect, state)) is not None:
                stubs.put_back(stub)
                return False
        return True

    def _stubs_for(self, effect: Effect) -> list[StubList]:
        return [layer for layer in self._layers(effect) if isinstance(layer, StubList)]

    def _layers(self, effect: Effect) -> Sequence[Layer]:
        """Who could answer, in order: stub lists, and True or a dotted path for the real thing."""
        if effect.kind in self._lists:
            return [self._lists[effect.kind]]
        found = self._entry(effect)
        if found is not None:
            return found
        # Local sub-agents, scripts and what the dialect itself provides run for real by default.
        native = isinstance(effect, ToolCall) and effect.native
        return [True] if native or effect.kind in ("agent", "script") else []

    def _entry(self, effect: Effect) -> Sequence[Layer] | None:
        """What the scenario says under the effect's name, else under its alias."""
        found = self._entries.get((effect.kind, effect.name))
        return self._entries.get((effect.kind, effect.alias)) if found is None and effect.alias else found

    def _real(self, layer: str | bool, effect: Effect) -> Callable[[], Awaitable[Any]] | None:
        if not isinstance(layer, str):
            if isinstance(effect, ScriptCall) and effect.argv:
                return partial(self._scripts.run, effect)
            return effect.real
        if layer not in self._imported:
            try:
                self._imported[layer] = import_object(layer, self._folders)
            except ImportProblem as error:
                # The scenario's own mistake: no node may take it for a failure of its tool.
                raise WorldError(f"`{effect.name}` cannot be real: {error}") from None
        target = self._imported[layer]

        async def call() -> Any:
            return await effect.ask(target)

        return call

    def _hint(self, effect: Effect) -> str:
        key = ENTRY_KINDS.get(effect.kind)
        if key is None:
            return f"add a stub under `{effect.kind}:`"
        if True in (self._entry(effect) or ()):
            told = effect.name if (effect.kind, effect.name) in self._entries else effect.alias
            text = f"`{told}: real` names no function, and the manifest has none: write `{told}: "
            return text + ("package.module.function`" if key in ("tools", "handlers") else "{return: …}`")
        names = [name for kind, name in self._entries if kind == effect.kind]
        about = "" if effect.name in names else _known(effect.name, names)
        return f"add `{effect.name}` under `{key}:`" + (f" ({about})" if about else "")

    async def mcp_tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """The tools of an MCP server; connects on first use.

        Raises:
            UnscriptedCall: the scenario says nothing about this server.
            Exception: the server cannot be reached.
        """
        return await self._mcp.tools(endpoint)

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        left = [text for stubs in self._lists.values() for text in stubs.unused()]
        for layers in self._entries.values():
            left += [text for stubs in layers if isinstance(stubs, StubList) for text in stubs.unused()]
        return left + self._mcp.unused()

    def warnings(self) -> list[str]:
        """What the user should know of how the real things were done."""
        return list(self._scripts.warnings)

    async def close(self) -> None:
        """Close the MCP sessions and the clients, and end the scripts, from any task."""
        self._scripts.close()
        await self._mcp.close()
        if self._backend is not None:
            await self._backend.close()


def _known(name: str, names: Sequence[str]) -> str:
    """The name that may be meant, and all there are."""
    hint = did_you_mean(name, names)
    return f"{hint} known: {', '.join(names)}" if hint.startswith("did") else hint


async def _really(real: Callable[[], Awaitable[Any]]) -> Answer:
    """Do the real thing. A call to `sys.exit` in it is its own failure, not the end of the harness."""
    try:
        return Answer(value=await within_effect(real))
    except SystemExit as stop:
        return Answer(error=RuntimeError(f"it called sys.exit({stop.code!r})"))


def request_text(effect: Effect) -> str:
    """An effect in a few lines, for people."""
    where = f" in node {effect.node!r}" if effect.node else ""
    if isinstance(effect, LLMCall):
        lines = [f"the call of model {effect.name!r}{where}, with {_count(effect.messages)}:"]
        shown = effect.messages[-3:]
        if len(effect.messages) > len(shown):
            lines.append("    …")
        lines += [f"    {message.type}: {_short(message_text(message), 160)}" for message in shown]
        if effect.tools:
            lines.append(f"    tools: {', '.join(tool.name for tool in effect.tools)}")
        return "\n".join(lines)
    args = ", ".join(f"{key}={_short(repr(value), 80)}" for key, value in effect.args.items())
    return f"{effect.kind} {effect.name}({args}){where}"


def _count(messages: Sequence[Any]) -> str:
    return "1 message" if len(messages) == 1 else f"{len(messages)} messages"


def _short(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
