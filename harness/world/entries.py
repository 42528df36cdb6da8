"""The responder for effects with a name (tools, handlers, agents, scripts, retrieval): stubs, or the real thing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness.engine.callables import call_with, contained
from harness.errors import Span, UnscriptedCall, WorldError
from harness.graph.effects import Answer, Effect, HandlerCall, ScriptCall, ToolCall
from harness.graph.model import State
from harness.interception.real_effects import within_effect
from harness.secrets.given import given_to_this_process
from harness.source.display import did_you_mean
from harness.source.imports import ImportProblem, import_object
from harness.world.scripts import Scripts
from harness.world.spec import Entry, WorldSpec
from harness.world.stubs import StubList, can_answer
from harness.world.unscripted import unscripted

# The kind of an effect, and the scenario key that says by name who answers it.
KEYS: Final = {
    "tool": "tools",
    "handler": "handlers",
    "agent": "agents",
    "script": "scripts",
    "retrieval": "retrieval",
}

Layer = StubList | Entry
"""One source of answers for a name: stubs, or an entry for the real thing."""

_NATIVE: Final = Entry(real=True)


class Entries:
    """Answers effects by their name.

    Args:
        folders: import path of `real: pkg.mod.fn`, in front of `sys.path`.
        scripts: runs real scripts.
    """

    def __init__(self, folders: Sequence[Path], scripts: Scripts) -> None:
        self._folders = folders
        self._scripts = scripts
        self._layers: dict[tuple[str, str], list[Layer]] = {}
        self._imported: dict[str, Any] = {}

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the entries of a turn, in front of the existing ones."""
        for kind, key in KEYS.items():
            entries: Mapping[str, Entry] = getattr(world, key)
            for name, entry in entries.items():
                layer: Layer = entry if entry.real else StubList(entry.stubs, f"{key}.{name}")
                self._layers.setdefault((kind, name), []).insert(0, layer)

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer of the first layer for the effect's name: a stub, or the real thing.

        Raises:
            UnscriptedCall: there are stubs for this name, and none of them matches.
            WorldError: the real thing cannot be imported.
        """
        if effect.kind not in KEYS:
            return None
        for layer in self._layers_of(effect):
            if isinstance(layer, StubList):
                if (answer := layer.answer(effect, state)) is not None:
                    return answer
            elif (real := self._real(layer, effect)) is not None:
                return await _perform(real, effect, state)
        if self.has_stubs(effect) and (error := self.unscripted(effect, state)) is not None:
            raise error
        return None

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """Return True for each effect that a stub would answer after the effects before it. Consumes nothing."""
        return can_answer(effects, state, self._stubs_of)

    def covers(self, effect: Effect) -> bool:
        """True if the scenario has an entry for the effect's name or alias."""
        return self._entry(effect) is not None

    def has_stubs(self, effect: Effect) -> bool:
        """True if there are stubs for this name, so that it is an error if none of them answers."""
        return any(isinstance(layer, StubList) for layer in self._entry(effect) or ())

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """Return the error for an effect that nothing answers; None for kinds of effects without entries."""
        if effect.kind not in KEYS:
            return None
        found = [near for stubs in self._stubs_of(effect) if (near := stubs.nearest(effect, state))]
        nearest = min(found, key=lambda near: len(near.reasons), default=None)
        return unscripted(effect, nearest, self._hint(effect))

    def unused(self) -> list[str]:
        """Return a description of each stub with uses left."""
        return [
            text
            for layers in self._layers.values()
            for layer in layers
            if isinstance(layer, StubList)
            for text in layer.unused()
        ]

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub whose `when` could never be evaluated."""
        layers = (layer for layers in self._layers.values() for layer in layers)
        return [found for layer in layers if isinstance(layer, StubList) for found in layer.undecided()]

    def _layers_of(self, effect: Effect) -> Sequence[Layer]:
        found = self._entry(effect)
        if found is not None:
            return found
        # Local sub-agents, scripts and what the dialect itself provides run for real by default.
        native = isinstance(effect, ToolCall) and effect.native
        return [_NATIVE] if native or effect.kind in ("agent", "script") else []

    def _stubs_of(self, effect: Effect) -> list[StubList]:
        return [layer for layer in self._layers_of(effect) if isinstance(layer, StubList)]

    def _entry(self, effect: Effect) -> Sequence[Layer] | None:
        """Return the scenario's layers for the effect's name, else for its alias."""
        found = self._layers.get((effect.kind, effect.name))
        return self._layers.get((effect.kind, effect.alias)) if found is None and effect.alias else found

    def _real(self, entry: Entry, effect: Effect) -> Callable[[], Awaitable[Any]] | None:
        dotted = entry.real
        if not isinstance(dotted, str):
            if isinstance(effect, ScriptCall) and effect.argv:
                return partial(self._scripts.run, effect)
            return effect.real
        if dotted not in self._imported:
            try:
                self._imported[dotted] = import_object(dotted, self._folders)
            except ImportProblem as error:
                # An error in the scenario: a node must not handle it as a failure of its tool.
                raise WorldError(f"`{effect.name}` cannot be real: {error}", entry.span) from error
        return partial(_call, self._imported[dotted], effect)

    def _hint(self, effect: Effect) -> str:
        key = KEYS[effect.kind]
        if any(isinstance(layer, Entry) and layer.real is True for layer in self._entry(effect) or ()):
            known = effect.name if (effect.kind, effect.name) in self._layers else effect.alias
            text = f"`{known}: real` names no function, and the manifest has none: write `{known}: "
            return text + ("package.module.function`" if key in ("tools", "handlers") else "{return: …}`")
        names = [name for kind, name in self._layers if kind == effect.kind]
        about = "" if effect.name in names else _known(effect.name, names)
        return f"add `{effect.name}` under `{key}:`" + (f" ({about})" if about else "")


def _known(name: str, names: Sequence[str]) -> str:
    """Return a suggestion, if there is one, with all known names."""
    hint = did_you_mean(name, names)
    return f"{hint} known: {', '.join(names)}" if hint.startswith("did") else hint


async def _call(target: Any, effect: Effect) -> Any:
    """Call a function that the scenario names in place of the real one."""
    if isinstance(effect, HandlerCall) and effect.convention is not None:
        return await effect.convention(target)
    with given_to_this_process(effect.env if isinstance(effect, ToolCall) else {}):
        return await call_with(target, effect.args)


async def _perform(real: Callable[[], Awaitable[Any]], effect: Effect, state: State) -> Answer:
    """Return the result of the real thing. `SystemExit` and the like become failures of the effect."""
    return Answer(value=await contained(within_effect(real, effect, state)))
