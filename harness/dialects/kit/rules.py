"""Rules that several dialects have: names are given once, known and not reserved; nodes can be reached."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

from harness.errors import Problem, Span
from harness.graph.model import END, START
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath


def warning(code: str, text: str, span: Span, hint: str = "") -> Problem:
    """Return a problem that does not keep the manifest from running."""
    return Problem(code, text, span, hint, "warning")


class Rules:
    """Base class of rules on a document. They yield its problems, located by paths in it."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def error(self, code: str, text: str, *path: str | int, hint: str = "", key: bool = False) -> Problem:
        """Return an error in the value at a path; with `key`, in its key."""
        span = self.document.key_span(path) if key else self.document.span(path)
        return Problem(code, text, span, hint)

    def warning(self, code: str, text: str, *path: str | int, hint: str = "", key: bool = False) -> Problem:
        """Return a warning of the value at a path; with `key`, of its key."""
        return replace(self.error(code, text, *path, hint=hint, key=key), severity="warning")

    def known_name(
        self, code: str, text: str, name: Any, names: Collection[Any], *path: str | int
    ) -> Iterator[Problem]:
        """Yield an error, with a suggestion, if a name is not among these."""
        if name not in names:
            yield self.error(code, text, *path, hint=did_you_mean(name, [*names]))

    def not_reserved(self, name: Any, *path: str | int) -> Iterator[Problem]:
        """Yield a problem if a node has a name that every graph has already."""
        if name in (START, END):
            yield self.error("reserved-name", f"'{name}' is not a name for a node", *path)


def repeated(names: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
    """Yield the index of each name that is given again, with the index where it is first."""
    first: dict[Hashable, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            yield index, first[name]


Node = TypeVar("Node", bound=Hashable)


def reachable(start: Node, edges: Iterable[tuple[Node, Node]]) -> set[Node]:
    """Return `start` and all nodes reachable from it along the edges (source, target)."""
    targets: dict[Node, list[Node]] = {}
    for source, target in edges:
        targets.setdefault(source, []).append(target)
    found, ahead = {start}, [start]
    while ahead:
        new = set(targets.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return found


def unreachable_nodes(
    edges: Iterable[tuple[str, str]], nodes: Iterable[tuple[str, Span]]
) -> Iterator[Problem]:
    """Yield a warning for each node, with its location, to which no edges (source, target) lead from the start."""
    reached = reachable(START, edges)
    for name, span in nodes:
        if name not in reached:
            yield warning("unreachable-node", f"node '{name}' can never run: nothing leads to it", span)


_LIKELY: Final = re.compile(r"\d:[0-5]?\d")


def sexagesimals(document: Document) -> Iterator[Problem]:
    """Yield a warning for each sexagesimal number in a document, except in `metadata`, which has no effect."""
    if _LIKELY.search(document.text):
        yield from _below(document, (), document.value)


def _below(document: Document, path: DocumentPath, value: Any) -> Iterator[Problem]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "metadata":
                yield from _below(document, (*path, key), item)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _below(document, (*path, at), item)
    elif type(value) in (int, float):
        start, end = document.extent_of(path)
        written = document.text[start:end]
        if ":" in written and "*" not in written:
            text = f"{written} is read as the number {value:g}, to the base of 60 (YAML 1.1)"
            yield Problem("sexagesimal", text, document.span(path), "quote it to make it text", "warning")
