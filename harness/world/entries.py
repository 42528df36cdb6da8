"""The responder of what has a name: tools, handlers, agents, scripts and retrieval, by stubs or the real thing."""

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
from harness.source.imports import ImportProblem, import_object
from harness.source.suggest import did_you_mean
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
"""Who answers for a name: stubs, or the real thing that an entry names."""

_NATIVE: Final = Entry(real=True)


class Entries:
    """Answers effects by their name.

    Args:
        folders: where `real: pkg.mod.fn` is imported from, in front of `sys.path`.
        scripts: runs the scripts that are real.
    """

    def __init__(self, folders: Sequence[Path], scripts: Scripts) -> None:
        self._folders = folders
        self._scripts = scripts
        self._layers: dict[tuple[str, str], list[Layer]] = {}
        self._imported: dict[str, Any] = {}

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the entries of a turn, in front of those that are there."""
        for kind, key in KEYS.items():
            entries: Mapping[str, Entry] = getattr(world, key)
            for name, entry in entries.items():
                layer: Layer = entry if entry.real else StubList(entry.stubs, f"{key}.{name}")
                self._layers.setdefault((kind, name), []).insert(0, layer)

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """The answer of a stub or of the real thing, whichever the scenario names first for this name.

        Raises:
            UnscriptedCall: there are stubs for just this name, and none of them fits.
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
        """For each effect, True if a stub would answer it after those before it; uses nothing up."""
        return can_answer(effects, state, self._stubs_of)

    def covers(self, effect: Effect) -> bool:
        """True if the scenario has an entry for the effect's name or alias."""
        return self._entry(effect) is not None

    def has_stubs(self, effect: Effect) -> bool:
        """True if there are stubs for just this name: then none of them answering is a mistake."""
        return any(isinstance(layer, StubList) for layer in self._entry(effect) or ())

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """The error for an effect with a name that nothing answers."""
        if effect.kind not in KEYS:
            return None
        found = [near for stubs in self._stubs_of(effect) if (near := stubs.nearest(effect, state))]
        nearest = min(found, key=lambda near: len(near.reasons), default=None)
        return unscripted(effect, nearest, self._hint(effect))

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        return [
            text
            for layers in self._layers.values()
            for layer in layers
            if isinstance(layer, StubList)
            for text in layer.unused()
        ]

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Of each stub whose `when` never had a value: why, and where it is."""
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
        """What the scenario says under the effect's name, else under its alias."""
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
                # The scenario's own mistake: no node may take it for a failure of its tool.
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
    """The name that may be meant, and all there are."""
    hint = did_you_mean(name, names)
    return f"{hint} known: {', '.join(names)}" if hint.startswith("did") else hint


async def _call(target: Any, effect: Effect) -> Any:
    """The answer of a callable that stands in for the real thing."""
    if isinstance(effect, HandlerCall) and effect.convention is not None:
        return await effect.convention(target)
    return await call_with(target, effect.args)


async def _perform(real: Callable[[], Awaitable[Any]], effect: Effect, state: State) -> Answer:
    """The result of the real thing. What would end the harness, as `sys.exit` does, is its own failure."""
    return Answer(value=await contained(within_effect(real, effect, state)))
