"""Replaces secrets in texts, JSON data, headers, URLs and bodies.

Environment variables that a run gives to the scripts and tools of an agent come from a scenario or a manifest, so
they are secret by their names only (`Secrets.add`), and only in this run (`known_to`). Variables that code sets in
this process are judged more strictly, and for all later runs (`variables_of_process`).
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Final, TypeVar

import orjson

from harness.secrets.bodies import Part, decode_body, encode_body, parts, rewrite_events
from harness.secrets.encodings import Edit, apply_edits, placeholder, placeholders_in
from harness.secrets.environment import Variables, not_watched
from harness.secrets.json_fields import (
    Location,
    format_like,
    parse_json,
    rewrite,
    strings,
)
from harness.secrets.known_values import WHOLE_URL, KnownValues, URLScrubber
from harness.secrets.named import may_hold_secrets, secrets_in, shaped_in, signs_of_secrets
from harness.secrets.policy import (
    is_secret_variable,
    looks_random,
    secret_field,
    secret_header,
    secret_parameter,
)

JSON = Any
T = TypeVar("T")

_URL_HEADERS: Final = frozenset({"location", "content-location", "referer"})
_JSON_LINES: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"}
)


class Secrets:
    """Replaces secrets in texts, JSON, headers, URLs and bodies.

    A secret found in a field, header or parameter is replaced everywhere from then on. Data that was scrubbed before
    may contain it: scrub everything twice and use the second result, or `learn` the secret first.

    No method raises for any text, bytes or JSON, and scrubbing is idempotent.

    Args:
        variables: an environment, or the secrets found in one.
        named: names or patterns (`ACME_*`) of variables that are secret from 3 characters on; others are from 6 on.
        public: names or patterns of variables that are not secret.
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
        self._use(KnownValues(variables.likely))

    def _use(self, known: KnownValues) -> None:
        self._known = known
        self.__dict__.pop("_urls", None)

    @cached_property
    def _urls(self) -> URLScrubber:
        """Made for the first URL only, as it refers back to this object: a cycle for the garbage collector."""
        return URLScrubber(self._known, self.string)

    def add(self, environment: Mapping[str, str]) -> None:
        """Add variables from a public source, such as a manifest: they are only secret by their names."""
        variables = Variables(self._named, self._public)
        variables.add(environment)
        self._known.include(variables.known)

    def limited(self, names: Collection[str]) -> Secrets:
        """Return a copy without the variables that are secret neither by name nor by a placeholder in `names`.

        It is for results that must not depend on the other variables of the machine, such as digests.
        """
        limited = copy.copy(self)
        known = KnownValues(self._variables.known)
        known.include(self._variables.likely, names)
        known.include(self._known)
        limited._use(known)
        return limited

    def copy(self) -> Secrets:
        """Return a copy. Secrets that the copy learns are not known here."""
        duplicate = copy.copy(self)
        duplicate._use(KnownValues(parent=self._known))
        return duplicate

    @property
    def known(self) -> int:
        """The number of values that are replaced everywhere. It grows as secrets are found."""
        return len(self._known)

    def found_after(self, known: int) -> list[str]:
        """Return the values that were found since their number was `known`."""
        return self._known.after(known)

    @property
    def unprotected(self) -> Collection[str]:
        """The names of secret variables whose values are too short or too common to be searched for."""
        return self._variables.weak

    def guessed_in(self, scrubbed: object) -> Iterator[str]:
        """Yield the variables with a placeholder in scrubbed data whose names are not those of secrets."""
        guesses = self._variables.likely.names
        marks = placeholders_in(str(scrubbed)) if guesses else ()
        yield from (name for name in guesses if placeholder(name) in marks)

    def learn(self, name: str, value: str) -> None:
        """Add the value of a field, header or parameter, unless it may also occur in harmless text.

        Added is X for `Bearer X`, the password for `Basic X`, and the values of cookies.
        """
        self._known.learn(name, value)

    def text(self, text: str) -> str:
        """Return a text with all known values, in any encoding, and all values under secret names replaced."""
        return self._scrub_pieces([text], self._known)[0]

    def pieces(self, pieces: list[str]) -> list[str]:
        """Scrub a text that is split into pieces. A placeholder is in the piece in which the secret starts."""
        return self._scrub_pieces(pieces, self._known)

    def string(self, text: str) -> str:
        """Scrub a text that may be JSON or a URL as a whole."""
        return self._string(text, self._known)

    def data(self, value: JSON) -> JSON:
        """Scrub JSON data: strings, keys and secret fields, also inside of JSON and URLs in strings."""
        return self._until_stable(lambda: self._data(value))

    def may_be_in(self, value: JSON) -> bool:
        """False if `data` would change nothing; a fast test that searches the text of the JSON."""
        return self._possible_in(value) is not None

    def variable(self, name: str, value: str) -> str:
        """Scrub the value of an environment variable that is shown with its name.

        A variable that is secret by its name is replaced, however short or common its value. In other values, only
        the secrets in them are replaced.
        """
        if value and is_secret_variable(name, value, self._named, self._public):
            return placeholder(name)
        return self.url(value) if WHOLE_URL.fullmatch(value) else self.data(value)

    def header(self, name: str, value: str) -> str:
        """Scrub the value of a header."""
        if value and secret_header(name):
            self.learn(name.lower(), value)
            return placeholder(name.lower())
        return self.url(value) if name.lower() in _URL_HEADERS else self.text(value)

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Scrub the values of headers; names are left unchanged."""
        pairs = list(headers)
        return self._until_stable(lambda: [(name, self.header(name, value)) for name, value in pairs])

    def url(self, url: str) -> str:
        """Scrub a URL: userinfo, secret parameters, known values. Its placeholders are percent-encoded."""
        return self._until_stable(lambda: self._urls.url(url))

    def body(self, body: bytes, content_type: str) -> bytes:
        """Scrub the body, not compressed, of a request or response. All other bytes are left unchanged."""
        text, codec = decode_body(body, content_type)
        scrubbed = self._until_stable(lambda: self._body(text, content_type))
        body = body if scrubbed == text else encode_body(scrubbed, codec)
        if not codec and not body.isascii():
            body = self._known.in_bytes(body, "latin-1")
        if not codec and b"\x00" in body:
            body = self._known.in_bytes(self._known.in_bytes(body, "utf-16-le"), "utf-16-be")
        return body

    def _until_stable(self, scrub: Callable[[], T]) -> T:
        """Repeat `scrub` until it learns nothing more, and return its last result."""
        while True:
            before = len(self._known)
            scrubbed = scrub()
            if len(self._known) == before:
                return scrubbed

    # ---------------------------------------------------------------- text

    def _scrub_pieces(self, pieces: list[str], known: KnownValues) -> list[str]:
        """Scrub a text that is split into pieces.

        A known value has the name of its variable, whatever its shape: a replay may have another key, or none.
        """
        text = "".join(pieces)
        has_signs = signs_of_secrets(text)
        if has_signs:
            pieces = self._learned(pieces, secrets_in)
            text = "".join(pieces)
        pieces = apply_edits(pieces, known.edits(text))
        return self._learned(pieces, shaped_in) if has_signs else pieces

    def _learned(
        self, pieces: list[str], find: Callable[[str], Iterable[tuple[str, str, Edit]]]
    ) -> list[str]:
        edits = []
        for name, value, edit in find("".join(pieces)):
            self.learn(name, value)
            edits.append(edit)
        return apply_edits(pieces, edits)

    def _string(self, text: str, known: KnownValues) -> str:
        if (data := parse_json(text)) is not None:
            scrubbed = self._data(data)
            if scrubbed == data:
                return text
            as_it_was = self._scrub_pieces([text], known)[0]
            return as_it_was if parse_json(as_it_was) == scrubbed else format_like(scrubbed, text)
        # In a URL in a text, `key` and `auth` are often ordinary words.
        text = self._scrub_pieces([text], known)[0]
        return self._urls.url(text, secret_field) if "://" in text and WHOLE_URL.fullmatch(text) else text

    # ---------------------------------------------------------------- JSON

    def _possible_in(self, value: JSON) -> KnownValues | None:
        """Return the known values that may occur in JSON data; None if there is no secret of any kind in it."""
        try:
            text = _encoded(value)
        except (TypeError, ValueError, RecursionError):
            return self._known
        known = self._known.within(text)
        return known if known or _may_hold_secrets(text) else None

    def _data(self, value: JSON) -> JSON:
        known = self._possible_in(value)
        if known is None:
            return value
        return rewrite(value, known.scrub, lambda item, at: self._scalar(item, at, known))

    def _scalar(self, item: str | int | float, location: Location, known: KnownValues) -> JSON:
        if isinstance(item, _TokenText):
            return item
        if isinstance(item, str):
            taken = self._placeholder_at(item, location)
            return self._string(item, known) if taken is None else taken
        if name := location.secret_number(item):
            if location.name:
                self.learn(name, str(item))
            return placeholder(name)
        found = known.number(item)
        if found is None:
            return item
        # The placeholder is a string, which may be a secret by its location.
        taken = self._placeholder_at(found, location)
        return found if taken is None else taken

    def _placeholder_at(self, value: str, location: Location) -> str | None:
        """Return the placeholder of a string that is a secret by its location; None for other strings."""
        name = location.secret_string(value)
        if not name:
            return None
        if location.name or isinstance(location.key, int):
            self.learn(name, value)
        if not location.name and looks_random(value):
            self._known.learn(name, value, read_as="")
        return placeholder(self._known.scrub(name))

    # ---------------------------------------------------------------- bodies

    def _body(self, text: str, content_type: str, *, is_part: bool = False) -> str:
        media_type = content_type.partition(";")[0].strip().lower()
        if media_type == "text/event-stream":
            return rewrite_events(text, self._streamed, self.text)
        if media_type in _JSON_LINES:
            return "".join(self._streamed(re.split(r"(?<=\n)", text)))
        if media_type == "application/x-www-form-urlencoded":
            return self._urls.form(text)
        if media_type.startswith("multipart/") and not is_part:
            return self._known.scrub("".join(map(self._part, parts(text, content_type))))
        return self._string(text, self._known)

    def _part(self, part: Part) -> str:
        name = part.name
        head = self._known.scrub(part.lines)
        if part.body and name and secret_parameter(name):
            self.learn(name, part.body)
            return head + placeholder(name)
        return head + self._body(part.body, part.headers.get("content-type", ""), is_part=True)

    def _streamed(self, texts: list[str]) -> list[str]:
        """Scrub the texts of a stream: JSON, whose strings at one path are one text, or parts of one text."""
        found = [parse_json(text) for text in texts]
        others = iter(
            self._scrub_pieces(
                [text for text, data in zip(texts, found, strict=True) if data is None], self._known
            )
        )
        groups: dict[Any, list[tuple[Any, Any]]] = {}
        for data in found:
            if data is not None:
                for path, holder, key in strings(data):
                    groups.setdefault(path, []).append((holder, key))
        for path, group in groups.items():
            if len(group) > 1:
                pieces = self._scrub_pieces([holder[key] for holder, key in group], self._known)
                kept = _TokenText if path[-1] == "token" else str
                for (holder, key), piece in zip(group, pieces, strict=True):
                    holder[key] = kept(piece)
        return [
            next(others) if data is None else _like(text, self._data(data))
            for text, data in zip(texts, found, strict=True)
        ]


class _TokenText(str):
    """A token of a streamed text, under the key `token`; it is not a secret by its name."""


def _like(text: str, data: JSON) -> str:
    return text if parse_json(text) == data else format_like(data, text) + text[len(text.rstrip("\r\n")) :]


def _may_hold_secrets(text: str) -> bool:
    """True if a text of JSON has the name of a secret, a login, or the shape of a secret."""
    return ("://" in text and "@" in text) or may_hold_secrets(text)


def _encoded(value: JSON) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # json supports more types than orjson
        return _encoded_slowly(value)


_encoded_slowly = json.JSONEncoder(default=str).encode


def hidden(pieces: list[str]) -> list[str]:
    """Scrub a text in pieces without knowledge of any value: only what is secret by a name or its shape."""
    return Secrets({}).pieces(pieces)


_given_to: ContextVar[Secrets | None] = ContextVar("_given_to", default=None)


@contextmanager
def known_to(secrets: Secrets) -> Iterator[None]:
    """Add the variables that are given within the context to these secrets."""
    token = _given_to.set(secrets)
    try:
        yield
    finally:
        _given_to.reset(token)


def note_given(environment: Mapping[str, str]) -> None:
    """Note that a process or a tool is about to get these variables."""
    if (secrets := _given_to.get()) is not None:
        secrets.add(environment)


@contextmanager
def given_to_this_process(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process within the context, for a tool that runs in it."""
    if not environment:
        yield
        return
    note_given(environment)
    before = {name: os.environ.get(name) for name in environment}
    with not_watched():
        os.environ.update(environment)
    try:
        yield
    finally:
        with not_watched():
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
