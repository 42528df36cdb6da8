"""Faults: errors, delays and truncation put around answers. Drawn from the seed, so a run repeats exactly."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Final

from harness.graph.effects import Answer, Effect, HTTPReply, LLMReply
from harness.graph.model import State
from harness.matchers.glob import last_part_matches, name_matches
from harness.world.answers import ScriptedAnswer
from harness.world.failures import to_exception
from harness.world.mcp.tools import MCPResult
from harness.world.spec import FaultSpec


class Faults:
    """The faults of one run. Each counts the effects it could have hit."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._faults: list[FaultSpec] = []
        self._seen: list[int] = []
        self._struck: list[bool] = []
        self._random: list[random.Random] = []
        self._lock = Lock()  # real tools ask from threads, beside the loop

    def add(self, faults: Sequence[FaultSpec]) -> None:
        """Add a turn's faults; they count from here."""
        for fault in faults:
            self._random.append(random.Random(f"{self._seed}/{len(self._faults)}"))
            self._faults.append(fault)
            self._seen.append(0)
            self._struck.append(False)

    def never_struck(self) -> Iterator[tuple[FaultSpec, int]]:
        """The faults that hit nothing, each with the number of effects that it could have hit."""
        for fault, seen, struck in zip(self._faults, self._seen, self._struck, strict=True):
            if not struck:
                yield fault, seen

    def strike(self, effect: Effect) -> Strike:
        """The faults that hit this effect. Every matching effect is counted, hit or not."""
        if not self._faults:
            return _NO_STRIKE
        with self._lock:
            return Strike(
                [fault for index, fault in enumerate(self._faults) if self._hits(index, fault, effect)]
            )

    def _hits(self, index: int, fault: FaultSpec, effect: Effect) -> bool:
        if fault.effect != effect.kind:
            return False
        if fault.node is not None and not last_part_matches(fault.node, effect.node):
            return False
        if fault.name is not None and not name_matches(effect.kind, fault.name, effect.name):
            return False
        self._seen[index] += 1
        hits = self._is_hit(index, fault)
        self._struck[index] = self._struck[index] or hits
        return hits

    def _is_hit(self, index: int, fault: FaultSpec) -> bool:
        """Whether the effect that was seen last is hit."""
        if fault.nth is not None:
            return self._seen[index] == fault.nth
        if fault.every is not None:
            return self._seen[index] % fault.every == 0
        return self._random[index].random() < (1.0 if fault.rate is None else fault.rate)


class Strike:
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

    def changed(self, answer: Answer) -> Answer:
        """The answer made slower or shorter. `truncate` is the number of characters of text that are left."""
        for fault in self._faults:
            if fault.latency_s is not None:
                answer = replace(answer, latency_s=answer.latency_s + fault.latency_s)
            if fault.truncate is not None and answer.error is None:
                answer = replace(answer, value=_cut(answer.value, fault.truncate))
        return answer


_NO_STRIKE: Final = Strike(())


def _cut(value: object, length: int) -> object:
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
