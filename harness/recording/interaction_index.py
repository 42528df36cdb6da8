"""Finds the recorded interaction that answers a request."""

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
from harness.secrets.placeholders import has_placeholder, match_placeholders


class InteractionIndex:
    """Finds the first unused recorded interaction of the current turn that matches a request.

    Of several matches, one that is also equal in what is not compared (ids, the port) comes first. If none matches, a
    placeholder of a secret in a recorded request may match any text in this one; the text is learnt as a secret.
    """

    def __init__(self, recorded: Sequence[Interaction], matcher: Matcher, scrubber: Scrubber) -> None:
        self._recorded = recorded
        self._matcher = matcher
        self._scrubber = scrubber

    def find(self, request: Request, turn: int, used: Container[int]) -> int | None:
        """Return the index of the interaction that answers a request in this turn; None if there is none.

        Interactions whose index is in `used`, or that were recorded in another turn, do not answer.
        """
        if not self._recorded:
            return None
        asked = self._scrubber.request(request)
        matches = self._by_key.get(self._matcher.key(asked), ())
        free = [index for index in matches if self._is_free(index, turn, used)]
        if len(free) > 1:
            exact = _exact_key(asked)
            free.sort(key=lambda index: _exact_key(self._recorded[index].request) != exact)
        return free[0] if free else self._find_by_placeholders(asked, turn, used)

    def _find_by_placeholders(self, asked: Request, turn: int, used: Container[int]) -> int | None:
        canonical: Any = None
        for index in self._with_placeholders:
            if self._is_free(index, turn, used):
                canonical = canonical or self._matcher.canonical(asked)
                secrets = match_placeholders(
                    self._matcher.canonical(self._recorded[index].request), canonical
                )
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
            # Scrub again: a text that is a secret here need not have been one where it was recorded.
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


def _exact_key(request: Request) -> tuple[str, Any]:
    """Return what decides between several matches: the host with its port, and the body with its ids."""
    try:
        body = json.loads(request.body)
    except ValueError:
        body = request.body
    return urlsplit(request.url).netloc, body
