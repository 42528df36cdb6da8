"""A world is a list of responders: they are asked in order, and the first answer to an effect counts.

    faults ─▶ stubs of llm, http, human ─▶ tools, handlers, agents, … by name ─▶ MCP servers ─▶ backend
                                           (stubs, or the real thing)                           (recorded, or real)

Three doors lead to such a list: effects of an agent (`scripted`), HTTP clients of real tools in this process
(`intercepted`), and the sockets of `harness serve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from harness.errors import Span, UnscriptedCall
from harness.graph.effects import Answer, Effect
from harness.graph.model import State

if TYPE_CHECKING:
    from harness.world.faults import Faults
    from harness.world.spec import WorldSpec


class Responder(Protocol):
    """May answer effects."""

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """The answer to an effect; None when another responder is to be asked.

        Raises:
            WorldError: nothing may answer it.
        """
        ...

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """For each effect, True if it is known that it would be answered after those before it; uses nothing up."""
        return [False] * len(effects)


class ScriptedResponder(Responder, Protocol):
    """Answers some kinds of effects from a scenario, and explains why when it does not."""

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the world of a turn, in front of what is there."""
        ...

    def covers(self, effect: Effect) -> bool:
        """True if the scenario says who answers effects of this kind and name; uses nothing up."""
        ...

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """The error for an effect that nothing answers; None when it is not of its kinds."""
        ...

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        ...

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Of each stub whose `when` never had a value: why, and where it is."""
        ...


class Responders:
    """A list of responders behind faults. A fault answers with its error, or changes the answer of another."""

    def __init__(self, faults: Faults, responders: Sequence[Responder]) -> None:
        self.faults = faults
        self._responders = responders

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """The first answer of the list; None when there is none.

        Raises:
            WorldError: nothing may answer it.
        """
        active = self.faults.draw(effect)
        for responder in (active, *self._responders):
            answer = await responder.answer(effect, state)
            if answer is not None:
                return active.apply(answer)
        return None

    def can_answer(self, effects: Sequence[Effect], state: State) -> bool:
        """True if each of these would be answered, each stub as often as it may; uses nothing up."""
        left = effects
        for responder in self._responders:
            if not left:
                break
            left = [e for e, found in zip(left, responder.can_answer(left, state), strict=True) if not found]
        return not left
