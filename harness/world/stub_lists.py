"""The responder for `llm`, `http` and `human` effects: one stub list for each of these kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.errors import Span, UnscriptedCall
from harness.graph.effects import Answer, Effect
from harness.graph.model import State
from harness.world.spec import WorldSpec
from harness.world.stubs import StubList, can_answer
from harness.world.unscripted import unscripted

KINDS: Final = ("llm", "http", "human")


class StubLists:
    """Answers model calls, HTTP requests and questions to people."""

    def __init__(self) -> None:
        self._lists = {kind: StubList((), kind) for kind in KINDS}

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the stubs of a turn, in front of the existing ones."""
        for kind, stubs in self._lists.items():
            stubs.put_in_front(getattr(world, kind))

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer of the first stub that matches; None if there is none."""
        stubs = self._lists.get(effect.kind)
        return None if stubs is None else stubs.answer(effect, state)

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """Return True for each effect that a stub would answer after the effects before it. Consumes nothing."""
        return can_answer(effects, state, lambda effect: filter(None, [self._lists.get(effect.kind)]))

    def covers(self, effect: Effect) -> bool:
        """True if there is a stub for this kind, used or not."""
        return bool(self._lists.get(effect.kind))

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """Return the error for an effect that nothing answers; None for other kinds of effects."""
        stubs = self._lists.get(effect.kind)
        if stubs is None:
            return None
        return unscripted(effect, stubs.nearest(effect, state), f"add a stub under `{effect.kind}:`")

    def unused(self) -> list[str]:
        """Return a description of each stub with uses left."""
        return [text for stubs in self._lists.values() for text in stubs.unused()]

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub whose `when` could never be evaluated."""
        return [found for stubs in self._lists.values() for found in stubs.undecided()]
