"""What people said: asked at the terminal while recording, and played from then on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.graph.effects import Answer, Effect, HumanCall
from harness.graph.plain import plain
from harness.world.cassette.interactions import HumanReply

Ask = Callable[[str, Mapping[str, Any]], str]
"""Asks a person what a node wants to know, from its name and the question's `args`; gives what was typed."""


class HumanTape:
    """The replies of one take. `ask` asks for what was not recorded; None where there is nobody to ask.

    Questions are compared as `comparable` makes them.
    """

    def __init__(
        self, recorded: Sequence[HumanReply], ask: Ask | None, comparable: Callable[[Any], Any] = plain
    ) -> None:
        self.turn = 1
        self._comparable = comparable
        self._recorded = list(recorded)
        self._ask = ask
        self._taken: list[HumanReply] = []
        self._has_asked = False

    def taken(self) -> tuple[HumanReply, ...]:
        """What was said in this run, in order."""
        return tuple(self._taken)

    @property
    def added(self) -> bool:
        """Whether a person was asked."""
        return self._has_asked

    def unused(self) -> list[HumanReply]:
        """What was recorded and not played."""
        return list(self._recorded)

    def has_answers(self, effects: Sequence[Effect]) -> bool:
        """Whether each of these questions has a reply, recorded or from somebody who can be asked."""
        if not all(isinstance(effect, HumanCall) for effect in effects):
            return False
        left = list(self._recorded)
        for effect in effects:
            found = self._find(effect, left)
            if found is not None:
                left.remove(found)
            elif self._ask is None:
                return False
        return True

    async def answer(self, effect: HumanCall) -> Answer | None:
        """The reply to a question; None when there is none. Waiting for a person takes no virtual time."""
        found = self._find(effect, self._recorded)
        if found is not None:
            self._recorded.remove(found)
        elif self._ask is not None:
            loop = asyncio.get_running_loop()
            self._has_asked = True
            typed = await loop.run_in_executor(None, self._ask, effect.node, effect.args)
            found = HumanReply(effect.node, plain(effect.args), _read(typed), self.turn)
        else:
            return None
        self._taken.append(found)
        return Answer(value=found.reply)

    def _find(self, effect: Effect, replies: Sequence[HumanReply]) -> HumanReply | None:
        asked = self._comparable(plain(effect.args))
        return next(
            (
                reply
                for reply in replies
                if reply.node == effect.node and reply.turn in (None, self.turn) and reply.asked == asked
            ),
            None,
        )


def _read(typed: str) -> Any:
    """Text, unless it is a JSON list or mapping, true or false."""
    try:
        value = json.loads(typed)
    except ValueError:
        return typed
    return value if isinstance(value, (dict, list, bool)) else typed
