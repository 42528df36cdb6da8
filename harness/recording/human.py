"""Replies of people: asked for at the terminal while recording, replayed from then on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from threading import Lock
from typing import Any

from harness.errors import UnscriptedCall
from harness.graph.effects import Effect, HumanCall
from harness.graph.to_json import to_json
from harness.graph.world import Answer
from harness.recording.interactions import HumanReply
from harness.secrets.encodings import match_placeholders
from harness.time.paced import in_thread

Ask = Callable[[str, Mapping[str, Any]], str]
"""A function that asks a person. It gets the node's name and the question's `args`, and returns the text typed.

It raises EOFError if nobody will answer. It is called in a daemon thread, so that a run can end while a person
thinks.
"""


@dataclass(eq=False, repr=False)
class HumanRecorder:
    """Replays the replies of one recording, and asks for those that are missing.

    Args:
        recorded: the replies of the existing recording.
        ask: asks a person a question without a recorded reply; None if nobody can be asked.
        comparable: converts the `args` of a question to the form in which questions are compared.
        on_reply: called with each reply that a person gives.
    """

    recorded: InitVar[Sequence[HumanReply]]
    ask: Ask | None
    comparable: Callable[[Any], Any]
    on_reply: Callable[[HumanReply], object] = lambda _: None
    turn: int = 1
    asks: bool = True
    """False in a turn whose missing replies come with the next input."""
    asked: int = 0
    """The number of questions put to a person."""
    replies: list[HumanReply] = field(default_factory=list)
    """The replies of this run, in order, replayed ones included."""
    unused: list[HumanReply] = field(default_factory=list)
    """The recorded replies that were not replayed."""
    _one_at_a_time: Lock = field(default_factory=Lock)

    def __post_init__(self, recorded: Sequence[HumanReply]) -> None:
        self.unused = list(recorded)

    def has_answers(self, effects: Sequence[Effect]) -> bool:
        """Return True if every question has a recorded reply, or a person can be asked for it. Consumes nothing."""
        if not all(isinstance(effect, HumanCall) for effect in effects):
            return False
        left = list(self.unused)
        for effect in effects:
            found = self._find(effect, left)
            if found is not None:
                left.remove(found)
            elif self.ask is None or not self.asks:
                return False
        return True

    async def answer(self, effect: HumanCall) -> Answer | None:
        """Return the reply to a question; None if there is none. Waiting for a person takes no virtual time.

        Raises:
            UnscriptedCall: the person did not answer.
        """
        found = self._find(effect, self.unused)
        if found is not None:
            self.unused.remove(found)
        elif self.ask is not None and self.asks:
            self.asked += 1
            try:
                typed = await in_thread(partial(self._ask_person, effect), "asks a person")
            except EOFError:
                hint = "nobody answered at the terminal"
                raise UnscriptedCall(f"the question of node {effect.node!r}", None, hint) from None
            found = HumanReply(effect.node, to_json(effect.args), _read(typed), self.turn)
            self.comparable(found.reply)  # the scrubber behind it learns the secrets in the reply
            self.on_reply(found)
        else:
            return None
        self.replies.append(found)
        return Answer(value=found.reply)

    def _ask_person(self, effect: HumanCall) -> str:
        assert self.ask is not None
        with self._one_at_a_time:
            return self.ask(effect.node, effect.args)

    def _find(self, effect: Effect, replies: Sequence[HumanReply]) -> HumanReply | None:
        asked = self.comparable(to_json(effect.args))
        for reply in replies:
            if reply.node == effect.node and reply.turn in (None, self.turn):
                same = self.comparable(reply.asked) == asked
                if same or match_placeholders(reply.asked, asked) is not None:
                    return reply
        return None


def _read(typed: str) -> Any:
    """Parse a JSON list, mapping or boolean; return any other text unchanged."""
    try:
        value = json.loads(typed)
    except ValueError:
        return typed
    return value if isinstance(value, (dict, list, bool)) else typed
