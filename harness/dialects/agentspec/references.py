"""Resolution of references (`$component_ref`) to components and values, each of which is read once.

spec: "Symbolic references"; "also values … can become referenced".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeVar

from harness.dialects.agentspec.component import BROKEN, Component
from harness.dialects.agentspec.dialect import (
    REFERENCE,
    TABLE,
    TYPE,
    VERSION,
    mapped_entries,
    mappings_in,
    table_entries,
)
from harness.dialects.agentspec.document import version_problems
from harness.dialects.kit.manifest import Problems
from harness.errors import Problem, Span
from harness.source.display import did_you_mean, nearest
from harness.source.document import Document
from harness.source.models import describe

MAX_NODES: Final = 100_000
"""The maximum number of nodes in a component's values, and in a referenced value, with all references expanded."""

MAX_REFERENCE_DEPTH: Final = 40
"""The maximum number of references nested in each other."""

_MAX_SHOWN_KEYS: Final = 8

Read = TypeVar("Read")


class UnreadableValue(Exception):
    """A value that could not be read. Its problems are already collected."""


class TooManyNodes(Exception):
    """A value that has more nodes than its budget allows."""


class Budget:
    """The number of nodes that a value may still have."""

    def __init__(self, nodes: int = MAX_NODES) -> None:
        self.remaining = nodes

    def spend(self, nodes: int) -> None:
        """Subtract nodes from the budget.

        Raises:
            TooManyNodes: the budget is exceeded.
        """
        self.remaining -= nodes
        if self.remaining < 0:
            raise TooManyNodes


