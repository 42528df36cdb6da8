"""A YAML parser that returns the location of every key and value.

PyYAML (with libyaml if available) reports parse events; this module builds Python data from them in one pass, and
keeps the location of each value. The value of a scalar depends on the version (`harness.source.scalars`).

The parser is stricter than YAML where its rules surprise authors: it refuses duplicate keys, keys that are not text,
tags beyond the standard ones, several documents, and data that is nested too deep or, with its aliases expanded, too
large.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import yaml as pyyaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from harness.source.display import clip, did_you_mean
from harness.source.location import MAX_DEPTH, MAX_NODES, Children, Flaw, Location, Unreadable
from harness.source.scalars import PREFIX, Resolve, resolve_1_1, resolve_1_2, resolve_vcr, tagged
from harness.source.yaml_syntax import syntax_flaw

Version = Literal["1.1", "1.2", "vcr", "templated", "numbered", "scalar-keys"]
"""`templated` is 1.1 for a text with placeholders `${…}` that are not filled yet. Each is read as text, even if its
braces would otherwise make a mapping. `numbered` is 1.2 for a file whose keys may be whole numbers, which are read as
text. `scalar-keys` is 1.1 in which keys may be numbers, booleans, dates and null, as in PyYAML."""

_RESOLVERS: Final[dict[Version, Resolve]] = {
    "1.1": resolve_1_1,
    "1.2": resolve_1_2,
    "vcr": resolve_vcr,
    "templated": resolve_1_1,
    "numbered": resolve_1_2,
    "scalar-keys": resolve_1_1,
}
_PLACEHOLDER: Final = re.compile(r"\$\{[^}\r\n]*\}")
_HIDDEN: Final = "\ue000"  # a private-use character that replaces those of a placeholder during parsing
_BREAKS_OF_1_1: Final = "\x85\u2028\u2029"
"""spec (YAML 1.2, 5.4): "YAML version 1.1 did support the above non-ASCII line break characters"."""
_LOADER: Final[Any] = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)


def load(text: str, version: Version = "1.1") -> tuple[Any, Location]:
    """Parse `text`, which must be a single document, and return its value and location.

    Aliases of one anchor share one Python object.

    Raises:
        Unreadable: with every duplicate or unusable key, or with the first syntax error.
    """
    builder = _Builder(version)
    try:
        builder.build(_events(text, version))
    except pyyaml.YAMLError as error:
        raise Unreadable([syntax_flaw(error, text, builder.opened)]) from None
    if builder.flaws:
        raise Unreadable(builder.flaws)
    if builder.root is None:
        raise Unreadable.one_flaw("empty-file", "the file is empty", 0, 0)
    return builder.root


def load_readable(text: str) -> tuple[Any, bool]:
    """Return the data of a text up to what ends its parsing, and True if nothing does.

    Keys that are given twice or are not text do not end it: they are left out. Placeholders `${…}` are text.
    """
    builder = _Builder("templated")
    try:
        builder.build(_templated(text))
    except (pyyaml.YAMLError, Unreadable):
        return builder.unfinished, False
    return builder.root and builder.root[0], builder.root is not None


def _events(text: str, version: Version) -> Iterator[Event]:
    if version == "templated":
        return _templated(text)
    if _RESOLVERS[version] is resolve_1_2 and any(character in text for character in _BREAKS_OF_1_1):
        return _without_breaks_of_1_1(text)
    found: Iterator[Event] = pyyaml.parse(text, Loader=_LOADER)
    return found


def _without_breaks_of_1_1(text: str) -> Iterator[Event]:
    """Yield the parse events of a text in YAML 1.2, which has fewer line breaks than the parser knows."""
    unused = (chr(code) for code in range(ord(_HIDDEN), ord(_HIDDEN) + 6400) if chr(code) not in text)
    hidden = {ord(character): next(unused) for character in _BREAKS_OF_1_1}
    shown = {ord(hiding): chr(character) for character, hiding in hidden.items()}
    for event in pyyaml.parse(text.translate(hidden), Loader=_LOADER):
        if type(event) is ScalarEvent:
            event.value = event.value.translate(shown)
        yield event


def _templated(text: str) -> Iterator[Event]:
    """Yield the parse events of a text, reading each placeholder as text."""
    hidden = _PLACEHOLDER.sub(lambda found: _HIDDEN * len(found[0]), text)
    for event in pyyaml.parse(hidden, Loader=_LOADER):
        if type(event) is ScalarEvent and _HIDDEN in event.value:
            _restore_placeholders(event, text)
        yield event


def _restore_placeholders(event: Any, text: str) -> None:
    for found in _PLACEHOLDER.finditer(text, event.start_mark.index, event.end_mark.index):
        event.value = event.value.replace(_HIDDEN * len(found[0]), found[0], 1)


class _Frame:
    """A list or mapping that is still open."""

    __slots__ = (
        "anchor",
        "height",
        "key",
        "key_end",
        "key_start",
        "locations",
        "merges",
        "nodes",
        "start",
        "value",
    )

    def __init__(self, value: Any, start: int, anchor: str | None, nodes: int) -> None:
        self.value = value
        self.locations: Any = [] if type(value) is list else {}
        self.start, self.anchor = start, anchor
        self.nodes = nodes  # the number of nodes before this one
        self.height = 1
        self.key: Any = _NO_KEY
        self.key_start = self.key_end = 0
        self.merges: tuple[Any, Location] | None = None


_NO_KEY: Final = object()
_MERGE: Final = object()
_REFUSED: Final = object()

_Anchored = tuple[Any, Children, int, int]  # value, children, nodes, height


class _Builder:
    def __init__(self, version: Version) -> None:
        self.root: tuple[Any, Location] | None = None
        self.flaws: list[Flaw] = []
        self._version, self._resolve = version, _RESOLVERS[version]
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchored | None] = {}  # None: still open
        self._nodes = 0
        self._documents = 0

    @property
    def opened(self) -> list[int]:
        """The start offsets of the lists and mappings that are still open."""
        return [frame.start for frame in self._stack]

    @property
    def unfinished(self) -> Any:
        """The data so far; of a list that is still open, the items before the last."""
        value = self.root and self.root[0]
        for frame in reversed(self._stack):
            if type(frame.key) is str:
                frame.value[frame.key] = value
            value = frame.value
        return value

    def build(self, events: Iterator[Event]) -> None:
        for event in events:
            kind = type(event)
            if kind is ScalarEvent:
                self._scalar(event)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self._close(event)
            elif kind is MappingStartEvent:
                self._open(event, {}, "map")
            elif kind is SequenceStartEvent:
                self._open(event, [], "seq")
            elif kind is AliasEvent:
                self._alias(event)
            elif kind is DocumentStartEvent:
                self._document(event)

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            start = event.start_mark.index
            raise Unreadable.one_flaw(
                "several-documents", "a second YAML document in one file", start, start + 3
            )

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        start, end = event.start_mark.index, event.end_mark.index
        tag = event.tag
        self._count(1, start, end)
        if tag is None or tag == "!":
            plain = event.implicit[0]
            value = self._plain(text, start, end) if plain else text
        else:
            plain = False
            value = self._explicit(tag, text, start, end)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, None, 1, 0)
        if not self._stack:
            empty = value is None and start == end
            self.root = None if empty else (value, (start, end, None))
        else:
            self._add(value, (start, end, None), plain and text == "<<")

    def _plain(self, text: str, start: int, end: int) -> Any:
        try:
            return self._resolve(text)
        except ValueError:
            message = f"{clip(text, 41)} is not a number or date that exists"
            raise Unreadable.one_flaw("bad-value", message, start, end, "quote it to keep it text") from None

    def _explicit(self, tag: str, text: str, start: int, end: int) -> Any:
        name = tag.removeprefix(PREFIX)
        try:
            return tagged(name, text, self._resolve)
        except KeyError:
            raise _unknown_tag(tag, start, end) from None
        except ValueError:
            raise Unreadable.one_flaw("bad-value", f"{text!r} is not a valid {name}", start, end) from None

    def _open(self, event: Any, value: Any, tag: str) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        if event.tag not in (None, "!", PREFIX + tag):
            raise _unknown_tag(event.tag, start, end)
        stack = self._stack
        if stack and stack[-1].key is _NO_KEY and type(stack[-1].value) is dict:
            # `{{ name }}`, a placeholder in many templates, is a mapping with a mapping as its key.
            hint = "quote a text that begins with '{{'" if stack[-1].start == start - 1 else ""
            message = "a key must be text, not a list or mapping"
            raise Unreadable.one_flaw("key-not-text", message, start, start + 1, hint)
        self._count(1, start, end)
        if len(stack) >= MAX_DEPTH:
            raise _too_deep(start)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        stack.append(_Frame(value, start, event.anchor, self._nodes - 1))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        value, locations = frame.value, frame.locations
        if frame.merges is not None:
            value, locations = self._merged(frame, *frame.merges)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (value, locations, self._nodes - frame.nodes, frame.height)
        location = (frame.start, event.end_mark.index, locations)
        if self._stack:
            parent = self._stack[-1]
            parent.height = max(parent.height, frame.height + 1)
            self._add(value, location, False)
        else:
            self.root = (value, location)

    def _alias(self, event: Any) -> None:
        name: str = event.anchor
        start, end = event.start_mark.index, event.end_mark.index
        if name not in self._anchors:
            message, hint = f"there is no anchor '&{name}' before this", did_you_mean(name, self._anchors)
            raise Unreadable.one_flaw("unknown-anchor", message, start, end, hint)
        anchored = self._anchors[name]
        if anchored is None:
            raise Unreadable.one_flaw(
                "recursive-alias", f"'*{name}' is used inside '&{name}' itself", start, end
            )
        value, children, nodes, height = anchored
        self._count(nodes, start, end)
        if len(self._stack) + height > MAX_DEPTH:
            raise _too_deep(start)
        if self._stack:  # a document that is one alias cannot have an anchor before it
            frame = self._stack[-1]
            frame.height = max(frame.height, height + 1)
            self._add(value, (start, end, children), False)

    def _add(self, value: Any, location: Location, merge: bool) -> None:
        """Add a value to the innermost open list or mapping: as an item, a key, or the value of the last key."""
        frame = self._stack[-1]
        key = frame.key
        if type(frame.value) is list:
            frame.value.append(value)
            frame.locations.append(location)
        elif key is _NO_KEY:
            frame.key = self._key(frame, value, location, merge)
            frame.key_start, frame.key_end = location[0], location[1]
        else:
            if key is _MERGE:
                frame.merges = (value, location)
            elif key is not _REFUSED:
                frame.value[key] = value
                frame.locations[key] = (frame.key_start, frame.key_end, location)
            frame.key = _NO_KEY

    def _key(self, frame: _Frame, key: Any, location: Location, merge: bool) -> Any:
        start, end, _ = location
        if merge:
            if frame.merges is not None:
                hint = "merge several with a list: '<<: [*a, *b]'"
                self.flaws.append(Flaw("duplicate-key", "'<<' is given twice", start, end, hint))
            return _MERGE
        if self._version == "numbered" and type(key) is int:
            key = str(key)
        if self._version != "scalar-keys" and type(key) is not str:
            message = f"this key is read as {noun(key)}, not as text"
            self.flaws.append(Flaw("key-not-text", message, start, end, "quote it"))
            return _REFUSED
        if key in frame.value:
            first = frame.locations[key][0]
            self.flaws.append(Flaw("duplicate-key", f"key '{key}' is given twice", start, end, first=first))
            return _REFUSED
        return key

    def _merged(self, frame: _Frame, value: Any, location: Location) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the mapping merged over those that `<<` names. In a list, earlier mappings take precedence."""
        start, end, children = location
        sources: list[Any] = value if type(value) is list else [value]
        locations: list[Any] = [p[2] for p in children] if isinstance(children, list) else [children]
        if any(type(source) is not dict for source in sources):
            message = "'<<' merges a mapping or a list of mappings"
            raise Unreadable.one_flaw("bad-value", f"{message}, not {noun(value)}", start, end)
        values: dict[str, Any] = {}
        marks: dict[str, Any] = {}
        for source, marked in zip(reversed(sources), reversed(locations), strict=True):
            values.update(source)
            marks.update(marked)
        return values | frame.value, marks | frame.locations

    def _count(self, nodes: int, start: int, end: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            message = f"more than {MAX_NODES:,} values, with aliases expanded"
            raise Unreadable.one_flaw("too-many-nodes", message, start, end)


def noun(value: Any) -> str:
    """Return the kind of a value, with its article."""
    names = {"NoneType": "null", "bool": "a boolean", "dict": "a mapping", "list": "a list", "str": "text"}
    name = type(value).__name__
    return names.get(name, "a date" if name.startswith("date") else "a number")


# ---------------------------------------------------------------- refusals


def _unknown_tag(tag: str, start: int, end: int) -> Unreadable:
    shown = tag.replace(PREFIX, "!!")
    message = f"the tag {shown} cannot be used here"
    return Unreadable.one_flaw("unknown-tag", message, start, end, "write plain YAML data")


def _too_deep(start: int) -> Unreadable:
    return Unreadable.one_flaw("too-deep", f"nested more than {MAX_DEPTH} levels deep", start, start + 1)
