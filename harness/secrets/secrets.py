"""Takes secrets out of texts, JSON data, headers, URLs and bodies."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson

from harness.secrets import event_stream
from harness.secrets.bodies import decoded, encoded
from harness.secrets.cut_values import without_cut_values
from harness.secrets.encodings import cut
from harness.secrets.environment import Variables
from harness.secrets.json_fields import Location, parsed, rewritten, strings, written
from harness.secrets.known_values import KnownValues
from harness.secrets.multipart import Part, parts
from harness.secrets.placeholders import placeholder, placeholders_in
from harness.secrets.policy import (
    is_secret_variable,
    looks_random,
    may_name_secrets,
    secret_field,
    secret_header,
    secret_parameter,
)
from harness.secrets.text_fields import secrets_in
from harness.secrets.urls import WHOLE_URL, URLScrubber

JSON = Any
T = TypeVar("T")

_URL_HEADERS: Final = frozenset({"location", "content-location", "referer"})
_JSON_LINES: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"}
)
# Every name that a value may have in JSON or in prose; the first of a pair.
_NAMES: Final = re.compile(r"(?<![\w.-])([\w.-]{2,80}+)(?:\\*[\"'])?\s*[=:,]")


class Secrets:
    """Replaces secrets in texts, JSON, headers, URLs and bodies.

    A secret found in a field, header or parameter is known from then on. It may stand in what was scrubbed before:
    scrub everything twice and keep the second result, or `learn` it first.

    `variables` are those of an environment, or what is known of them. `named` are names or patterns (`ACME_*`) of
    those that are secret from 3 characters on, others are from 6; `public` of those that are not secret.
    Nothing here raises for any text, bytes or JSON, and scrubbing twice changes nothing more.
    """

    def __init__(
        self,
        variables: Mapping[str, str] | Variables,
        named: Sequence[str] = (),
        public: Sequence[str] = (),
    ) -> None:
        if not isinstance(variables, Variables):
            environment, variables = variables, Variables(named, public)
            variables.add(environment)
        self._named, self._public = tuple(named), tuple(public)
        self._variables = variables
        self._know(KnownValues(variables.likely))

    def _know(self, known: KnownValues) -> None:
        self._known = known
        self._urls = URLScrubber(known, self.string)

    def add(self, environment: Mapping[str, str]) -> None:
        """Add variables that are written where everybody reads them: only their names make them secret."""
        variables = Variables(self._named, self._public)
        variables.add(environment)
        self._known.include(variables.known)

    def limited(self, names: Collection[str]) -> Secrets:
        """The same but for variables that neither their names nor `names`, of placeholders, tell to be secret.

        For what must not depend on whatever variables a machine has: digests.
        """
        limited = copy.copy(self)
        known = KnownValues(self._variables.known)
        known.include(self._variables.likely, names)
        known.include(self._known)
        limited._know(known)
        return limited

    def apart(self) -> Secrets:
        """The same secrets, but what it learns from now on is not known here."""
        apart = copy.copy(self)
        apart._know(KnownValues(parent=self._known))
        return apart

    @property
    def unprotected(self) -> Collection[str]:
        """The variables for secrets whose values are too short, or too common words, to be searched for."""
        return self._variables.weak

    def guessed_in(self, scrubbed: object) -> Iterator[str]:
        """The variables that have a placeholder in what was scrubbed, but no name that is one for secrets."""
        guesses = self._variables.likely.names
        marks = placeholders_in(str(scrubbed)) if guesses else ()
        yield from (name for name in guesses if placeholder(name) in marks)

    def learn(self, name: str, value: str) -> None:
        """Search everywhere for what a field, header or parameter held, unless other texts may have it too.

        Of `Bearer X` that is X, of `Basic X` the password, of cookies their values.
        """
        self._known.learn(name, value)

    def text(self, text: str) -> str:
        """The text with each known value replaced, however it is encoded, and what stands under a secret name."""
        return self._pieces([text], self._known)[0]

    def string(self, text: str) -> str:
        """A text that may be JSON or a URL as a whole."""
        return self._string(text, self._known)

    def data(self, value: JSON) -> JSON:
        """JSON data, its strings, keys and secret fields scrubbed; JSON and URLs in strings are looked into."""
        return self._settled(lambda: self._data(value))

    def without_cut_values(self, value: JSON) -> JSON:
        """JSON data in texts of which a cut (`…`) may have left a part of a secret that is known."""
        return value if self._known.finds_nothing else without_cut_values(value, self._known.by_value)

    def may_be_in(self, value: JSON) -> bool:
        """False if `data` would change nothing, as a search of the text of all of it shows; that is fast."""
        return self._possible_in(value) is not None

    def variable(self, name: str, value: str) -> str:
        """The value of an environment variable, where the variable itself is written.

        By its name alone it is a secret, however short or common the value. Of others only what is secret in them
        is replaced.
        """
        if value and is_secret_variable(name, value, self._named, self._public):
            return placeholder(name)
        return self.url(value) if WHOLE_URL.fullmatch(value) else self.data(value)

    def header(self, name: str, value: str) -> str:
        """The value of a header."""
        if value and secret_header(name):
            self.learn(name.lower(), value)
            return placeholder(name.lower())
        return self.url(value) if name.lower() in _URL_HEADERS else self.text(value)

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """All headers, names as they are."""
        pairs = list(headers)
        return self._settled(lambda: [(name, self.header(name, value)) for name, value in pairs])

    def url(self, url: str) -> str:
        """A URL, its userinfo and secret parameters replaced; placeholders in it are percent-encoded."""
        return self._settled(lambda: self._urls.url(url))

    def body(self, body: bytes, content_type: str) -> bytes:
        """The body of a request or response, not compressed: the same bytes but for what is replaced."""
        text, codec = decoded(body, content_type)
        scrubbed = self._settled(lambda: self._body(text, content_type))
        body = body if scrubbed == text else encoded(scrubbed, codec)
        if not codec and not body.isascii():
            body = self._known.in_bytes(body, "latin-1")
        if not codec and b"\x00" in body:
            body = self._known.in_bytes(self._known.in_bytes(body, "utf-16-le"), "utf-16-be")
        return body

    def _settled(self, scrub: Callable[[], T]) -> T:
        """The result once nothing more is learned."""
        while True:
            before = len(self._known)
            scrubbed = scrub()
            if len(self._known) == before:
                return scrubbed

    # ---------------------------------------------------------------- text

    def _pieces(self, pieces: list[str], known: KnownValues) -> list[str]:
        """A text that may have come in pieces."""
        edits = []
        for name, value, edit in secrets_in("".join(pieces)):
            self.learn(name, value)
            edits.append(edit)
        pieces = cut(pieces, sorted(edits))
        return cut(pieces, known.edits("".join(pieces)))

    def _string(self, text: str, known: KnownValues) -> str:
        if (data := parsed(text)) is not None:
            scrubbed = self._data(data)
            if scrubbed == data:
                return text
            as_it_was = self._pieces([text], known)[0]
            return as_it_was if parsed(as_it_was) == scrubbed else written(scrubbed, text)
        # In a URL that stands in a text, `key` and `auth` are often no more than words.
        text = self._pieces([text], known)[0]
        return self._urls.url(text, secret_field) if "://" in text and WHOLE_URL.fullmatch(text) else text

    # ---------------------------------------------------------------- JSON

    def _possible_in(self, value: JSON) -> KnownValues | None:
        """The values that may stand in JSON data; None if neither they nor anything else in it is secret."""
        try:
            text = _encoded(value)
        except (TypeError, ValueError, RecursionError):
            return self._known
        known = self._known.within(text)
        return None if known.finds_nothing and not _may_hold_secrets(text) else known

    def _data(self, value: JSON) -> JSON:
        known = self._possible_in(value)
        if known is None:
            return value
        return rewritten(value, known.scrubbed, lambda item, at: self._scalar(item, at, known))

    def _scalar(self, item: str | int | float, location: Location, known: KnownValues) -> JSON:
        if isinstance(item, _TokenText):
            return item
        if isinstance(item, str):
            taken = self._taken(item, location)
            return self._string(item, known) if taken is None else taken
        if name := location.secret_number(item):
            if location.name:
                self.learn(name, str(item))
            return placeholder(name)
        found = known.number(item)
        if found is None:
            return item
        taken = self._taken(found, location)  # now a string, which may be a secret by its location
        return found if taken is None else taken

    def _taken(self, value: str, location: Location) -> str | None:
        """The placeholder of a string that is a secret by its location."""
        name = location.secret_string(value)
        if not name:
            return None
        if location.name or isinstance(location.key, int):
            self.learn(name, value)
        if not location.name and looks_random(value):
            self._known.learn(name, value, read_as="")
        return placeholder(self._known.scrubbed(name))

    # ---------------------------------------------------------------- bodies

    def _body(self, text: str, content_type: str, *, is_part: bool = False) -> str:
        media_type = content_type.partition(";")[0].strip().lower()
        if media_type == "text/event-stream":
            return event_stream.rewritten(text, self._streamed, self.text)
        if media_type in _JSON_LINES:
            return "".join(self._streamed(re.split(r"(?<=\n)", text)))
        if media_type == "application/x-www-form-urlencoded":
            return self._urls.form(text)
        if media_type.startswith("multipart/") and not is_part:
            return self._known.scrubbed("".join(map(self._part, parts(text, content_type))))
        return self._string(text, self._known)

    def _part(self, part: Part) -> str:
        name = part.name
        head = self._known.scrubbed(part.lines)
        if part.body and name and secret_parameter(name):
            self.learn(name, part.body)
            return head + placeholder(name)
        return head + self._body(part.body, part.headers.get("content-type", ""), is_part=True)

    def _streamed(self, texts: list[str]) -> list[str]:
        """Texts that came one after the other: JSON, whose strings at one path are one text, or parts of a text."""
        found = [parsed(text) for text in texts]
        others = iter(
            self._pieces([text for text, data in zip(texts, found, strict=True) if data is None], self._known)
        )
        groups: dict[Any, list[tuple[Any, Any]]] = {}
        for data in found:
            if data is not None:
                for path, holder, key in strings(data):
                    groups.setdefault(path, []).append((holder, key))
        for path, group in groups.items():
            if len(group) > 1:
                pieces = self._pieces([holder[key] for holder, key in group], self._known)
                kept = _TokenText if path[-1] == "token" else str
                for (holder, key), piece in zip(group, pieces, strict=True):
                    holder[key] = kept(piece)
        return [
            next(others) if data is None else _like(text, self._data(data))
            for text, data in zip(texts, found, strict=True)
        ]


class _TokenText(str):
    """A part of a text that comes token by token, under that name."""


def _like(text: str, data: JSON) -> str:
    return text if parsed(text) == data else written(data, text) + text[len(text.rstrip("\r\n")) :]


def _may_hold_secrets(text: str) -> bool:
    """True if a text of JSON has the name of a secret, or a login."""
    if "://" in text and "@" in text:
        return True
    return may_name_secrets(text) and any(map(secret_header, {*_NAMES.findall(text)}))


def _encoded(value: JSON) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # what json can write, and orjson cannot
        return _encoded_slowly(value)


_encoded_slowly = json.JSONEncoder(default=str).encode
