"""The values known to be secret, and how they are found and replaced in text, in any encoding."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Final

from harness.secrets.encodings import Edit, Encoding, cut, encodings
from harness.secrets.placeholders import PLACEHOLDER, has_placeholder, placeholder
from harness.secrets.policy import secret_name, words, worth_learning

_NUMBER: Final = re.compile(r"[-+.\deE]+")
_SCHEME: Final = re.compile(r"\s*([A-Za-z][\w-]*)\s+(\S+)\s*")
_SCHEMES: Final = frozenset({"basic", "bearer", "token", "apikey", "api-key"})


class KnownValues:
    """Values that are replaced everywhere, each by a placeholder with the first name it was given."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._encodings: list[tuple[str, Encoding, str]] = []
        self._numbers: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    def add(self, value: str, name: str) -> None:
        """Search for the value everywhere from now on."""
        if value in self._names:
            return
        self._names[value] = name
        self._encodings += [(encoding.probe, encoding, name) for encoding in encodings(value)]
        if _NUMBER.fullmatch(value):
            self._numbers.append(value)

    def learn(self, name: str, value: str, *, read_as: str | None = None) -> None:
        """Search for what a field, header or parameter held, unless other texts may have it too.

        `read_as`: the name by which the value is read (`credentials`), where it is not `name`.
        """
        for part in credentials(name if read_as is None else read_as, value):
            if worth_learning(name, part) and not has_placeholder(part):
                self.add(part, name)

    def within(self, text: str) -> KnownValues:
        """The values that may stand in a text, for one search in it. What is learned there is not learned here."""
        known = KnownValues()
        known._names, known._numbers = self._names, self._numbers
        known._encodings = [entry for entry in self._encodings if entry[0] in text]
        return known

    @property
    def finds_nothing(self) -> bool:
        """True if there is no value to search for."""
        return not self._encodings

    @property
    def has_numbers(self) -> bool:
        """True if some values are numbers."""
        return bool(self._numbers)

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
        """The text with a placeholder for each value, as `write` gives it for a name."""
        return cut([text], self.edits(text, write))[0] if self._encodings else text

    def edits(self, text: str, write: Callable[[str], str] = placeholder) -> list[Edit]:
        """The replacements. Where values overlap, the placeholder of the longest replaces all of them."""
        spans = [
            (match.start(), match.end(), name)
            for probe, encoding, name in self._encodings
            if probe in text
            for match in encoding.pattern.finditer(text)
        ]
        if not spans:
            return []
        kept = [mark.span() for mark in PLACEHOLDER.finditer(text) if self._gives(mark.group(1))]
        spans = [span for span in spans if not any(span[0] < end and start < span[1] for start, end in kept)]
        return list(_merged(sorted(spans), write))

    def _gives(self, name: str) -> bool:
        """True if placeholders have this name; other text of that form may hide a value."""
        return (
            name == "userinfo"
            or secret_name(name)
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


def credentials(name: str, value: str) -> list[str]:
    """The secrets in what a field or header holds: of `Bearer X` that is X, of `Basic X` the password."""
    if words(name)[-1:] in (("cookie",), ("cookies",)):
        pairs = value.partition(";")[:1] if words(name)[:1] == ("set",) else value.split(";")
        return [pair.partition("=")[2].strip() for pair in pairs]
    scheme = _SCHEME.fullmatch(value)
    if scheme is None or (words(name)[-1:] != ("authorization",) and scheme.group(1).lower() not in _SCHEMES):
        return [value]
    if scheme.group(1).lower() != "basic":
        return [scheme.group(2)]
    try:
        return [b64decode(scheme.group(2) + "==").decode().partition(":")[2]]
    except ValueError:
        return [scheme.group(2)]
