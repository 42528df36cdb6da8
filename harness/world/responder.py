"""A world is a list of responders. They are asked in order; the first that answers an effect is used.

    faults ─▶ stubs of llm, http, human ─▶ tools, handlers, agents, … by name ─▶ MCP servers ─▶ backend
                                           (stubs, or the real thing)                           (recorded, or live)

Such a list has three callers: the effects of an agent (`scripted`), the HTTP clients of real tools in this process
(`tool_requests`), and the sockets of `harness serve`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from harness.errors import Span, UnscriptedCall
from harness.graph.effects import Effect, HTTPReply, LLMReply
from harness.graph.model import State
from harness.graph.world import Answer
from harness.matchers.regex import last_part_matches, name_matches
from harness.world.mcp.tools import MCPResult, Sessions
from harness.world.spec import Fault, ScriptedAnswer

if TYPE_CHECKING:
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

    def unmet(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub that calls were compared with and never met."""
        ...


class LastResponder(ScriptedResponder, Sessions, Protocol):
    """Answers what the scenario leaves open, in place of a backend: MCP servers that it does not have as well."""

    def resume(self) -> Mapping[str, Any] | None:
        """Return what goes on at a static breakpoint, as `Conversation.resume` takes it; None if nobody does."""


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


@dataclass
class _Fault:
    """The state of a fault: its random numbers, the number of effects that match it, and whether it hit one."""

    spec: Fault
    random: random.Random
    matched: int = 0
    has_hit: bool = False

    def hits(self, effect: Effect) -> bool:
        """Count the effect if it matches, and return True if it is hit."""
        spec = self.spec
        if spec.effect != effect.kind:
            return False
        if spec.node is not None and not last_part_matches(spec.node, effect.node):
            return False
        if spec.name is not None and not name_matches(spec.name, effect.name, in_parts=effect.named_in_parts):
            return False
        self.matched += 1
        hit = self._is_hit()
        self.has_hit = self.has_hit or (hit and self.spec.truncate is None)  # a short answer stays as it is
        return hit

    def _is_hit(self) -> bool:
        """Return True if the last matching effect is hit."""
        if self.spec.nth is not None:
            return self.matched == self.spec.nth
        if self.spec.every is not None:
            return self.matched % self.spec.every == 0
        return self.random.random() < (1.0 if self.spec.rate is None else self.spec.rate)


class Faults:
    """The faults of one run. Each counts the effects that match it."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._faults: list[_Fault] = []
        self._lock = Lock()  # real tools make calls from threads

    def add(self, faults: Sequence[Fault]) -> None:
        """Add the faults of a turn; they count effects from now on."""
        for spec in faults:
            self._faults.append(_Fault(spec, random.Random(f"{self._seed}/{len(self._faults)}")))

    def unused_faults(self) -> Iterator[tuple[Fault, int]]:
        """Return the faults that changed nothing, each with the number of matching effects."""
        return ((fault.spec, fault.matched) for fault in self._faults if not fault.has_hit)

    def draw(self, effect: Effect) -> ActiveFaults:
        """Return the faults that hit this effect. Each fault that matches counts the effect, hit or not."""
        if not self._faults:
            return _NO_FAULTS
        with self._lock:
            return ActiveFaults([fault for fault in self._faults if fault.hits(effect)])


class ActiveFaults(Responder):
    """The faults that hit one effect. They are the first responder of the list."""

    def __init__(self, faults: Sequence[_Fault]) -> None:
        self._hit = faults
        self._faults = [fault.spec for fault in faults]

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the error of the first fault that has one, so that no other responder is asked."""
        for fault in self._faults:
            if fault.error is not None:
                title = f"fault: error {fault.error.kind}"
                return ScriptedAnswer(error=fault.error.exception(), source=fault, title=title)
        return None

    def apply(self, answer: Answer) -> Answer:
        """Return the answer, delayed and truncated. `truncate` is the number of characters that remain."""
        for hit in self._hit:
            fault = hit.spec
            if fault.latency is not None:
                answer = replace(answer, latency_s=answer.latency_s + fault.latency)
            if fault.truncate is not None and answer.error is None:
                shorter = _truncate(answer.value, fault.truncate)
                hit.has_hit = hit.has_hit or shorter != answer.value
                answer = replace(answer, value=shorter)
        return answer


_NO_FAULTS: Final = ActiveFaults(())


def _truncate(value: object, length: int) -> object:
    if isinstance(value, str):
        return value[:length]
    if isinstance(value, LLMReply):
        return replace(value, text=value.text[:length], chunks=())
    if isinstance(value, MCPResult):
        blocks = [{**b, "text": b["text"][:length]} if "text" in b else b for b in value.content]
        return replace(value, content=blocks, structured=None)
    if isinstance(value, HTTPReply):
        return replace(value, text=value.text[:length], json=None)
    return value
