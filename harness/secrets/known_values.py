"""Finds and replaces known secrets in text, in any encoding, and the secrets in URLs and forms."""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Any, Final
from urllib.parse import quote_plus, unquote, unquote_plus

from harness.secrets.encodings import (
    PLACEHOLDER,
    Edit,
    Encoding,
    apply_edits,
    encodings,
    has_placeholder,
    placeholder,
    quoted_placeholder,
    quoted_placeholders,
    unescaped,
    unpacked,
    utf8,
)
from harness.secrets.policy import SCHEMES, looks_random, secret_name, secret_parameter, words, worth_learning

_FEW: Final = 16
_MEMORY: Final = 256 << 20


class Probes:
    """A set of plain ASCII texts to search for. The last added are searched for one by one until they are many.

    The others are in automata of increasing sizes, so that a text that is added late does not make all of them anew.
    """

    def __init__(self) -> None:
        self._added: list[str] = []
        self._compiled: list[tuple[list[str], Any]] = []

    def add(self, probe: str) -> None:
        """Add a text to search for."""
        self._added.append(probe)

    def found_in(self, text: str) -> Collection[str]:
        """Return the probes that occur in a text."""
        if len(self._added) > _FEW:
            self._compile()
        found = [probe for probe in self._added if probe in text]
        raw = utf8(text) if self._compiled else b""
        for probes, automaton in self._compiled:
            found += [probes[number] for number in automaton.Match(raw) or ()]
        return found

    def _compile(self) -> None:
        import re2  # type: ignore[import-untyped]

        options = re2.Options()
        options.literal, options.max_mem = True, _MEMORY
        options.encoding = re2.Options.Encoding.LATIN1  # compare bytes
        automaton = re2.Set.SearchSet(options)
        probes, self._added = self._added, []
        while self._compiled and len(self._compiled[-1][0]) <= 4 * len(probes):
            probes = self._compiled.pop()[0] + probes
        for probe in probes:
            automaton.Add(probe)
        automaton.Compile()
        self._compiled.append((probes, automaton))


_NUMBER: Final = re.compile(r"[-+.\deE]+")
_SCHEME: Final = re.compile(r"\s*([A-Za-z][\w-]*)\s+(\S+)\s*")

Write = Callable[[str], str]


