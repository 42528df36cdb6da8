"""Values as a trace keeps them: snapshots as JSON data, which share what is long and has not changed.

A node may hand on a list of 100,000 items at every step. To copy it each time, and to hash each copy, would make a
step cost what the list is long; so the list is copied again only when it has changed, and hashed once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from harness.graph.to_json import MAX_DEPTH, key_text, to_json

LONG_LIST: Final = 100
LONG_TEXT: Final = 10_000
_PIECE: Final = 16  # so many characters of a text count as one item
_KEPT: Final = 100  # so many long values are compared with what comes next
_CONTAINER: Final = 8  # a list or mapping costs as much as so many items
_SCALARS: Final = frozenset({int, bool, float, type(None)})


class Snapshots:
    """Makes the snapshots of one trace.

    `size` counts the items and pieces of texts in all of them, shared ones once, and `largest` those of the largest,
    shared ones as often as they stand in it: so large it is where it is written out.

    A snapshot must not be changed. A list counts as unchanged when it is the same object and equal to its snapshot:
    the comparison takes a hundredth of the time of a copy.
    """

    def __init__(self) -> None:
        self.size = 0
        self.largest = 0
        self.has_long = False
        self._known: dict[int, tuple[Any, Any, int]] = {}
        self._whole = 0

    def of(self, value: Any) -> Any:
        """As `to_json`, but long lists may be shared with earlier snapshots."""
        before = self._whole
        snapshot = self._of(value, ())
        self.largest = max(self.largest, self._whole - before)
        return snapshot

    def _of(self, value: Any, inside: tuple[int, ...]) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value)
        if (kind is not dict and kind is not list) or id(value) in inside or len(inside) > MAX_DEPTH:
            return to_json(value, inside)
        if kind is list and len(value) >= LONG_LIST:
            return self._long_list(value, inside)
        return self._copy(value, inside)

    def _text(self, value: str) -> Any:
        pieces = len(value) // _PIECE
        self._whole += pieces
        if len(value) >= LONG_TEXT:
            self.has_long = True
            if self._known.get(id(value), (None,))[0] is value:
                return value
            self._keep(value, value, pieces)
        self.size += pieces
        return value

    def _copy(self, value: Any, inside: tuple[int, ...]) -> Any:
        self.size += _CONTAINER + len(value)
        self._whole += _CONTAINER + len(value)
        inside = (*inside, id(value))
        if type(value) is dict:
            return {key_text(key): self._of(item, inside) for key, item in value.items()}
        return [to_json(item, inside) if type(item) in _SCALARS else self._of(item, inside) for item in value]

    def _long_list(self, value: list[Any], inside: tuple[int, ...]) -> Any:
        self.has_long = True
        known, snapshot, whole = self._known.get(id(value), (None, None, 0))
        if known is value and (snapshot is value or _equal(value, snapshot)):
            self._whole += whole
            return snapshot
        before = self._whole
        snapshot = self._copy(value, inside)
        whole = self._whole - before
        self._keep(value, snapshot, whole)
        self._keep(snapshot, snapshot, whole)
        return snapshot

    def _keep(self, value: Any, snapshot: Any, whole: int) -> None:
        self._known[id(value)] = (value, snapshot, whole)
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]


def _equal(value: list[Any], snapshot: list[Any]) -> bool:
    try:
        return value == snapshot
    except Exception:  # somebody else's __eq__, or lists nested too deep
        return False


class Hashes:
    """Puts hashes in the place of long lists and texts. What stands in many places is hashed once."""

    def __init__(self, canonical: Callable[[Any], str]) -> None:
        self._canonical = canonical
        self._of: dict[int, tuple[Any, dict[str, str]]] = {}

    def shortened(self, value: Any) -> Any:
        """The JSON value with the hashes of its long parts."""
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
