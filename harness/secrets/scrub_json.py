"""Takes secrets out of strings and JSON: of data, and of text, of which only the secrets change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.secrets.encodings import Edit, cut, trimmed
from harness.secrets.json_locations import TOP, Location, Locations, may_be_secret
from harness.secrets.json_text import Literal, closed, decoded, literals
from harness.secrets.known_values import KnownValues
from harness.secrets.placeholders import placeholder
from harness.secrets.policy import looks_random, secret_field, words
from harness.secrets.scrub_urls import WHOLE_URL, URLScrubber

JSON = Any

_encoded = json.JSONEncoder(default=str).encode


class JSONScrubber:
    """Scrubs strings and JSON. The values of secret fields become known: repeat until no new value is found."""

    def __init__(self, known: KnownValues) -> None:
        self._known = known
        self.urls = URLScrubber(known, self.string)

    def string(self, text: str) -> str:
        """A string, scrubbed; JSON and URLs inside it too."""
        return self.pieces([text], self._known)[0]

    def data(self, value: JSON) -> JSON:
        """JSON data of any depth, scrubbed."""
        known = self._known_in(value)
        root = [value]
        todo: list[tuple[Any, Any, Location]] = [(root, 0, TOP)]
        while todo:
            holder, at, location = todo.pop()
            item = holder[at]
            if isinstance(item, str):
                if (taken := self._taken(item, location)) is not None:
                    holder[at] = taken
                elif not known.finds_nothing or "://" in item or item.lstrip()[:1] in ("{", "["):
                    holder[at] = self.pieces([item], known)[0]
            elif isinstance(item, Mapping):
                holder[at] = fresh = {}
                inside = location.within(item)
                for key, member in item.items():
                    fresh[known.scrubbed(key) if isinstance(key, str) else key] = member
                todo += [(fresh, key, inside.member(str(key), item)) for key in reversed(fresh)]
            elif isinstance(item, (list, tuple)):
                holder[at] = elements = list(item)
                locations = location.within(None).items(item)
                todo += [(elements, number, locations[number]) for number in reversed(range(len(item)))]
            elif isinstance(item, (int, float)) and not isinstance(item, bool):
                holder[at] = self._number(item, location) or item
        return root[0]

    def _known_in(self, value: JSON) -> KnownValues:
        """What is known and may stand in the data. JSON escapes nothing that values are probed for."""
        try:
            return self._known.within(_encoded(value))
        except (TypeError, ValueError, RecursionError):
            return self._known

    def _taken(self, value: str, location: Location) -> str | None:
        """The placeholder of a string that is a secret by its location."""
        name = "" if location is TOP else location.secret_string(value)
        if not name:
            return None
        if location.name:
            self._known.learn(name, value)
        else:
            if isinstance(location.key, int):
                self._known.learn(name, value)
            if looks_random(value):
                self._known.learn(name, value, read_as="")
        return placeholder(self._known.scrubbed(name))

    def _number(self, number: object, location: Location) -> str | None:
        """The placeholder of a number that is a secret by its location, or is known."""
        name = "" if location is TOP else location.secret_number(number)
        if not name:
            found = self._known.number(number)
            # Now a string, which may be a secret by its location.
            return found and (self._taken(found, location) or found)
        if location.name:
            self._known.learn(name, str(number))
        return placeholder(name)

    def pieces(self, pieces: list[str], known: KnownValues) -> list[str]:
        """A string that may have come in pieces: known values, and what only JSON or a URL in it can tell.

        In such a URL, `key` and `auth` are often no more than words.
        """
        text = "".join(pieces)
        as_json = text.lstrip()[:1] in ("{", "[")
        if as_json and is_json(text):
            return cut(pieces, self._edits([text])[0])
        pieces = cut(pieces, known.edits(text))
        text = "".join(pieces)
        if as_json:
            return cut(pieces, self._edits([text])[0])
        if "://" in text and WHOLE_URL.fullmatch(text):
            return cut(pieces, [trimmed(0, text, self.urls.url(text, secret_field))])
        return pieces

    def json_texts(self, texts: list[str], *, streamed: bool = False) -> list[str]:
        """JSON texts. In the events of a stream, strings at the same path are parts of one."""
        edits = self._edits(texts, streamed=streamed)
        return [cut([text], own)[0] for text, own in zip(texts, edits, strict=True)]

    def _edits(self, texts: list[str], *, streamed: bool = False) -> list[list[Edit]]:
        """What to change in JSON texts."""
        found = [list(literals(text)) for text in texts]
        has_numbers = self._known.has_numbers
        groups: dict[object, list[tuple[int, int]]] = {}
        for number, of_text in enumerate(found):
            for at, literal in enumerate(of_text):
                if literal.kind == "number" and not (has_numbers or may_be_secret(literal.raw)):
                    continue
                path = literal.path() if streamed and literal.kind == "string" else (number, at)
                groups.setdefault(path, []).append((number, at))
        known = self._known.within(
            "\n".join("".join(found[number][at].value for number, at in group) for group in groups.values())
        )
        locations = Locations(known.scrubbed)
        edits: list[list[Edit]] = [[] for _ in texts]
        for group in groups.values():
            parts = [found[number][at] for number, at in group]
            scrubbed = self._group([(part, locations.location(part)) for part in parts], known)
            for (number, _), literal, value in zip(group, parts, scrubbed, strict=True):
                if value != literal.value:
                    edits[number] += _rewritten(literal, value, known)
        return [sorted(own) for own in edits]

    def _group(self, group: list[tuple[Literal, Location]], known: KnownValues) -> list[str]:
        """The strings at one path, or a name or number alone, scrubbed."""
        values = [literal.value for literal, _ in group]
        first, location = group[0]
        if first.kind == "number":
            return [self._number(first.raw, location) or first.raw]
        if first.kind == "name":
            return [known.scrubbed(value) for value in values]
        if len(group) > 1 and words(str(first.name)) == ("token",):
            return self.pieces(values, known)  # a text that comes token by token
        found = [self._taken(literal.value, location) for literal, location in group]
        if all(value is None for value in found):
            return self.pieces(values, known)
        return [
            known.scrubbed(one) if value is None else value for one, value in zip(values, found, strict=True)
        ]


def _rewritten(literal: Literal, value: str, known: KnownValues) -> list[Edit]:
    """The edits that give a literal another value, as few characters of it as can be."""
    if literal.kind == "number":
        return [(literal.start, literal.end, json.dumps(value))]
    exact = known.edits(literal.raw)
    edited = cut([literal.raw], exact)[0]
    # A value with a quote at its end may have matched the one that ends the string.
    if decoded(edited) == value and closed(edited) == closed(literal.raw):
        return [(literal.start + start, literal.start + end, text) for start, end, text in exact]
    return [trimmed(literal.start, literal.raw, literal.written(value))]


def is_json(text: str) -> bool:
    """True if the whole text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
