"""Secrets are replaced by placeholders, `<secret:OPENAI_API_KEY>`, before anything is written or compared.

Two kinds are found: values that are known, of environment variables and from fields found before, wherever and
however encoded they stand; and whatever stands in a field, header or parameter that is for secrets. Those get a
placeholder that depends on the name alone, so that a request with another key, or none, is still the same request.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from harness.world.event_stream import EventStream
from harness.world.json_text import Literal, decoded, literals
from harness.world.secret_forms import Edit, Form, cut, forms, trimmed, utf8
from harness.world.secret_names import (
    common,
    looks_random,
    secret_field,
    secret_header,
    secret_member,
    secret_parameter,
    secret_variable,
    words,
    worth_learning,
)

JSON = Any
T = TypeVar("T")

_PLACEHOLDER = re.compile(r"(?:<|%3[cC])secret(?::|%3[aA])([A-Za-z0-9_.-]+)(?:>|%3[eE])")
_URL = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_WHOLE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_LOGIN = re.compile(r"[\w+.-]+://[^/?#@:]*:(?!\d+/)(.*)@[^@]*", re.DOTALL)
_SETTING = re.compile(r"(?<![\w.-])([\w.-]++)\s*=\s*([^;&\s]+)")
_SCHEME = re.compile(r"\s*([A-Za-z][\w-]*)\s+(\S+)\s*")
_SCHEMES = frozenset({"basic", "bearer", "token", "apikey", "api-key"})
_JSON_LINES = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"}
)
_URL_HEADERS = frozenset({"location", "content-location", "referer"})


class Secrets:
    """What must not be written, and what is written in its place.

    A secret found in a field, header or parameter is known from then on. So that it does not stand in what was
    scrubbed before, scrub everything twice and keep what came of the second time, or `learn` it first.

    `named` adds variables by name or pattern (`ACME_*`); they are replaced from 3 characters on, others from 6.
    Nothing here raises for any text, bytes or JSON, and scrubbing twice changes nothing more.
    """

    def __init__(self, environment: Mapping[str, str], named: Sequence[str] = ()) -> None:
        self._known = _Known()
        values = {name: environment[name].strip() for name in sorted(environment)}
        chosen = {name for name, value in values.items() if _chosen(name, value, named)}
        for name in sorted(chosen):
            self._known.add(values[name], name)
        for name, value in values.items():
            for part in _parts(value, secret=name in chosen):
                if len(part) >= 6 and not common(part):
                    self._known.add(part, name)

    def learn(self, name: str, value: str) -> None:
        """Look for what a field, header or parameter held everywhere from now on, unless others may say it too.

        Of `Bearer X` that is X, of `Basic X` the password, of cookies their values.
        """
        for part in _credentials(name, value):
            if worth_learning(name, part) and not _PLACEHOLDER.search(part):
                self._known.add(part, name)

    def text(self, text: str) -> str:
        """The text with each known value replaced, also where it is URL-encoded, JSON-escaped, in base64 or hex."""
        return self._known.scrubbed(text)

    def data(self, value: JSON) -> JSON:
        """JSON data, its strings, keys and secret fields scrubbed; JSON and URLs in strings are looked into."""
        return self._settled(lambda: self._data(value))

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
        return self._settled(lambda: self._url(url, secret_parameter))

    def body(self, body: bytes, content_type: str) -> bytes:
        """The body of a request or response, not compressed: the same bytes but for what is replaced."""
        text = body.decode("utf-8", "surrogateescape")
        scrubbed = self._settled(lambda: self._body(text, content_type.partition(";")[0].strip().lower()))
        return body if scrubbed == text else utf8(scrubbed)

    def _settled(self, scrub: Callable[[], T]) -> T:
        """What comes of it once nothing more is learned."""
        while True:
            before = len(self._known)
            scrubbed = scrub()
            if len(self._known) == before:
                return scrubbed

    def _body(self, text: str, media_type: str) -> str:
        if media_type == "text/event-stream":
            return self._events(text)
        if media_type == "application/x-www-form-urlencoded":
            return self._known.scrubbed(_quoted_placeholders(self._query(text, secret_parameter)), _quoted)
        if media_type in _JSON_LINES:
            return "".join(self._streamed(re.split(r"(?<=\n)", text)))
        if "json" in media_type and _is_json(text):
            return self._json([text])[0]
        return self._string(text)

    def _data(self, value: JSON) -> JSON:
        root = [value]
        todo: list[tuple[Any, Any]] = [(root, 0)]
        while todo:
            holder, at = todo.pop()
            item = holder[at]
            if isinstance(item, Mapping):
                holder[at] = fresh = {}
                for key, member in item.items():
                    key_text = self.text(key) if isinstance(key, str) else key
                    fresh[key_text] = self._member(str(key), member, item)
                    todo.append((fresh, key_text))
            elif isinstance(item, (list, tuple)):
                holder[at] = elements = list(item)
                todo.extend((elements, number) for number in range(len(elements)))
            elif isinstance(item, str):
                holder[at] = self._string(item)
            elif isinstance(item, (int, float)) and not isinstance(item, bool):
                holder[at] = self._known.number(item) or item
        return root[0]

    def _member(self, name: str, value: JSON, siblings: Mapping[str, JSON]) -> JSON:
        if not isinstance(value, str) or not secret_member(name, value, siblings):
            return value
        self.learn(name, value)
        return placeholder(name)

    def _string(self, text: str) -> str:
        return self._joined([text], self._known)[0]

    def _joined(self, pieces: list[str], known: _Known) -> list[str]:
        """A string that may have come in pieces: known values, and what only JSON or a URL in it can tell.

        In such a URL, `key` and `auth` are often no more than words.
        """
        text = "".join(pieces)
        as_json = text.lstrip()[:1] in ("{", "[")
        if as_json and _is_json(text):
            return cut(pieces, self._json_edits([text])[0])
        pieces = cut(pieces, known.edits(text))
        text = "".join(pieces)
        if as_json:
            return cut(pieces, self._json_edits([text])[0])
        if _WHOLE_URL.fullmatch(text):
            return cut(pieces, [trimmed(0, text, self._url(text, secret_field))])
        return pieces

    def _json(self, texts: list[str], *, streamed: bool = False) -> list[str]:
        edits = self._json_edits(texts, streamed=streamed)
        return [cut([text], own)[0] for text, own in zip(texts, edits, strict=True)]

    def _json_edits(self, texts: list[str], *, streamed: bool = False) -> list[list[Edit]]:
        """What to change in JSON texts. In the events of a stream, strings at the same path are parts of one."""
        edits: list[list[Edit]] = [[] for _ in texts]
        groups: dict[object, list[tuple[int, Literal]]] = {}
        for number, text in enumerate(texts):
            for literal in list(literals(text)):
                if literal.kind == "number":
                    found = self._known.number(literal.raw)
                    if found is not None:
                        edits[number].append((literal.start, literal.end, json.dumps(found)))
                else:
                    path = (
                        literal.path() if streamed and literal.kind == "string" else (number, literal.start)
                    )
                    groups.setdefault(path, []).append((number, literal))
        known = self._known.within(
            "\n".join("".join(part.value for _, part in group) for group in groups.values())
        )
        for group in groups.values():
            for (number, part), value in zip(
                group, self._group([part for _, part in group], known), strict=True
            ):
                if value != part.value:
                    edits[number] += _rewritten(part, value, known)
        return [sorted(own) for own in edits]

    def _group(self, parts: list[Literal], known: _Known) -> list[str]:
        values = [part.value for part in parts]
        if parts[0].kind == "name":
            return [known.scrubbed(value) for value in values]
        if len(parts) > 1 and words(str(parts[0].name)) == ["token"]:
            return self._joined(values, known)  # a text that comes token by token
        found = [self._literal(part) for part in parts]
        if all(value is None for value in found):
            return self._joined(values, known)
        return [
            known.scrubbed(part.value) if value is None else value
            for part, value in zip(parts, found, strict=True)
        ]

    def _literal(self, literal: Literal) -> str | None:
        siblings = literal.holder.members if literal.holder else {}
        if not isinstance(literal.name, str) or not secret_member(literal.name, literal.value, siblings):
            return None
        self.learn(literal.name, literal.value)
        return placeholder(literal.name)

    def _events(self, text: str) -> str:
        stream = EventStream(text)
        data = [stream.data(event) for event in stream.events]
        for event, scrubbed in zip(stream.events, self._streamed(data), strict=True):
            stream.write_data(event, scrubbed)
        for number in stream.rest:
            stream.write(number, self.text(stream.line(number)))
        return str(stream)

    def _streamed(self, texts: list[str]) -> list[str]:
        """What came one after the other: JSON, or text that is no JSON."""
        scrubbed = list(texts)
        whole = [number for number, text in enumerate(texts) if _is_json(text)]
        for number, text in zip(
            whole, self._json([texts[number] for number in whole], streamed=True), strict=True
        ):
            scrubbed[number] = text
        others = sorted(set(range(len(texts))).difference(whole))
        lines = [texts[number] for number in others]
        for number, text in zip(others, cut(lines, self._known.edits("".join(lines))), strict=True):
            scrubbed[number] = text
        return scrubbed

    def _url(self, url: str, secret: Callable[[str], bool]) -> str:
        split = _URL.fullmatch(url)
        if split is None:
            return self.text(url)
        scheme, authority, path, query, fragment = split.groups()
        userinfo, at, host = (authority or "").rpartition("@")
        if at and (":" in userinfo or looks_random(userinfo)):
            self.learn("userinfo", unquote(userinfo.partition(":")[2] or userinfo))
            authority = f"{_quoted('userinfo')}@{host}"
        if query:
            query = self._query(query, secret)
        if fragment and "=" in fragment:
            fragment = self._query(fragment, secret)
        parts = (
            "" if scheme is None else f"{scheme}:",
            "" if authority is None else f"//{authority}",
            path,
            "" if query is None else f"?{query}",
            "" if fragment is None else f"#{fragment}",
        )
        # Part by part first: of a URL that is a secret as a whole, the host may stay.
        scrubbed = "".join(self._known.scrubbed(part, _quoted) for part in parts)
        return _quoted_placeholders(self._known.scrubbed(scrubbed, _quoted))

    def _query(self, query: str, secret: Callable[[str], bool]) -> str:
        return "&".join(self._parameter(pair, secret) for pair in query.split("&"))

    def _parameter(self, pair: str, secret: Callable[[str], bool]) -> str:
        name, equals, value = pair.partition("=")
        plain = unquote_plus(name)
        if value and secret(plain):
            self.learn(plain, unquote_plus(value))
            return self._known.scrubbed(name, _quoted) + equals + _quoted(plain)
        scrubbed = self._known.scrubbed(pair, _quoted)
        decoded = unquote_plus(value, errors="surrogateescape")
        inside = self._string(decoded)
        if scrubbed != pair or inside == decoded:
            return scrubbed
        return name + equals + quote_plus(utf8(inside))


def placeholder(name: str) -> str:
    """What stands where a secret with this name stood."""
    return f"<secret:{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:100]}>"


def has_placeholder(text: str) -> bool:
    """Whether a secret stood in the text."""
    return _PLACEHOLDER.search(text) is not None


class _Known:
    """Values that are replaced wherever they stand, each with the name of its placeholder: the first it was given."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._forms: list[tuple[str, Form, str]] = []
        self._numbers: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    def add(self, value: str, name: str) -> None:
        if value in self._names:
            return
        self._names[value] = name
        self._forms += [(form.probe, form, name) for form in forms(value)]
        if re.fullmatch(r"[-+.\deE]+", value):
            self._numbers.append(value)

    def within(self, text: str) -> _Known:
        """Those that may stand in a text."""
        known = _Known()
        known._names = self._names
        known._forms = [entry for entry in self._forms if entry[0] in text]
        return known

    def number(self, number: object) -> str | None:
        """The placeholder of a number that is a known value, or has one of 8 digits or more in it."""
        if not self._numbers:
            return None
        try:
            text = str(number)
        except ValueError:  # an integer of more digits than Python writes
            return None
        found = (value for value in self._numbers if text == value or (len(value) >= 8 and value in text))
        value = next(found, None)
        return None if value is None else placeholder(self._names[value])

    def scrubbed(self, text: str, write: Callable[[str], str] = placeholder) -> str:
        return cut([text], self.edits(text, write))[0]

    def edits(self, text: str, write: Callable[[str], str] = placeholder) -> list[Edit]:
        """What to replace. Where values overlap, one placeholder, of the longest, stands for all."""
        spans = [
            (match.start(), match.end(), name)
            for probe, form, name in self._forms
            if probe in text
            for match in form.pattern.finditer(text)
        ]
        if not spans:
            return []
        kept = [mark.span() for mark in _PLACEHOLDER.finditer(text) if self._gives(mark.group(1))]
        spans = [span for span in spans if not any(span[0] < end and start < span[1] for start, end in kept)]
        return list(_merged(sorted(spans), write))

    def _gives(self, name: str) -> bool:
        """Is this a name that placeholders have? Text that only looks like one may hide a value."""
        return (
            name == "userinfo"
            or secret_parameter(name)
            or secret_header(name)
            or any(placeholder(given) == placeholder(name) for given in self._names.values())
        )


