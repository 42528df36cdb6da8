"""Replays and records the HTTP requests of one run.

Requests come from the intercepted clients (`harness.interception`), which also send them. A recorded interaction
answers once; of several that match a request, the one recorded first answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from harness.errors import CassetteError, OwnerEnded
from harness.interception.interceptor import Interceptor, NoPermit, Permit
from harness.interception.messages import Request, SendResult
from harness.interception.real_effects import current_effects, raise_unanswerable
from harness.recording.interactions import Interaction
from harness.recording.matching import Matcher
from harness.recording.permits import PermitSource
from harness.recording.scrubber import Scrubber
from harness.secrets.encodings import has_placeholder, match_placeholders

Place = tuple[int, int]
"""The position of an interaction in the log: the number of its effect, and its own number."""


@dataclass(eq=False, repr=False)
class HTTPRecorder(Interceptor):
    """Replays the HTTP interactions of one recording, and records new ones.

    Args:
        recorded: the interactions that may be replayed.
        find: returns the index of the recorded interaction that answers a request, from the request, the turn and the
            indices already used; None if there is none.
        sends: send a request that no recorded interaction answers.
        mismatch_error: makes the error for such a request if it is not sent, from the request and the used indices.
        on_recorded: called with each recorded interaction as soon as it is complete.
        on_received: called before that, as soon as the response has arrived.
        buffers_streams: read streamed bodies to their end, to save them; otherwise they are passed through.
        source: the permits for requests that are sent; None if they need none.
    """

    recorded: Sequence[Interaction]
    find: Callable[[Request, int, Container[int]], int | None]
    sends: bool
    mismatch_error: Callable[[Request, set[int]], CassetteError]
    on_recorded: Callable[[Interaction], object] = lambda _: None
    on_received: Callable[[Interaction], object] = lambda _: None
    buffers_streams: bool = True
    source: PermitSource | None = None
    turn: int = 1
    _used: set[int] = field(default_factory=set)
    _places: Iterator[int] = field(default_factory=count)
    _log: dict[Place, Interaction] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)  # tools make requests from threads

    def interactions(self) -> tuple[Interaction, ...]:
        """Return the interactions of this run, ordered by effect and then by request.

        The order of requests of concurrent effects may differ from run to run, since clients use threads.
        """
        return tuple(self._log[place] for place in sorted(self._log))

    @property
    def added(self) -> bool:
        """True if a request was made that was not replayed."""
        return len(self._log) > len(self._used)

    def asked(self) -> list[Interaction]:
        """Return the interactions that were really sent."""
        played = {id(interaction) for interaction in self.recorded}
        return [interaction for interaction in self._log.values() if id(interaction) not in played]

    def unused(self) -> list[Interaction]:
        """Return the recorded interactions that were not replayed."""
        return [interaction for index, interaction in enumerate(self.recorded) if index not in self._used]

    def claim(self, request: Request) -> Interaction | None:
        """Consume and return the recorded interaction that answers; None if the request is to be sent.

        Raises:
            Unanswerable: no recorded interaction answers, and the request may not be sent.
        """
        with self._lock:
            index = self.find(request, self.turn, self._used)
            if index is not None:
                self._used.add(index)
                self._log[self._next_place()] = self.recorded[index]
                return self.recorded[index]
            if self.sends:
                return None
            error = self.mismatch_error(request, self._used)
        raise_unanswerable(error)

    def _next_place(self) -> Place:
        effects = current_effects()
        return effects[-1].number if effects else 0, next(self._places)

    def permit(self, request: Request, *, patient: bool) -> Permit:
        """See `Interceptor`.

        Raises:
            Unanswerable: nobody gives permits any more.
        """
        if self.source is None:
            return NoPermit()
        try:
            return self.source.permit(request, patient=patient)
        except OwnerEnded as error:
            raise_unanswerable(error)

    def begin(self, request: Request) -> Place:
        """Log a request that is being sent, and return its position.

        If neither `end` nor `drop` follows, it is recorded as abandoned by its client.
        """
        with self._lock:
            place = self._next_place()
            self._log[place] = Interaction(request, None, self.turn)
        return place

    def end(self, place: Place, sent: SendResult, seconds: float) -> None:
        """Log the result of a request that was sent, after so many real seconds."""
        with self._lock:
            self._log[place] = _completed(self._log[place], sent, seconds)
            self.on_recorded(self._log[place])

    def received(self, place: Place, sent: SendResult, seconds: float) -> None:
        """See `Interceptor`."""
        self.on_received(_completed(self._log[place], sent, seconds))

    def drop(self, place: Place) -> None:
        """Remove a request from the log: it was not made, or its result is unknown."""
        with self._lock:
            del self._log[place]


def _completed(begun: Interaction, sent: SendResult, seconds: float) -> Interaction:
    return replace(
        begun,
        response=sent.response,
        duration_s=seconds,
        chunks_s=sent.chunks_s,
        failure=sent.failure,
    )


class InteractionIndex:
    """Finds the first unused recorded interaction of the current turn that matches a request.

    Of several matches, one that is also equal in what is not compared (ids, the port) comes first. If none matches, a
    placeholder of a secret in a recorded request may match any text in this one; the text is learnt as a secret.
    """

    def __init__(self, recorded: Sequence[Interaction], matcher: Matcher, scrubber: Scrubber) -> None:
        self.recorded, self.matcher, self.scrubber = recorded, matcher, scrubber

    def find(self, request: Request, turn: int, used: Container[int]) -> int | None:
        """Return the index of the interaction that answers a request in this turn; None if there is none.

        Interactions whose index is in `used`, or that were recorded in another turn, do not answer.
        """
        if not self.recorded:
            return None
        asked = self.scrubber.request(request)
        matches = self._by_key.get(self.matcher.key(asked), ())
        free = [index for index in matches if self._is_free(index, turn, used)]
        if len(free) > 1:
            exact = _exact_key(asked)
            free.sort(key=lambda index: _exact_key(self.recorded[index].request) != exact)
        return free[0] if free else self._find_by_placeholders(asked, turn, used)

    def _find_by_placeholders(self, asked: Request, turn: int, used: Container[int]) -> int | None:
        canonical: Any = None
        for index in self._with_placeholders:
            if self._is_free(index, turn, used):
                canonical = canonical or self.matcher.canonical(asked)
                secrets = match_placeholders(self.matcher.canonical(self.recorded[index].request), canonical)
                if secrets is not None:
                    for name, value in secrets.items():
                        self.scrubber.learn(name, value)
                    return index
        return None

    def _is_free(self, index: int, turn: int, used: Container[int]) -> bool:
        return index not in used and self.recorded[index].turn in (None, turn)

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        by_key: dict[str, list[int]] = {}
        for index, interaction in enumerate(self.recorded):
            # Scrub again: a text that is a secret here need not have been one where it was recorded.
            key = self.matcher.key(self.scrubber.request(interaction.request))
            by_key.setdefault(key, []).append(index)
        return by_key

    @cached_property
    def _with_placeholders(self) -> list[int]:
        requests = ((index, one.request) for index, one in enumerate(self.recorded))
        return [
            index
            for index, request in requests
            if has_placeholder(request.url) or has_placeholder(request.body.decode("latin-1"))
        ]


def _exact_key(request: Request) -> tuple[str, Any]:
    """Return what decides between several matches: the host with its port, and the body with its ids."""
    try:
        body = json.loads(request.body)
    except ValueError:
        body = request.body
    return urlsplit(request.url).netloc, body
