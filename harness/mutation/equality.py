"""Equality of compiled graphs, by all that they are made of: also of what their functions have closed over.

In doubt, two graphs differ. Locations do not count.
"""

from __future__ import annotations

import re
import types
from dataclasses import fields, is_dataclass
from functools import partial
from operator import itemgetter
from pathlib import PurePath
from typing import Any, Final

from harness.dialects.request import LoadRequest
from harness.errors import Problem, Span
from harness.graph import observe
from harness.graph.model import Graph
from harness.source.document import Document

_PLAIN: Final = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    PurePath,
    type,
    types.ModuleType,
    re.Pattern,
)
_OF_NO_MEANING: Final = (Span, Problem, LoadRequest)


def same_graph(one: Graph, other: Graph) -> bool:
    """True if two graphs are equal."""
    return _same(one, other, {})


def same_edges(one: Graph, other: Graph) -> bool:
    """True if two graphs have the same edges, those to the end that are not written among them."""
    edges, others = (
        [(edge.source, edge.target, edge.label) for edge in (*graph.edges, *observe.implied_ends(graph))]
        for graph in (one, other)
    )
    return sorted(edges, key=itemgetter(0)) == sorted(others, key=itemgetter(0))


def _same(one: Any, other: Any, seen: dict[tuple[int, int], Any]) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, _PLAIN):
        return bool(one == other)
    if isinstance(one, _OF_NO_MEANING):
        return True
    pair = id(one), id(other)
    if pair in seen:
        return True
    seen[pair] = one, other  # kept, as another object may get the id of one that is gone
    if isinstance(one, Document):
        return _same(one.value, other.value, seen)
    if isinstance(one, dict):
        return _same([*one], [*other], seen) and _same([*one.values()], [*other.values()], seen)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(_same(*each, seen) for each in zip(one, other, strict=True))
    if isinstance(one, set | frozenset):
        return bool(one == other)
    parts = _parts(one), _parts(other)
    return bool(one == other) if parts[0] is None else _same(*parts, seen)


def _parts(value: Any) -> Any:
    """Return what an object is made of; None if that is not known."""
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
        return [value.__code__, value.__defaults__, value.__kwdefaults__, cells]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.CodeType):
        return [value.co_code, value.co_consts, value.co_names, value.co_freevars]
    if is_dataclass(value):
        return {each.name: getattr(value, each.name, None) for each in fields(value)}
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    if hasattr(value, "__dict__") or slots:
        return {**getattr(value, "__dict__", {}), **{name: getattr(value, name, None) for name in slots}}
    return None
