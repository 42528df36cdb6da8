"""One run's HTTP: played from what was recorded, or really sent and recorded.

Requests come from the intercepted clients (`harness.interception`), which know how to send them. A recorded one
answers once, the first that matches, in the order they were asked in.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from itertools import count
from threading import Lock

from harness.errors import CassetteError
from harness.interception.interceptor import Interceptor
from harness.interception.messages import Request, Sent
from harness.interception.real_effects import current_effects, refuse
from harness.recording.interactions import Interaction

Place = tuple[int, int]
"""Where an interaction stands among the others: its effect, and its number."""


class HTTPRecorder(Interceptor):
    """The HTTP interactions of one recording.

    Args:
        recorded: what may be played.
        find: the index of the recorded interaction that answers a request in a turn, of those not yet used, if any.
        sends: whether a request that nothing recorded matches is really sent.
        refuse: makes the error for such a request where it is not sent, from it and the indices already used.
        seen: gets each interaction that was recorded, as soon as it is over.
        keeps: whether what is recorded is kept and played some day; otherwise streams may pass as they come.
        spent: makes the error for a request that is not to be sent, since there is no budget for it.
    """

    def __init__(
        self,
        recorded: Sequence[Interaction],
        find: Callable[[Request, int, Container[int]], int | None],
        *,
        sends: bool,
        mismatch_error: Callable[[Request, set[int]], CassetteError],
        on_recorded: Callable[[Interaction], object] = lambda _: None,
        buffers_streams: bool = True,
        budget_error: Callable[[Request], CassetteError | None] = lambda _: None,
    ) -> None:
        self.turn = 1
        self.buffers_streams = buffers_streams
        self._recorded = tuple(recorded)
        self._find = find
        self._sends = sends
        self._mismatch_error = mismatch_error
        self._on_recorded = on_recorded
        self._budget_error = budget_error
        self._used: set[int] = set()
        self._places = count()
        self._log: dict[Place, Interaction] = {}  # what was asked, with what was answered
        self._lock = Lock()  # tools ask from threads

    def interactions(self) -> tuple[Interaction, ...]:
        """What was asked in this run and what was answered: effect by effect, of each in the order it was asked in.

        Clients of effects side by side may come in another order each time, since they use threads.
        """
        return tuple(self._log[place] for place in sorted(self._log))

    @property
    def added(self) -> bool:
        """Whether anything was asked that was not played."""
        return len(self._log) > len(self._used)

    def asked(self) -> list[Interaction]:
        """What was really sent."""
        played = {id(interaction) for interaction in self._recorded}
        return [interaction for interaction in self._log.values() if id(interaction) not in played]

    def unused(self) -> list[Interaction]:
        """What was recorded and not played."""
        return [interaction for index, interaction in enumerate(self._recorded) if index not in self._used]

    def claim(self, request: Request) -> Interaction | None:
        """The recorded interaction that answers, used up with this; None when the request is to be sent.

        Raises:
            Unanswerable: nothing recorded answers, and nothing may be sent, or no budget is left for it.
        """
        with self._lock:
            index = self._find(request, self.turn, self._used)
            if index is not None:
                self._used.add(index)
                self._log[self._next_place()] = self._recorded[index]
                return self._recorded[index]
            error = self._budget_error(request) if self._sends else self._mismatch_error(request, self._used)
            if error is None:
                return None
        refuse(error)

    def _next_place(self) -> Place:
        effects = current_effects()
        return effects[-1].number if effects else 0, next(self._places)

    def begin(self, request: Request) -> Place:
        """A request is sent; gives its place. One that neither ends nor is dropped was given up."""
        with self._lock:
            place = self._next_place()
            self._log[place] = Interaction(request, None, self.turn)
        return place

    def end(self, place: Place, sent: Sent, seconds: float) -> None:
        """A request that was sent is over."""
        with self._lock:
            self._log[place] = replace(
                self._log[place],
                response=sent.response,
                duration_s=seconds,
                chunks_s=sent.chunks_s,
                failure=sent.failure,
            )
            self._on_recorded(self._log[place])

    def drop(self, place: Place) -> None:
        """A request was not made after all, or nobody can tell what became of it."""
        with self._lock:
            del self._log[place]
