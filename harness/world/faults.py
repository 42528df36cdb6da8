"""Faults: errors, delays and truncation put around answers. Drawn from the seed, so a run repeats exactly."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from harness.graph.effects import Answer, Effect, HTTPReply, LLMReply
from harness.graph.model import State
from harness.matchers.glob import last_part_matches, name_matches
from harness.world.answers import ScriptedAnswer
from harness.world.failures import to_exception
from harness.world.mcp.tools import MCPResult
from harness.world.spec import FaultSpec


@dataclass
class _Fault:
    """A fault, the draws of its own, how many effects it could have hit, and whether it hit one."""

    spec: FaultSpec
    random: random.Random
    seen: int = 0
    has_hit: bool = False

    def hits(self, effect: Effect) -> bool:
        """Whether this effect is hit; it is counted if it could be."""
        spec = self.spec
        if spec.effect != effect.kind:
            return False
        if spec.node is not None and not last_part_matches(spec.node, effect.node):
            return False
        if spec.name is not None and not name_matches(effect.kind, spec.name, effect.name):
            return False
        self.seen += 1
        hit = self._is_hit()
        self.has_hit = self.has_hit or hit
        return hit

    def _is_hit(self) -> bool:
        """Whether the effect that was seen last is hit."""
        if self.spec.nth is not None:
            return self.seen == self.spec.nth
        if self.spec.every is not None:
            return self.seen % self.spec.every == 0
        return self.random.random() < (1.0 if self.spec.rate is None else self.spec.rate)


class Faults:
    """The faults of one run. Each counts the effects it could have hit."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._faults: list[_Fault] = []
        self._lock = Lock()  # real tools ask from threads, beside the loop

    def add(self, faults: Sequence[FaultSpec]) -> None:
        """Add a turn's faults; they count from here."""
        for spec in faults:
            self._faults.append(_Fault(spec, random.Random(f"{self._seed}/{len(self._faults)}")))

    def unused_faults(self) -> Iterator[tuple[FaultSpec, int]]:
        """The faults that hit nothing, each with the number of effects that it could have hit."""
        return ((fault.spec, fault.seen) for fault in self._faults if not fault.has_hit)

    def draw(self, effect: Effect) -> ActiveFaults:
        """The faults that hit this effect. Every matching effect is counted, hit or not."""
        if not self._faults:
            return _NO_FAULTS
        with self._lock:
            return ActiveFaults([fault.spec for fault in self._faults if fault.hits(effect)])


class ActiveFaults:
    """The faults that hit one effect: the first responder of the list."""

    def __init__(self, faults: Sequence[FaultSpec]) -> None:
        self._faults = faults

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """The error of the first fault that has one: then the effect reaches no other responder."""
        for fault in self._faults:
            if fault.error is not None:
                title = f"fault: error {fault.error.kind}"
                return ScriptedAnswer(error=to_exception(fault.error), source=fault, title=title)
        return None

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """False for each: faults are drawn for effects that are performed."""
        return [False] * len(effects)

    def apply(self, answer: Answer) -> Answer:
        """The answer made slower or shorter. `truncate` is the number of characters of text that are left."""
        for fault in self._faults:
            if fault.latency_s is not None:
                answer = replace(answer, latency_s=answer.latency_s + fault.latency_s)
            if fault.truncate is not None and answer.error is None:
                answer = replace(answer, value=_truncate(answer.value, fault.truncate))
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
