"""Reachability in a graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

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
