"""YAML as nodes that know their places, for files that are read strictly and may come from anywhere.

As PyYAML's safe loader, but: a key given twice, a tag beyond the standard ones, aliases that would make much of
little, and anything nested too deeply are refused. (`yaml.CSafeLoader` itself dies of deep nesting, process and all;
its parser does not.) Every problem is a `CassetteBroken` with its place.
"""

from __future__ import annotations

import binascii
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import yaml as pyyaml

from harness.draw.escaping import clip, printable
from harness.errors import CassetteBroken, Span
from harness.recording.yaml_text import MAX_DEPTH
from harness.source.scalars import PREFIX, resolve_1_1
from harness.source.suggest import did_you_mean

_LOADER: Final[Any] = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
_SPARE: Final = 100_000  # what aliases may add beyond the size of the file, in values and characters
_TEXT_TAGS: Final = frozenset(
    {"str", "python/str", "python/unicode"}
)  # the last two in old cassettes of vcrpy
_TAGS: Final = frozenset({"null", "bool", "int", "float", "timestamp", "binary"}) | _TEXT_TAGS


@dataclass(slots=True)
class Node:
    """A value and its place. `value` is a text, a list of nodes, or nodes by key; `tag` is "" for a plain scalar."""

    value: str | list[Node] | dict[str, Node]
    file: str
    line: int
    column: int
    tag: str = "str"

    def refuse(self, message: str, hint: str = "") -> NoReturn:
        """Raises CassetteBroken for this place."""
        said = f"{message} ({hint})" if hint else message
        raise CassetteBroken(printable(clip(said, 400)), Span(self.file, self.line, self.column))

    @property
    def is_null(self) -> bool:
        return self.tag == "null" or (self.tag == "" and self.value in ("", "~", "null", "Null", "NULL"))

    def mapping(
        self, what: str, keys: Collection[str] | None = None, need: Collection[str] = ()
    ) -> dict[str, Node]:
        """Its nodes by key. `keys` are those that are known, None for any; `need` those that must be there."""
        if not isinstance(self.value, dict):
            self.refuse(f"{what} must be a mapping, not {self._noun()}")
        for key, node in self.value.items():
            if keys is not None and key not in keys:
                node.refuse(f"{what} has no key '{key}'", did_you_mean(key, list(keys)))
        for key in need:
            if key not in self.value:
                self.refuse(f"{what} lacks '{key}'")
        return self.value

    def items(self, what: str) -> list[Node]:
        """Its items, each a node."""
        if not isinstance(self.value, list):
            self.refuse(f"{what} must be a list, not {self._noun()}")
        return self.value

    def text(self, what: str) -> str:
        """Its text, also of what YAML would take for a number or a date."""
        if not isinstance(self.value, str) or self.is_null or self.tag == "binary":
            self.refuse(f"{what} must be text, not {self._noun()}")
        return self.value

    def number(self, what: str) -> float:
        """A duration or a time: finite, and not below 0."""
        value = self.data()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            self.refuse(f"{what} must be a number of seconds from 0, not {self._noun()}")
        return float(value)

    def whole(self, what: str, least: int) -> int:
        """A whole number that is at least `least`."""
        value = self.data()
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 10**9:
            self.refuse(f"{what} must be a whole number from {least}, not {self._noun()}")
        return value

    def content(self, what: str) -> bytes:
        """The bytes of a text in UTF-8, or of `!!binary`; none for null."""
        if not isinstance(self.value, str):
            self.refuse(f"{what} must be text or !!binary, not {self._noun()}")
        if self.tag == "binary":
            return self._binary()
        return b"" if self.is_null else self.value.encode()

    def data(self) -> Any:
        """JSON data of any form. What YAML 1.1 takes for a date is text."""
        value = self.value
        if isinstance(value, dict):
            return {key: node.data() for key, node in value.items()}
        if isinstance(value, list):
            return [node.data() for node in value]
        if self.tag in _TEXT_TAGS or self.tag == "timestamp":
            return value
        if self.tag == "binary":
            return self._binary().decode("utf-8", "replace")
        if self.is_null:
            return None
        try:
            found = resolve_1_1(value)
        except ValueError:  # a date or number that does not exist
            return value
        if self.tag in ("int", "float") and not isinstance(found, int | float):
            self.refuse(f"this is no !!{self.tag}")
        return found if isinstance(found, int | float | str | None) else value

    def _binary(self) -> bytes:
        try:
            return binascii.a2b_base64(str(self.value))
        except ValueError as error:
            self.refuse(f"this !!binary is not base64: {error}")

    def _noun(self) -> str:
        if isinstance(self.value, str):
            return "nothing" if self.is_null else f"'{clip(self.value, 40)}'"
        return "a mapping" if isinstance(self.value, dict) else "a list"


