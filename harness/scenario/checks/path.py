"""Checks of the path of a run through the top graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import eq
from typing import Any, Final

from harness.matchers.value import matches
from harness.scenario.checks.calls import common_subsequence
from harness.scenario.checks.check import check, empty
from harness.scenario.checks.finding import Finding, as_list, one_line, partial_credit, pass_or_fail
from harness.scenario.mentions import Mention, nodes_as_keys, nodes_listed
from harness.scenario.outcome import Observation, Origin
from harness.source.document import Document

NEARBY: Final = 8
"""Number of steps shown on either side of the first difference."""

Step = tuple[str, ...]
"""The nodes of one superstep, sorted: they have no order."""


@check(names=(nodes_listed,), vacuous=(), untried=(), reads=("path",), exact=True, origin=Origin.LOOP)
def path(expected: Any, observed: Observation) -> Finding:
    """The nodes ran in exactly this order; else longest common subsequence / longer length.

    Supersteps are compared: a nested list is the multiset of nodes that ran in one, a name is a superstep of
    that node alone. So a sequence of names never matches nodes that ran in parallel, whichever started first.
    In graphs without supersteps, nodes start one after the other, and a nested list matches them in any order.
    """
    wanted, ran = _steps(as_list(expected)), _steps(observed.path)
    if not observed.has_supersteps:
        wanted = _one_by_one(wanted, _names(observed.path))
    if wanted == ran:
        return Finding(1.0, observed.path)
    common = len(common_subsequence(wanted, ran, eq))
    return Finding(common / max(len(wanted), len(ran)), observed.path, _divergence(wanted, ran))


@check(names=(nodes_listed,), vacuous=(empty,), untried=(), reads=("path",), origin=Origin.PATH)
def path_includes(expected: Any, observed: Observation) -> Finding:
    """These nodes ran, in this order, whatever ran between; else longest common subsequence / expected length.

    Nodes of one superstep are in the order in which they started.
    """
    wanted, ran = _names(as_list(expected)), _names(observed.path)
    pairs = common_subsequence(wanted, ran, eq)
    found = {index for index, _ in pairs}
    missing = ", ".join(name for index, name in enumerate(wanted) if index not in found)
    score = len(pairs) / len(wanted) if wanted else 1.0
    message = (
        f"not found in this order: {missing}\n  actual: {_steps_text(_steps(observed.path), 0)}"
        if missing
        else ""
    )
    return Finding(score, observed.path, message)


@check(names=(nodes_as_keys,), vacuous=(empty,), untried=(), reads=("path",), apart=True, origin=Origin.PATH)
def visits(expected: Mapping[str, Any], observed: Observation) -> Finding:
    """`{node: count}`: how often each node ran; else the share that hold."""
    return _counted(expected, observed, lambda wanted, count: matches(wanted, count), "")


@check(
    names=(nodes_as_keys,),
    vacuous=(empty,),
    untried=(),
    reads=("path",),
    apart=True,
    origin=Origin.EXCESS | Origin.LOOP,
)
def max_visits(expected: Mapping[str, Any], observed: Observation) -> Finding:
    """`{node: count}`: how often each node ran at most; else the share that hold."""
    return _counted(expected, observed, lambda most, count: bool(count <= most), "at most ")


@check(names=(nodes_listed,), vacuous=(empty,), untried=(), reads=("path",), apart=True, origin=Origin.EXCESS)
def never(expected: Any, observed: Observation) -> Finding:
    """None of these nodes ran; else 0."""
    ran = _names(observed.path)
    wrong = [name for name in as_list(expected) if name in ran]
    return pass_or_fail(not wrong, observed.path, f"ran: {', '.join(wrong)}")


def _ends_of_routes(key: str, at: Document) -> Iterator[Mention]:
    for index, route in enumerate(at.value[key]):
        yield Mention(key, "source", route["from"], at.span((key, index, "from")))
        yield Mention(key, "target", route["to"], at.span((key, index, "to")))


@check(
    names=(_ends_of_routes,), vacuous=(empty,), untried=(), reads=("path",), apart=True, origin=Origin.PATH
)
def routes(expected: Any, observed: Observation) -> Finding:
    """These `{from, to}` transitions were taken; else the share that hold."""
    faults = []
    for route in as_list(expected):
        origin, target = route["from"], route["to"]
        others = sorted({end for start, end in map(tuple, observed.routes) if start == origin})
        instead = f"it led to {', '.join(others)}" if others else f"{origin} was never left"
        taken = [origin, target] in [list(pair) for pair in observed.routes]
        faults.append(None if taken else f"{origin} → {target} was not taken; {instead}")
    return partial_credit(faults, observed.routes)


def _counted(expected: Mapping[str, Any], observed: Observation, holds: Any, bound: str) -> Finding:
    counts = {node: observed.visits.get(node, 0) for node in expected}
    faults = [
        None
        if holds(wanted, counts[node])
        else f"{node}: expected {bound}{one_line(wanted)}, was {counts[node]}"
        for node, wanted in expected.items()
    ]
    return partial_credit(faults, counts)


def _steps(nodes: Sequence[Any]) -> list[Step]:
    return [tuple(sorted(as_list(node))) for node in nodes]


def _one_by_one(wanted: Sequence[Step], ran: Sequence[str]) -> list[Step]:
    """Split the expected steps into steps of one node.

    The nodes of a nested list take the order in which they ran.
    """
    names: list[str] = []
    for step in wanted:
        beside = ran[len(names) : len(names) + len(step)]
        names += beside if tuple(sorted(beside)) == step else step
    return _steps(names)


def _names(nodes: Sequence[Any]) -> list[str]:
    return [name for node in nodes for name in as_list(node)]


def _divergence(wanted: Sequence[Step], ran: Sequence[Step]) -> str:
    both = zip(wanted, ran, strict=False)
    at = next((index for index, (a, b) in enumerate(both) if a != b), min(len(wanted), len(ran)))
    here, there = (_step_text(steps[at]) if at < len(steps) else "the end" for steps in (wanted, ran))
    ways = f"  expected: {_steps_text(wanted, at)}\n  actual:   {_steps_text(ran, at)}"
    return f"step {at + 1}: expected {here}, was {there}\n{ways}"


def _steps_text(steps: Sequence[Step], at: int) -> str:
    """Return the steps around the index `at` as text."""
    first, end = max(0, at - NEARBY), at + NEARBY + 1
    shown = [*["…"] * (first > 0), *map(_step_text, steps[first:end]), *["…"] * (end < len(steps))]
    return " → ".join(shown) or "nothing"


def _step_text(step: Step) -> str:
    return step[0] if len(step) == 1 else f"[{', '.join(step)}]"