class References:
    """The tables of all documents, and the entries read from them.

    `values` has the components and values read so far, by key. `read_component` reads the component that a part of a
    document defines or refers to.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        problems: Problems,
        read_component: Callable[[Document], Component],
    ) -> None:
        self.values: dict[str, Any] = {}
        self._problems = problems
        self._read_component = read_component
        self._main = documents[0]
        self._alone = len(documents) == 1
        self._tables: dict[str, Document] = {}
        self._nodes: dict[str, int] = {}  # the number of nodes in each value read, references expanded
        self._lists: dict[str, Any] = {}  # the lists of components read, by key
        self._open: list[str] = []  # the references being followed, the outermost first
        self._acyclic: set[str] = set()
        for document in documents:
            self._add(document)

    def map(self, components: Mapping[str, str], spans: Mapping[str, Span]) -> None:
        """Let each id in `components` stand for the component with that key. `spans` are the spans of the keys."""
        if not components:
            return
        written = (self._main.value, *(part.value for part in self._tables.values()))
        wanted = {key for value in written for key in _keys_in(value)}
        for id_, key in components.items():
            span = spans.get(id_, self._main.span())
            if key not in self._tables:
                text = f"no component '{key}' is defined, which '{id_}' stands for"
                self._problems.refuse("unknown-reference", text, span, did_you_mean(key, self._tables))
                self.values[id_] = BROKEN
            elif id_ in self._tables:
                text = f"'{id_}' is in a table of components already, so it cannot stand for '{key}'"
                self._problems.refuse("duplicate-reference", text, span)
            elif id_ not in wanted:
                text = f"nothing refers to '{id_}', which stands for '{key}'"
                hint = did_you_mean(id_, [name for name in wanted if name not in self._tables])
                self._problems.add([Problem("unknown-reference", text, span, hint, "warning")])
        self._tables |= mapped_entries(components, self._tables)

    def __contains__(self, key: object) -> bool:
        return key in self._tables

    def entry(self, key: str) -> Document:
        """Return the entry with this key."""
        return self._tables[key]

    def _add(self, document: Document) -> None:
        """Add the tables of a document. A key may be in one table only."""
        for key, part in table_entries(document):
            first = self._tables.setdefault(key, part)
            if first is not part:
                text = f"'{key}' is in two tables of components; first at {first.span()}"
                self._problems.refuse("duplicate-reference", text, part.span())

    # ------------------------------------------------------------------ reading a part of a document

    def resolve(self, part: Document) -> Any:
        """Resolve a `{"$component_ref": key}`. If there is no such entry, add a problem and return `BROKEN`."""
        key = self._key(part)
        return BROKEN if key is None else self.follow(key, part.span((REFERENCE,)))

    def value(self, part: Document, budget: Budget) -> Any:
        """Return a value with all references in it expanded.

        Raises:
            UnreadableValue: a part of it could not be read.
            TooManyNodes: with references expanded, it exceeds the budget.
        """
        value = part.value
        if isinstance(value, dict) and REFERENCE in value:
            return self._resolve_value(part, budget)
        budget.spend(1)
        if isinstance(value, dict):
            return {key: self.value(part.at((key,)), budget) for key in value}
        if isinstance(value, list):
            return [self.value(part.at((index,)), budget) for index in range(len(value))]
        if isinstance(value, date) or (isinstance(value, float) and not math.isfinite(value)):
            text = f"expected a value of JSON, found {describe(value)}"
            hint = "quote it to make it text" if isinstance(value, date) else ""
            self._problems.refuse("wrong-type", text, part.span(), hint)
            raise UnreadableValue
        return value

    def _resolve_value(self, part: Document, budget: Budget) -> Any:
        found = self.resolve(part)
        if isinstance(found, Component):
            if found is not BROKEN:
                self._problems.refuse("wrong-component", f"expected a value, found the {found}", part.span())
            raise UnreadableValue
        budget.spend(self._nodes[part.value[REFERENCE]])
        return found

    def components(self, part: Document) -> Any:
        """Read the components of a list, which a part contains or refers to; None if there is no list."""
        key, end = self._resolve_chain(part)
        if not isinstance(end.value, list):
            return None
        if key is None:
            return self._read_list(end)
        self._key(part)
        return self._read_once(self._lists, key, part.span((REFERENCE,)), self._read_list)

    def _read_list(self, part: Document) -> list[Component]:
        return [self._read_component(part.at((index,))) for index in range(len(part.value))]

    def _resolve_chain(self, part: Document) -> tuple[str | None, Document]:
        """Return the last key of a chain of references, and its entry. Without a reference, None and the part."""
        followed: dict[str, None] = {}
        while isinstance(part.value, dict):
            key = part.value.get(REFERENCE)
            if not isinstance(key, str) or key not in self._tables or key in followed:
                break
            followed[key] = None
            part = self._tables[key]
        return next(reversed(followed), None), part

    def _key(self, part: Document) -> str | None:
        """Return the key of a reference. If it is not valid, add a problem and return None."""
        for extra in part.value:
            if extra not in (REFERENCE, TABLE):
                text = f"unknown key '{extra}' next to {REFERENCE}"
                self._problems.refuse("unknown-key", text, part.key_span((extra,)))
        key = part.value[REFERENCE]
        if not isinstance(key, str):
            text = f"{REFERENCE}: expected text, found {describe(key)}"
            self._problems.refuse("wrong-type", text, part.span((REFERENCE,)))
            return None
        return key

    # ------------------------------------------------------------------ following

    def follow(self, key: str, span: Span) -> Any:
        """Return the component or value of a key. If it cannot be read, add a problem and return `BROKEN`."""
        return self._read_once(self.values, key, span, lambda part: self._read(key, part))

    def _read(self, key: str, part: Document) -> Any:
        _, end = self._resolve_chain(part)
        if isinstance(end.value, dict) and TYPE in end.value:
            if VERSION in part.value:  # the official SDK writes one into disaggregated components
                self._problems.add(version_problems(part, required=False))
                part = part.without(VERSION)
            return self._read_component(part)
        budget = Budget()
        try:
            found = self.value(part, budget)
        except TooManyNodes:
            text = f"'{key}' has more than {MAX_NODES:,} values, with its references expanded"
            self._problems.refuse("too-many-nodes", text, part.span())
            raise UnreadableValue from None
        self._nodes[key] = MAX_NODES - budget.remaining
        return found

    def _read_once(
        self, known: dict[str, Any], key: str, span: Span, read: Callable[[Document], Read]
    ) -> Any:
        """Read the entry of a key and cache it in `known`. If it cannot be read, add a problem; `BROKEN`."""
        if key in known:
            return known[key]
        if not self._may_follow(key, span):
            known[key] = BROKEN
            return BROKEN
        self._open.append(key)
        try:
            known[key] = read(self._tables[key])
        except UnreadableValue:
            known[key] = BROKEN
        finally:
            self._open.pop()
        return known[key]

    def _may_follow(self, key: str, span: Span) -> bool:
        if key not in self._tables:
            text = f"no component '{key}' is defined"
            self._problems.refuse("unknown-reference", text, span, self._missing_key_hint(key))
            return False
        cycle: Sequence[str] = ()
        if key in self._open:
            cycle = [*self._open[self._open.index(key) :], key]
        elif len(self._open) >= MAX_REFERENCE_DEPTH:
            cycle = self._find_cycle(key)
            self.values |= dict.fromkeys(cycle, BROKEN)  # report the cycle once
            if not cycle:
                text = f"'{key}' is nested too deep: at most {MAX_REFERENCE_DEPTH} references may be nested"
                self._problems.refuse("too-deep", text, span)
                return False
        if cycle:
            text = f"components contain each other: {_chain(cycle)}"
            self._problems.refuse("circular-reference", text, span)
        return not cycle

    def _missing_key_hint(self, key: str) -> str:
        for path, found in mappings_in(self._main.value, ()):
            if TYPE in found and found.get("id") == key:
                what = f"it is the id of the component at {self._main.span((*path, 'id'))}"
                return f"{what}: put that component under {TABLE}, with the key '{key}'"
        if not self._alone:
            return did_you_mean(key, self._tables)
        near = nearest(key, self._tables)
        guess = f"did you mean '{near}'? Otherwise " if near else ""
        both = f"[{Path(self._main.file).name}, parts.yaml]"
        return f"{guess}give the document that has it: `manifest: {both}`, or `--with parts.yaml`"

    def _find_cycle(self, start: str) -> Sequence[str]:
        """Return a cycle of keys that is reachable from a key; empty if there is none. Does not recurse."""
        path: dict[str, None] = {}
        ahead = [iter([start])]
        while ahead:
            key = next(ahead[-1], None)
            if key is None:
                ahead.pop()
                if path:
                    self._acyclic.add(path.popitem()[0])
            elif key in path:
                keys = list(path)
                return [*keys[keys.index(key) :], key]
            elif key in self._tables and key not in self._acyclic:
                path[key] = None
                ahead.append(_keys_in(self._tables[key].value))
        return ()


def _keys_in(value: Any) -> Iterator[str]:
    """Yield the keys that a value refers to, except those in metadata and tables."""
    ahead = [value]
    while ahead:
        found = ahead.pop()
        if isinstance(found, dict):
            if isinstance(found.get(REFERENCE), str):
                yield found[REFERENCE]
            ahead += [item for key, item in found.items() if key not in (TABLE, "metadata")]
        elif isinstance(found, list):
            ahead += found


def _chain(cycle: Sequence[str]) -> str:
    if len(cycle) > _MAX_SHOWN_KEYS:
        cycle = [*cycle[:3], "…", *cycle[-2:]]
    return " → ".join(cycle)
