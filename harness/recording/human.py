"""Replies of people: asked for at the terminal while recording, replayed from then on."""

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
from harness.secrets.encodings import match_placeholders
from harness.time.clock import real_wait

Ask = Callable[[str, Mapping[str, Any]], str]
"""A function that asks a person. It gets the node's name and the question's `args`, and returns the text typed.

It raises EOFError if nobody will answer. It is called in a daemon thread, so that a run can end while a person
thinks.
"""


class HumanRecorder:
    """Replays the replies of one recording, and asks for those that are missing.

    Args:
        recorded: the replies of the existing recording.
        ask: asks a person a question without a recorded reply; None if nobody can be asked.
        comparable: converts the `args` of a question to the form in which questions are compared.
    """

    def __init__(
        self, recorded: Sequence[HumanReply], ask: Ask | None, comparable: Callable[[Any], Any] = to_json
    ) -> None:
        self.turn = 1
        self.asks = True  # False in a turn whose missing replies come with the next input
        self._comparable = comparable
        self._recorded = list(recorded)
        self._ask = ask
        self._replies: list[HumanReply] = []
        self.asked = 0  # number of questions put to a person
        self._one_at_a_time = Lock()

    def replies(self) -> tuple[HumanReply, ...]:
        """Return the replies of this run, in order, replayed ones included."""
        return tuple(self._replies)

    @property
    def added(self) -> bool:
        """True if a person was asked."""
        return bool(self.asked)

    def unused(self) -> list[HumanReply]:
        """Return the recorded replies that were not replayed."""
        return list(self._recorded)

    def has_answers(self, effects: Sequence[Effect]) -> bool:
        """Return True if every question has a recorded reply, or a person can be asked for it. Consumes nothing."""
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
        """Return the reply to a question; None if there is none. Waiting for a person takes no virtual time.

        Raises:
            UnscriptedCall: the person did not answer.
        """
        found = self._find(effect, self._recorded)
        if found is not None:
            self._recorded.remove(found)
        elif self._ask is not None and self.asks:
            self.asked += 1
            try:
                typed = await self._ask_in_thread(partial(self._ask, effect.node, effect.args))
            except EOFError:
                hint = "nobody answered at the terminal"
                raise UnscriptedCall(f"the question of node {effect.node!r}", None, hint) from None
            found = HumanReply(effect.node, to_json(effect.args), _read(typed), self.turn)
            self._comparable(found.reply)  # the scrubber behind it learns the secrets in the reply
        else:
            return None
        self._replies.append(found)
        return Answer(value=found.reply)

    async def _ask_in_thread(self, ask: Callable[[], str]) -> str:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()

        def resolve(typed: str, error: BaseException | None) -> None:
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
            with suppress(RuntimeError):  # the run has ended and its loop is closed
                loop.call_soon_threadsafe(resolve, typed, error)

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
                and (
                    self._comparable(reply.asked) == asked
                    or match_placeholders(reply.asked, asked) is not None
                )
            ),
            None,
        )


def _read(typed: str) -> Any:
    """Parse a JSON list, mapping or boolean; return any other text unchanged."""
    try:
        value = json.loads(typed)
    except ValueError:
        return typed
    return value if isinstance(value, (dict, list, bool)) else typed