def _merged(spans: list[tuple[int, int, str]], write: Callable[[str], str]) -> Iterator[Edit]:
    at = 0
    while at < len(spans):
        start, end, name = spans[at]
        longest = end - start
        while (at := at + 1) < len(spans) and spans[at][0] < end:
            if spans[at][1] - spans[at][0] > longest:
                longest, name = spans[at][1] - spans[at][0], spans[at][2]
            end = max(end, spans[at][1])
        yield start, end, write(name)


def _chosen(name: str, value: str, named: Sequence[str]) -> bool:
    asked = len(value) >= 3 and any(fnmatchcase(name, pattern) for pattern in named)
    return asked or secret_variable(name, value)


def _parts(value: str, *, secret: bool) -> Iterator[str]:
    """The secrets inside the value of a variable: of any URL its password, of a secret all that looks like one."""
    if login := _LOGIN.fullmatch(value):
        yield unquote(login.group(1))
    whole_url = _WHOLE_URL.fullmatch(value) is not None
    if whole_url and (split := _URL.fullmatch(value)):
        user, _, _ = (split.group(2) or "").rpartition("@")
        if ":" not in user and looks_random(user):
            yield unquote(user)
        path = value[value.index("://") + 3 :].partition("/")[2]
        if secret and looks_random(path):
            yield path
    if whole_url or secret:
        yield from (unquote(setting) for name, setting in _SETTING.findall(value) if secret_field(name))
    if secret:
        yield from _credentials("", value)
        yield from (
            item.value for item in literals(value) if item.kind == "string" and secret_field(str(item.name))
        )
        listed = [part.strip() for part in re.split(r"[,;]", value)]
        yield from listed if all(looks_random(part) for part in listed) else ()
        user, _, password = value.partition(":")
        if not whole_url and re.fullmatch(r"[\w.@-]+", user) and looks_random(password):
            yield password


