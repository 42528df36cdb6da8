"""What people said: asked at the terminal while recording, and played from then on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from typing import Any

from harness.errors import UnscriptedCall
from harness.graph.effects import Answer, Effect, HumanCall
from harness.graph.to_json import to_json
from harness.recording.interactions import HumanReply
from harness.secrets.placeholders import revealed
from harness.time.clock import real_wait

Ask = Callable[[str, Mapping[str, Any]], str]
"""Asks a person what a node wants to know, from its name and the question's `args`; gives what was typed.

Raises EOFError when nobody will answer. It is called in a thread that nothing waits for, so that a run can be left
while somebody thinks.
"""


class HumanRecorder:
    """The replies of one recording. `ask` asks for what was not recorded; None where there is nobody to ask.

    Questions are compared as `comparable` makes them.
    """

    def __init__(
        self, recorded: Sequence[HumanReply], ask: Ask | None, comparable: Callable[[Any], Any] = to_json
    ) -> None:
        self.turn = 1
        self.asks = True  # whether what was not recorded is asked in this turn
        self._comparable = comparable
        self._recorded = list(recorded)
        self._ask = ask
        self._replies: list[HumanReply] = []
        self.asked = 0  # how often a person was asked
        self._one_at_a_time = Lock()

    def replies(self) -> tuple[HumanReply, ...]:
        """What was said in this run, in order."""
        return tuple(self._replies)

    @property
    def added(self) -> bool:
        """Whether a person was asked."""
        return bool(self.asked)

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
            elif self._ask is None or not self.asks:
                return False
        return True

    async def answer(self, effect: HumanCall) -> Answer | None:
        """The reply to a question; None when there is none. Waiting for a person takes no virtual time.

        Raises:
            UnscriptedCall: the person did not answer.
        """
        found = self._find(effect, self._recorded)
        if found is not None:
            self._recorded.remove(found)
        elif self._ask is not None and self.asks:
            self.asked += 1
            try:
                typed = await self._typed(partial(self._ask, effect.node, effect.args))
            except EOFError:
                hint = "nobody answered at the terminal"
                raise UnscriptedCall(f"the question of node {effect.node!r}", None, hint) from None
            found = HumanReply(effect.node, to_json(effect.args), _read(typed), self.turn)
            self._comparable(found.reply)  # what in it is secret goes by its name from now on
        else:
            return None
        self._replies.append(found)
        return Answer(value=found.reply)

    async def _typed(self, ask: Callable[[], str]) -> str:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()

        def tell(typed: str, error: BaseException | None) -> None:
            if answered.done():
                return
            if error is None:
                answered.set_result(typed)
            else:
                answered.set_exception(error)

        def work() -> None:
            typed, error = "", None
            try:
                with self._one_at_a_time:
                    typed = ask()
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the run was left, and its loop is closed
                loop.call_soon_threadsafe(tell, typed, error)

        with real_wait(no_timeout=True):
            Thread(target=work, name="asks a person", daemon=True).start()
            return await answered

    def _find(self, effect: Effect, replies: Sequence[HumanReply]) -> HumanReply | None:
        asked = self._comparable(to_json(effect.args))
        return next(
            (
                reply
                for reply in replies
                if reply.node == effect.node
                and reply.turn in (None, self.turn)
                and (self._comparable(reply.asked) == asked or revealed(reply.asked, asked) is not None)
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