class KnownValues:
    """Values that are replaced everywhere, each by a placeholder with the first name it was added with.

    The values of `parent` are replaced as well; values added here are not added to it.
    """

    def __init__(self, parent: KnownValues | None = None) -> None:
        self._parent = parent
        self._names: dict[str, str] = {}
        self._encodings: dict[str, list[tuple[Encoding, str]]] = {}
        self._probes = Probes()
        self._numbers: list[str] = []

    def __len__(self) -> int:
        return len(self._names) + (len(self._parent) if self._parent else 0)

    def after(self, number: int) -> list[str]:
        """Return the values that were added here after the first `number`, those of the parent included."""
        return [*self._names][number - (len(self._parent) if self._parent else 0) :]

    def _layers(self) -> list[KnownValues]:
        return [self] if self._parent is None else [*self._parent._layers(), self]

    @property
    def names(self) -> Collection[str]:
        """The names of the values added here, without those of the parent."""
        return dict.fromkeys(self._names.values())

    def name_of(self, value: str) -> str | None:
        """Return the name of a value; None if it is not known."""
        return next((layer._names[value] for layer in self._layers() if value in layer._names), None)

    def add(self, value: str, name: str) -> None:
        """Add a value, to be replaced everywhere from now on."""
        if self.name_of(value) is not None:
            return
        self._names[value] = name
        for encoding in encodings(value, generated=looks_random(value)):
            self._index(encoding, name)
        if _NUMBER.fullmatch(value):
            self._numbers.append(value)

    def include(self, others: KnownValues, names: Collection[str] | None = None) -> None:
        """Add the values of `others`, without those of its parent.

        If `names` is given, only values whose placeholder is among them are added.
        """
        for value, name in others._names.items():
            if names is None or placeholder(name) in names:
                self.add(value, name)

    def learn(self, name: str, value: str, *, read_as: str | None = None) -> None:
        """Add the value of a field, header or parameter, unless it may also occur in harmless text.

        `read_as` is the name passed to `credentials`, if it differs from `name`.
        """
        for part in credentials(name if read_as is None else read_as, value):
            if has_placeholder(part):
                continue
            for text in (part, *lines_of(part)):
                if worth_learning(name, text):
                    self.add(text, name)

    def within(self, text: str) -> KnownValues:
        """Return the values that may occur in a text, for searching it. The result is independent of this object."""
        known = KnownValues()
        candidates = {id(entry): entry for entry in self._candidates(text)}
        for _, _, plain in chain(unescaped(text), unpacked(text)):
            candidates |= {id(entry): entry for entry in self._candidates(plain)}
        for layer in self._layers():
            known._numbers += layer._numbers
            if candidates:
                known._names |= layer._names
        for encoding, name in candidates.values():
            known._index(encoding, name)
        return known

    def _index(self, encoding: Encoding, name: str) -> None:
        if encoding.probe not in self._encodings:
            self._encodings[encoding.probe] = []
            self._probes.add(encoding.probe)
        self._encodings[encoding.probe].append((encoding, name))

    def _candidates(self, text: str) -> list[tuple[Encoding, str]]:
        """Return the encodings whose probe occurs in a text."""
        return [
            entry
            for layer in self._layers()
            for probe in layer._probes.found_in(text)
            for entry in layer._encodings[probe]
        ]

    def number(self, number: object) -> str | None:
        """Return the placeholder of a number that is a known value, or contains one of 8 or more digits."""
        numbers = [value for layer in self._layers() for value in layer._numbers]
        if not numbers:
            return None
        try:
            text = str(number)
        except ValueError:  # more digits than Python converts to text
            return None
        found = next(
            (value for value in numbers if text == value or (len(value) >= 8 and value in text)), None
        )
        return None if found is None else placeholder(self.name_of(found) or "")

    def scrub(self, text: str, write: Write = placeholder) -> str:
        """Return the text with each value replaced by `write` of its name."""
        return apply_edits([text], self.edits(text, write))[0]

    def edits(self, text: str, write: Write = placeholder) -> list[Edit]:
        """Return the replacements in a text. Overlapping values are replaced by the placeholder of the longest."""
        if not text:
            return []
        spans = self._plain_edits(text, write)
        for start, end, plain in unescaped(text):
            if inside := self._plain_edits(plain, write):
                spans.append((start, end, apply_edits([plain], _merge(inside))[0]))
        for start, end, plain in unpacked(text):
            spans += [(start, end, mark) for _, _, mark in self._plain_edits(plain, write)[:1]]
        if not spans:
            return []
        kept = [mark.span() for mark in PLACEHOLDER.finditer(text) if self._is_own_name(mark.group(1))]
        return list(_merge(span for span in spans if not _overlaps(span, kept)))

    def _plain_edits(self, text: str, write: Write) -> list[Edit]:
        return [
            (*match.span(), write(name))
            for encoding, name in self._candidates(text)
            for match in encoding.pattern.finditer(text)
        ]

    def _is_own_name(self, name: str) -> bool:
        """True if a placeholder may have this name. Other text of the form of a placeholder may contain a value."""
        if name == "userinfo" or secret_name(name):
            return True
        return any(
            placeholder(given) == placeholder(name)
            for layer in self._layers()
            for given in layer._names.values()
        )

    def in_bytes(self, body: bytes, charset: str) -> bytes:
        """Replace the values in bytes that are encoded in this charset, unlike the rest of the bytes."""
        for layer in self._layers():
            for value, name in layer._names.items():
                try:
                    written = value.encode(charset)
                except UnicodeEncodeError:
                    continue
                if written != utf8(value):
                    body = body.replace(written, placeholder(name).encode(charset))
        return body


def _overlaps(span: Edit, kept: Sequence[tuple[int, int]]) -> bool:
    """True if a span overlaps one of the kept spans, which are in order and do not overlap."""
    at = bisect_right(kept, (span[1] - 1, 1 << 62)) - 1
    return at >= 0 and kept[at][1] > span[0]


def _merge(edits: Iterator[Edit] | list[Edit]) -> Iterator[Edit]:
    spans = sorted(edits)
    at = 0
    while at < len(spans):
        start, end, text = spans[at]
        longest = end - start
        while (at := at + 1) < len(spans) and spans[at][0] < end:
            if spans[at][1] - spans[at][0] > longest:
                longest, text = spans[at][1] - spans[at][0], spans[at][2]
            end = max(end, spans[at][1])
        yield start, end, text


