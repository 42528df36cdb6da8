"""A world is a list of responders. They are asked in order; the first that answers an effect is used.

    faults ─▶ stubs of llm, http, human ─▶ tools, handlers, agents, … by name ─▶ MCP servers ─▶ backend
                                           (stubs, or the real thing)                           (recorded, or live)

Such a list has three callers: the effects of an agent (`scripted`), the HTTP clients of real tools in this process
(`tool_requests`), and the sockets of `harness serve`.
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
    """Answers some effects."""

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer to an effect; None if the next responder is to be asked.

        Raises:
            WorldError: no responder may answer it.
        """
        ...

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """Return True for each effect that would be answered for certain after the effects before it.

        Consumes nothing.
        """
        return [False] * len(effects)


class ScriptedResponder(Responder, Protocol):
    """Answers some kinds of effects from a scenario, and makes the error for effects without an answer."""

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the world of a turn, in front of the existing stubs."""
        ...

    def covers(self, effect: Effect) -> bool:
        """True if the scenario has stubs or an entry for effects of this kind and name. Consumes nothing."""
        ...

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """Return the error for an effect that nothing answers; None for kinds that this responder does not answer."""
        ...

    def unused(self) -> list[str]:
        """Return a description of each stub with uses left."""
        ...

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub whose `when` could never be evaluated."""
        ...


class Responders:
    """A list of responders with fault injection: a fault answers with its error, or changes another's answer."""

    def __init__(self, faults: Faults, responders: Sequence[Responder]) -> None:
        self.faults = faults
        self._responders = responders

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the first answer of the list; None if there is none.

        Raises:
            WorldError: no responder may answer it.
        """
        active = self.faults.draw(effect)
        for responder in (active, *self._responders):
            answer = await responder.answer(effect, state)
            if answer is not None:
                return active.apply(answer)
        return None

    def can_answer(self, effects: Sequence[Effect], state: State) -> bool:
        """True if all effects would be answered, in this order. Consumes nothing."""
        left = effects
        for responder in self._responders:
            if not left:
                break
            left = [e for e, found in zip(left, responder.can_answer(left, state), strict=True) if not found]
        return not left