def parse(data: bytes, file: str) -> Node:
    """The only document of a file. `file` is its name in messages.

    Raises:
        CassetteBroken: there is none, or it cannot be read.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _at_byte(data, error.start, file, f"not UTF-8: the byte 0x{data[error.start]:02x}") from None
    if "\0" in text:
        raise _at_byte(data, data.index(b"\0"), file, "not a text file: it contains zero bytes")
    builder = _Builder(file, 2 * len(text) + _SPARE)
    try:
        builder.build(pyyaml.parse(text, Loader=_LOADER))
    except pyyaml.reader.ReaderError as error:
        raise _at_byte(
            data, error.position, file, f"a character that YAML cannot have: {error.reason}"
        ) from None
    except pyyaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        span = Span(file, mark.line + 1, mark.column + 1) if mark else Span(file, 1, 1)
        raise CassetteBroken(printable(clip(f"this is not YAML: {problem}", 400)), span) from None
    if builder.root is None:
        raise CassetteBroken("the file is empty", Span(file, 1, 1))
    return builder.root


def _at_byte(data: bytes, at: int, file: str, message: str) -> CassetteBroken:
    column = at - (data.rfind(b"\n", 0, at) + 1) + 1
    return CassetteBroken(printable(message), Span(file, data.count(b"\n", 0, at) + 1, column))


class _Open:
    """A list or mapping that is still open."""

    __slots__ = ("anchor", "before", "key", "node")

    def __init__(self, node: Node, anchor: str | None, before: int) -> None:
        self.node, self.anchor, self.before = node, anchor, before
        self.key: str | None = None


class _Builder:
    """Makes nodes of the parser's events."""

    def __init__(self, file: str, budget: int) -> None:
        self.root: Node | None = None
        self._file, self._budget, self._weight = file, budget, 0
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int, int] | None] = {}  # node, weight, height; None: still open
        self._documents = 0
        self._heights: list[int] = []

    def build(self, events: Iterator[Any]) -> None:
        for event in events:
            kind = type(event)
            if kind is pyyaml.ScalarEvent:
                self._scalar(event)
            elif kind is pyyaml.MappingStartEvent:
                self._open(event, {}, "map")
            elif kind is pyyaml.SequenceStartEvent:
                self._open(event, [], "seq")
            elif kind is pyyaml.MappingEndEvent or kind is pyyaml.SequenceEndEvent:
                self._close()
            elif kind is pyyaml.AliasEvent:
                self._alias(event)
            elif kind is pyyaml.DocumentStartEvent:
                self._documents += 1
                if self._documents > 1:
                    self._at(event).refuse("a second YAML document in one file")

    def _at(self, event: Any, value: Any = "", tag: str = "str") -> Node:
        mark = event.start_mark
        return Node(value, self._file, mark.line + 1, mark.column + 1, tag)

    def _scalar(self, event: Any) -> None:
        given = event.tag
        if given is None or given == "!":
            tag = "" if event.implicit[0] else "str"
        else:
            tag = given.removeprefix(PREFIX)
            if tag not in _TAGS or tag == given:
                self._at(event).refuse(f"the tag {given.replace(PREFIX, '!!')} cannot be used here")
        node = self._at(event, event.value, tag)
        before = self._weight
        self._count(1 + len(event.value), node)
        if event.anchor is not None:
            self._anchors[event.anchor] = (node, self._weight - before, 0)
        if not self._stack and node.is_null:
            return  # nothing but comments
        self._add(node, 0)

    def _open(self, event: Any, value: Any, tag: str) -> None:
        node = self._at(event, value)
        if event.tag not in (None, "!", PREFIX + tag):
            node.refuse(f"the tag {event.tag.replace(PREFIX, '!!')} cannot be used here")
        if len(self._stack) > MAX_DEPTH:
            node.refuse(f"nested more than {MAX_DEPTH} levels deep")
        if self._stack and self._stack[-1].key is None and isinstance(self._stack[-1].node.value, dict):
            node.refuse("a key must be text, not a list or mapping")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(node, event.anchor, self._weight))
        self._heights.append(0)
        self._count(1, node)

    def _close(self) -> None:
        frame, height = self._stack.pop(), self._heights.pop() + 1
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (frame.node, self._weight - frame.before, height)
        self._add(frame.node, height)

    def _alias(self, event: Any) -> None:
        place = self._at(event)
        if event.anchor not in self._anchors:
            place.refuse(f"no anchor '&{event.anchor}' stands before this")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            place.refuse(f"'*{event.anchor}' stands inside '&{event.anchor}' itself")
        node, weight, height = anchored
        self._count(weight, place)
        if len(self._stack) + height > MAX_DEPTH + 1:
            place.refuse(f"nested more than {MAX_DEPTH} levels deep")
        self._add(node, height)

    def _add(self, node: Node, height: int) -> None:
        """Put a node into the open list or mapping: an item, a key, or the value of the key before."""
        if not self._stack:
            self.root = node
            return
        self._heights[-1] = max(self._heights[-1], height)
        frame = self._stack[-1]
        value = frame.node.value
        if isinstance(value, list):
            value.append(node)
        elif isinstance(value, dict):
            if frame.key is None:
                frame.key = self._key(node, value)
            else:
                value[frame.key], frame.key = node, None

    def _key(self, node: Node, holder: dict[str, Node]) -> str:
        key = node.value
        if not isinstance(key, str):
            node.refuse("a key must be text, not a list or mapping")
        if key == "<<" and node.tag == "":
            node.refuse("'<<' cannot be used in a cassette")
        if key in holder:
            node.refuse(f"key '{clip(key, 60)}' is given twice")
        return key

    def _count(self, weight: int, node: Node) -> None:
        self._weight += weight
        if self._weight > self._budget:
            node.refuse("too much is repeated by aliases")