def credentials(name: str, value: str) -> list[str]:
    """Return the secrets in the value of a field or header: X in `Bearer X`, the password in `Basic X`."""
    if words(name)[-1:] in (("cookie",), ("cookies",)):
        pairs = value.partition(";")[:1] if words(name)[:1] == ("set",) else value.split(";")
        return [pair.partition("=")[2].strip() for pair in pairs]
    scheme = _SCHEME.fullmatch(value)
    if scheme is None or (words(name)[-1:] != ("authorization",) and scheme.group(1).lower() not in SCHEMES):
        return [value]
    if scheme.group(1).lower() != "basic":
        return [scheme.group(2)]
    try:
        return [b64decode(scheme.group(2) + "==").decode().partition(":")[2]]
    except ValueError:
        return [scheme.group(2)]


def lines_of(value: str) -> list[str]:
    r"""Return the lines of a value that are secrets on their own, as in a key in PEM. `\n` may be written as such."""
    lines = value.replace("\\n", "\n").splitlines()
    return [line for line in lines if len(line) >= 16 and "--" not in line] if len(lines) > 1 else []


URL: Final = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
WHOLE_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
# Punctuation that ends a sentence or a quotation does not belong to a URL's query.
_IN_TEXT: Final = re.compile(
    r"(\w[\w+.-]*://)(?:[^\s/?#]*@)?([^\s?#]*)(?:[?#]\S*?(?=[\"')\].,;:>]*(?:\s|$)))?"
)
# The maximal nesting of URLs in parameters of URLs.
_DEPTH: Final = 10

IsSecret = Callable[[str], bool]


class URLScrubber:
    """Scrubs URLs and forms. `inside` scrubs the decoded value of a parameter, which may be JSON or a URL."""

    def __init__(self, known: KnownValues, inside: Callable[[str], str]) -> None:
        self._known, self._inside = known, inside
        self._depth = 0

    def url(self, url: str, secret: IsSecret = secret_parameter) -> str:
        """Scrub a URL. `secret` returns True for the name of a parameter that holds a secret."""
        split = URL.fullmatch(url)
        if split is None:
            return self._known.scrub(url)
        scheme, authority, path, query, fragment = split.groups()
        userinfo, at, host = (authority or "").rpartition("@")
        if at and (":" in userinfo or looks_random(userinfo)):
            self._known.learn("userinfo", unquote(userinfo.partition(":")[2] or userinfo))
            authority = f"{quoted_placeholder('userinfo')}@{host}"
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
        # Each part first: if the URL as a whole is a secret, its host may remain.
        scrubbed = "".join(self._known.scrub(part, quoted_placeholder) for part in parts)
        return quoted_placeholders(self._known.scrub(scrubbed, quoted_placeholder))

    def form(self, text: str) -> str:
        """Scrub a body of `application/x-www-form-urlencoded`."""
        return self._known.scrub(quoted_placeholders(self._query(text, secret_parameter)), quoted_placeholder)

    def _query(self, query: str, secret: IsSecret) -> str:
        return "&".join(self._parameter(pair, secret) for pair in query.split("&"))

    def _parameter(self, pair: str, secret: IsSecret) -> str:
        name, equals, value = pair.partition("=")
        plain = unquote_plus(name)
        if value and secret(plain):
            self._known.learn(plain, unquote_plus(value))
            return self._known.scrub(name, quoted_placeholder) + equals + quoted_placeholder(plain)
        scrubbed = self._known.scrub(pair, quoted_placeholder)
        if self._depth == _DEPTH:
            return scrubbed
        name, equals, value = scrubbed.partition("=")
        decoded = unquote_plus(value, errors="surrogateescape")
        self._depth += 1
        try:
            inside = self._inside(decoded)
        finally:
            self._depth -= 1
        return scrubbed if inside == decoded else name + equals + quote_plus(utf8(inside))


def bare_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may hold unknown secrets."""
    split = URL.fullmatch(url)
    if split is None:
        return ""
    scheme, authority, path = split.group(1, 2, 3)
    start = "" if scheme is None else f"{scheme}:"
    return start + ("" if authority is None else f"//{authority.rpartition('@')[2]}") + path


def bare_urls(text: str) -> str:
    """Return a text with its URLs reduced as by `bare_url`."""
    return _IN_TEXT.sub(r"\1\2", text)
