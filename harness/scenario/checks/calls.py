"""Checks of what a run asked of the world: models, tools, servers, agents, scripts, people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from harness.matchers.glob import last_part_matches, name_matches
from harness.matchers.value import matches
from harness.scenario.checks.finding import Finding, as_list, partial_credit, pass_or_fail
from harness.scenario.checks.sequence import Pairs, common_subsequence, largest_pairing
from harness.scenario.diff import one_line, readable_diff
from harness.scenario.outcome import Observed

Call = Mapping[str, Any]
Order = Literal["in_order", "any", "exact"]

OTHER_KEYS: Final = ("node", "args", "ok")
NAMELESS: Final = ("handler",)
"""Kinds no expectation can name: a handler is what its node does, and stands in `path`."""
PAIR_UP: Final[Mapping[Order, Callable[..., Pairs]]] = {
    "in_order": common_subsequence,
    "any": largest_pairing,
    "exact": common_subsequence,
}


def calls(expected: Any, observed: Observed, order: Order = "in_order") -> Finding:
    """These calls were made; else the share found, and F1 when `exact`.

    `in_order`: they are a subsequence of all calls. `any`: in any order, each call found once. `exact`:
    these in this order and no others, of any kind that can be named here. Arguments are matched as a subset.
    """
    wanted = as_list(expected)
    seen = [call for call in observed.calls if call.get("kind") not in NAMELESS]
    pairs = PAIR_UP[order](wanted, seen, call_matches)
    found, made = {i for i, _ in pairs}, {j for _, j in pairs}
    notes = [_not_found(item, seen) for i, item in enumerate(wanted) if i not in found]
    total = 2 * len(wanted)
    if order == "exact":
        total = len(wanted) + len(seen)
        notes += [f"not expected: {_described(call)}" for j, call in enumerate(seen) if j not in made]
    return Finding(2 * len(pairs) / total if total else 1.0, _briefly(seen), "\n".join(notes))


def never_calls(expected: Any, observed: Observed) -> Finding:
    """No call matches any of these; else 0."""
    wrong = [call for call in observed.calls if any(call_matches(item, call) for item in as_list(expected))]
    return pass_or_fail(
        not wrong, _briefly(wrong), "\n".join(f"was made: {_described(call)}" for call in wrong)
    )


def call_counts(expected: Mapping[str, Any], observed: Observed) -> Finding:
    """`{kind: count}` or `{"kind:name": count}`, the name a glob; the share that hold."""
    counts = {key: sum(_counts(key, call) for call in observed.calls) for key in expected}
    faults = [
        None if matches(wanted, counts[key]) else f"{key}: expected {one_line(wanted)}, was {counts[key]}"
        for key, wanted in expected.items()
    ]
    return partial_credit(faults, counts)


def call_matches(wanted: Call, call: Call) -> bool:
    """The call has this kind and name, and the node, arguments and success that are asked for."""
    if not _named(wanted, call):
        return False
    if "node" in wanted and not last_part_matches(wanted["node"], call.get("node") or ""):
        return False
    if "ok" in wanted and wanted["ok"] is not call.get("ok", True):
        return False
    return "args" not in wanted or matches(wanted["args"], call.get("args"))


def _named(wanted: Call, call: Call) -> bool:
    return all(_has_name(kind, wanted[kind], call) for kind in wanted if kind not in OTHER_KEYS)


def _has_name(kind: str, pattern: str, call: Call) -> bool:
    return bool(call["kind"] == kind and name_matches(kind, pattern, call.get("name") or ""))


def _counts(key: str, call: Call) -> bool:
    kind, _, pattern = key.partition(":")
    return _has_name(kind, pattern or "*", call)


def _not_found(wanted: Call, made: Sequence[Call]) -> str:
    """The call that was asked for, and what is wrong with the first one that has its name."""
    text = f"not found: {one_line(wanted)}"
    near = next((call for call in made if _named(wanted, call)), None)
    if near is None:
        return text
    faults = (
        readable_diff({key: wanted[key] for key in OTHER_KEYS if key in wanted}, {"ok": True, **near})
        or "it stands elsewhere, or is counted already"
    )
    indented = faults.replace("\n", "\n    ")
    return f"{text}\n  nearest: {_described(near)}\n    {indented}"


def _described(call: Call) -> str:
    node = f" from {call['node']}" if call.get("node") else ""
    return f"{call['kind']} {call.get('name')}{node} {one_line(call.get('args'))}"


def _briefly(made: Sequence[Call]) -> list[dict[str, Any]]:
    return [
        {key: call[key] for key in ("kind", "name", "node", "args", "ok") if key in call} for call in made
    ]
