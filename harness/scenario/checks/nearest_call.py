"""Finds the call nearest to one that was expected but not found, and describes the differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.matchers.value import leaf_score
from harness.scenario.diff import one_line, readable_diff
from harness.source.display import nearest

Call = Mapping[str, Any]


def nearest_call(
    wanted: Call,
    kind_and_name: tuple[str, str],
    made: Sequence[Call],
    counted: Iterable[int],
    is_named: Callable[[Call], bool],
) -> str:
    """Return the nearest call and its differences as text; empty if no call is near.

    Candidates are the calls of this name, or else those of a similar name, or else those of this name in
    another kind. Of these, calls that are not matched to another expectation come first, then those that match
    best.

    Args:
        wanted: the other expected properties: `node`, `args` and `ok`.
        kind_and_name: the expected kind and the pattern of its name.
        made: all calls of the run.
        counted: indexes of calls that are matched to other expectations.
        is_named: true if a call has the expected kind and name.
    """
    named = {at: call for at, call in enumerate(made) if is_named(call)}
    found = named or _similar(kind_and_name, made)
    if not found:
        return ""
    taken = set(counted)
    call = made[max(found, key=lambda at: (at not in taken, leaf_score(wanted, _seen(made[at]))[0]))]
    faults = [*_other_name(kind_and_name, call, named=bool(named)), *_reason(call)]
    differences = readable_diff(wanted, _seen(call))
    faults += [differences] if differences else []
    text = "\n".join(faults) or "it is at another position, or already counted"
    return f"nearest: {describe_call(call)}\n{_indented(text)}"


def describe_call(call: Call) -> str:
    """Describe a call on one line: kind, name, node and arguments."""
    node = f" from {call['node']}" if call.get("node") else ""
    return f"{call['kind']} {call.get('name')}{node} {one_line(call.get('args'))}"


def _similar(kind_and_name: tuple[str, str], made: Sequence[Call]) -> dict[int, Call]:
    """Return the calls of this kind with the most similar name, or else those of another kind with this name."""
    kind, name = kind_and_name
    like = nearest(name, (str(call.get("name")) for call in made if call["kind"] == kind))
    if like is not None:
        return {at: call for at, call in enumerate(made) if (call["kind"], call.get("name")) == (kind, like)}
    return {at: call for at, call in enumerate(made) if call.get("name") == name}


def _seen(call: Call) -> Call:
    return {"ok": True, **call}


def _other_name(kind_and_name: tuple[str, str], call: Call, *, named: bool) -> list[str]:
    kind, name = kind_and_name
    if named:
        return []
    if call["kind"] != kind:
        return [f"expected a call of kind {kind}, was {call['kind']}"]
    return [f"{kind}: expected {name}, was {call.get('name')}"]


def _reason(call: Call) -> list[str]:
    return (
        [f"it {'was refused' if call.get('refused') else 'failed'}: {call['reason']}"]
        if "reason" in call
        else []
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
