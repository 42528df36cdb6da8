"""Snapshots of values for a trace: JSON data that shares long values which have not changed.

A node may pass on a list of 100,000 items at every step. Copying and hashing it each time would make the cost of a
step proportional to its length, so a list is copied again only if it has changed, and hashed once. A conversation is
a new list at every step; its messages are converted again only if they have changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from harness.graph.to_json import MAX_DEPTH, key_text, to_json

LONG_LIST: Final = 100
LONG_TEXT: Final = 10_000
_PIECE: Final = 16  # the number of characters of a text that count as one item
_KEPT: Final = 100  # the number of last long values that later ones are compared with
_CONTAINER: Final = 8  # the number of items that a list or mapping itself counts as
_UNKNOWN: Final = (None, None, None, 0)
_SMALL: Final = 1 << 63  # ints below are JSON as they are
_SCALARS: Final = frozenset({int, bool, float, type(None)})


class Snapshots:
    """Makes the snapshots of one trace. They must not be changed.

    A list counts as unchanged if it is the same object and equal to its snapshot: comparing takes a hundredth of the
    time of copying.

    Attributes:
        size: the number of items and pieces of text in all snapshots. Shared lists and texts count once. A message
            counts each time, as it is written out and hashed each time.
        largest: the size of the largest snapshot. Shared values count as often as it contains them, so this is its
            size when written out.
        has_long: True if any snapshot has a long list or text.
    """

    def __init__(self) -> None:
        self.size = 0
        self.largest = 0
        self.has_long = False
        self._known: dict[int, tuple[Any, Any, int]] = {}
        self._messages: dict[int, tuple[Any, Any, Any, int]] = {}
        self._expanded_size = 0

    def of(self, value: Any) -> Any:
        """Return the value as `to_json` does, but sharing long lists with earlier snapshots."""
        before = self._expanded_size
        snapshot = self._of(value, ())
        self.largest = max(self.largest, self._expanded_size - before)
        return snapshot

    def _of(self, value: Any, inside: tuple[int, ...]) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value)
        if kind in _SCALARS:
            return to_json(value, inside)
        if kind is not dict and kind is not list:
            return self._object(value, inside)
        if id(value) in inside or len(inside) > MAX_DEPTH:
            return to_json(value, inside)
        if kind is list and len(value) >= LONG_LIST:
            return self._long_list(value, inside)
        return self._copy(value, inside)

    def _text(self, value: str) -> Any:
        pieces = len(value) // _PIECE
        self._expanded_size += pieces
        if len(value) >= LONG_TEXT:
            self.has_long = True
            if self._known.get(id(value), (None,))[0] is value:
                return value
            self._keep(value, value, pieces)
        self.size += pieces
        return value

    def _copy(self, value: Any, inside: tuple[int, ...]) -> Any:
        self.count(_CONTAINER + len(value))
        inside = (*inside, id(value))
        if type(value) is dict:
            return {
                key_text(key): item
                if item is None or (type(item) is str and len(item) < _PIECE)
                else self._of(item, inside)
                for key, item in value.items()
            }
        return [
            item
            if (type(item) is str and len(item) < _PIECE) or (type(item) is int and -_SMALL < item < _SMALL)
            else to_json(item, inside)
            if type(item) in _SCALARS
            else self._of(item, inside)
            for item in value
        ]

    def _object(self, value: Any, inside: tuple[int, ...]) -> Any:
        """Return any other value as JSON data. A message is converted again only if it has changed."""
        message, fields, snapshot, size = self._messages.get(id(value), _UNKNOWN)
        if message is None or message is not value or not _equal(vars(value), fields):
            if _is_list(value) and id(value) not in inside and len(inside) <= MAX_DEPTH:
                self.count(_CONTAINER + len(value))
                inside = (*inside, id(value))
                return [self._object(item, inside) for item in value]
            snapshot = to_json(value, inside)
            size = _size(snapshot)
            if _is_plain_message(value):
                self._messages[id(value)] = (value, to_json(vars(value)), snapshot, size)
        self.count(size)
        return snapshot

    def count(self, items: int) -> None:
        """Add to the size of what is recorded."""
        self.size += items
        self._expanded_size += items

    def _long_list(self, value: list[Any], inside: tuple[int, ...]) -> Any:
        self.has_long = True
        known, snapshot, expanded_size = self._known.get(id(value), (None, None, 0))
        if known is value and (snapshot is value or _equal(value, snapshot)):
            self._expanded_size += expanded_size
            return snapshot
        before = self._expanded_size
        snapshot = self._copy(value, inside)
        expanded_size = self._expanded_size - before
        self._keep(value, snapshot, expanded_size)
        self._keep(snapshot, snapshot, expanded_size)
        return snapshot

    def _keep(self, value: Any, snapshot: Any, expanded_size: int) -> None:
        self._known[id(value)] = (value, snapshot, expanded_size)
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]


def _is_plain_message(value: Any) -> bool:
    """True for a message without an artifact, which may be anything and is not recorded."""
    from langchain_core.messages import BaseMessage

    return isinstance(value, BaseMessage) and getattr(value, "artifact", None) is None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _size(plain: Any) -> int:
    """Return the number of items and pieces of text in JSON data."""
    kind = type(plain)
    if kind is str:
        return len(plain) // _PIECE
    if kind is not dict and kind is not list:
        return 0
    items = plain.values() if kind is dict else plain
    return _CONTAINER + len(plain) + sum(map(_size, items)) if plain else 0


def _equal(value: Any, snapshot: Any) -> bool:
    try:
        return bool(value == snapshot)
    except Exception:  # a user's __eq__, or lists nested too deep
        return False


class Hashes:
    """Replaces long lists and texts by their hashes. Each object is hashed once."""

    def __init__(self, canonical: Callable[[Any], str]) -> None:
        self._canonical = canonical
        self._of: dict[int, tuple[Any, dict[str, str]]] = {}

    def shortened(self, value: Any) -> Any:
        """Return a JSON value with its long lists and texts replaced by hashes."""
        kind = type(value)
        if kind is dict:
            return {key: self.shortened(item) for key, item in value.items()}
        if (kind is list and len(value) >= LONG_LIST) or (kind is str and len(value) >= LONG_TEXT):
            return self._hash(value)
        return [self.shortened(item) for item in value] if kind is list else value

    def _hash(self, value: Any) -> dict[str, str]:
        found = self._of.get(id(value))
        if found is None:
            text = self._canonical(value).encode("utf-8", "surrogatepass")
            found = self._of[id(value)] = (value, {"sha256": hashlib.sha256(text).hexdigest()})
        return found[1]
