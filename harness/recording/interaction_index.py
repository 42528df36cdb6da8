"""Which of the recorded interactions answers a request."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from harness.interception.messages import Request
from harness.recording.interactions import Interaction
from harness.recording.matching import Matcher
from harness.recording.scrubber import Scrubber
from harness.secrets.placeholders import has_placeholder, revealed


class InteractionIndex:
    """Finds, for a request, the first unused recorded one of its turn that matches.

    Of several that match, one that is equal also in what need not be (ids, the port) comes first. Where none does,
    placeholders of secrets in a recorded request may stand for what is in this one, which is known as secret then.
    """

    def __init__(self, recorded: Sequence[Interaction], matcher: Matcher, scrubber: Scrubber) -> None:
        self._recorded = recorded
        self._matcher = matcher
        self._scrubber = scrubber

    def find(self, request: Request, turn: int, used: Container[int]) -> int | None:
        """The index of the recorded interaction that answers; None when there is none."""
        if not self._recorded:
            return None
        asked = self._scrubber.request(request)
        alike = self._by_key.get(self._matcher.key(asked), ())
        free = [index for index in alike if self._is_free(index, turn, used)]
        if len(free) > 1:
            as_it_is = _as_it_is(asked)
            free.sort(key=lambda index: _as_it_is(self._recorded[index].request) != as_it_is)
        return free[0] if free else self._revealing(asked, turn, used)

    def _revealing(self, asked: Request, turn: int, used: Container[int]) -> int | None:
        canonical: Any = None
        for index in self._with_placeholders:
            if self._is_free(index, turn, used):
                canonical = canonical or self._matcher.canonical(asked)
                secrets = revealed(self._matcher.canonical(self._recorded[index].request), canonical)
                if secrets is not None:
                    for name, value in secrets.items():
                        self._scrubber.learn(name, value)
                    return index
        return None

    def _is_free(self, index: int, turn: int, used: Container[int]) -> bool:
        return index not in used and self._recorded[index].turn in (None, turn)

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        by_key: dict[str, list[int]] = {}
        for index, interaction in enumerate(self._recorded):
            # As it would be recorded now: what is secret here need not have been one there.
            by_key.setdefault(self._matcher.key(self._scrubber.request(interaction.request)), []).append(
                index
            )
        return by_key

    @cached_property
    def _with_placeholders(self) -> list[int]:
        return list(self._indices_with_placeholders())

    def _indices_with_placeholders(self) -> Iterator[int]:
        for index, interaction in enumerate(self._recorded):
            request = interaction.request
            if has_placeholder(request.url) or has_placeholder(request.body.decode("latin-1")):
                yield index


def _as_it_is(request: Request) -> tuple[str, Any]:
    """What of a request is compared at last: its place with the port, its body with the ids."""
    try:
        body = json.loads(request.body)
    except ValueError:
        body = request.body
    return urlsplit(request.url).netloc, body