def _credentials(name: str, value: str) -> list[str]:
    """The secrets in what a field or header holds."""
    if words(name)[-1:] in (["cookie"], ["cookies"]):
        pairs = value.partition(";")[:1] if words(name)[:1] == ["set"] else value.split(";")
        return [pair.partition("=")[2].strip() for pair in pairs]
    scheme = _SCHEME.fullmatch(value)
    if scheme is None or (words(name)[-1:] != ["authorization"] and scheme.group(1).lower() not in _SCHEMES):
        return [value]
    if scheme.group(1).lower() != "basic":
        return [scheme.group(2)]
    try:
        return [b64decode(scheme.group(2) + "==").decode().partition(":")[2]]
    except ValueError:
        return [scheme.group(2)]


def _rewritten(literal: Literal, value: str, known: _Known) -> list[Edit]:
    """The edits that give a literal another value, as few characters of it as can be."""
    exact = known.edits(literal.raw)
    if decoded(cut([literal.raw], exact)[0]) == value:
        return [(literal.start + start, literal.start + end, text) for start, end, text in exact]
    return [trimmed(literal.start, literal.raw, literal.written(value))]


def _quoted(name: str) -> str:
    return quote(placeholder(name), safe="")


def _quoted_placeholders(text: str) -> str:
    return _PLACEHOLDER.sub(lambda mark: _quoted(mark.group(1)), text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
