"""Checks of the calls of a run: to models, tools, servers, agents, scripts and people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from harness.errors import CannotEvaluate
from harness.graph.effects import EFFECTS, Effect
from harness.matchers.regex import last_part_matches, name_matches
from harness.matchers.vacuous import VacuousPart, vacuous_parts
from harness.matchers.value import compare, matches
from harness.scenario.checks.check import check, empty
from harness.scenario.checks.finding import (
    Finding,
    as_list,
    one_line,
    partial_credit,
    pass_or_fail,
    readable_diff,
)
from harness.scenario.mentions import Mention, argument_mentions, target_mentions, unknown_arguments
from harness.scenario.outcome import Observation, Origin
from harness.source.display import nearest
from harness.source.document import Document


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
    call = made[max(found, key=lambda at: (at not in taken, compare(wanted, _seen(made[at])).score))]
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


Expected = TypeVar("Expected")
Actual = TypeVar("Actual")
Pairs = list[tuple[int, int]]


def common_subsequence(
    expected: Sequence[Expected], actual: Sequence[Actual], same: Callable[[Expected, Actual], bool]
) -> Pairs:
    """Return the longest alignment that keeps both orders, as increasing `(index in expected, index in actual)`."""
    alike = [[same(wanted, found) for found in actual] for wanted in expected]
    # longest[i][j]: length of the longest alignment of expected[i:] with actual[j:]
    longest = [[0] * (len(actual) + 1) for _ in range(len(expected) + 1)]
    for i in reversed(range(len(expected))):
        for j in reversed(range(len(actual))):
            longest[i][j] = (
                longest[i + 1][j + 1] + 1 if alike[i][j] else max(longest[i + 1][j], longest[i][j + 1])
            )
    pairs, i, j = [], 0, 0
    while i < len(expected) and j < len(actual):
        if alike[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def maximum_matching(
    expected: Sequence[Expected], actual: Sequence[Actual], same: Callable[[Expected, Actual], bool]
) -> Pairs:
    """Return a maximum matching in any order, each item used once, sorted by expected index.

    The algorithm is that of augmenting paths (Kuhn 1955).
    """
    alike = [[same(wanted, found) for found in actual] for wanted in expected]
    taken: dict[int, int] = {}  # actual index -> expected index

    def place(i: int, tried: set[int]) -> bool:
        for j, fits in enumerate(alike[i]):
            if fits and j not in tried:
                tried.add(j)
                if j not in taken or place(taken[j], tried):
                    taken[j] = i
                    return True
        return False

    for i in range(len(expected)):
        place(i, set())
    return sorted((i, j) for j, i in taken.items())


Call = Mapping[str, Any]
Order = Literal["in_order", "any", "exact"]

OTHER_KEYS: Final = ("node", "args", "ok")
ALIGNMENTS: Final[Mapping[Order, Callable[..., Pairs]]] = {
    "in_order": common_subsequence,
    "any": maximum_matching,
    "exact": common_subsequence,
}


def _targets(key: str, at: Document) -> Iterator[Mention]:
    for index, call in enumerate(at.value[key]):
        for kind, name in call.items():
            if kind == "node":
                yield Mention(f"{key}.node", "caller", name, at.span((key, index, kind)))
            elif kind not in OTHER_KEYS:
                yield from target_mentions(key, kind, name, at.span((key, index, kind)))


def _no_calls(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    if expect.get("calls_order") != "exact":
        yield from empty(key, expect)


def _any_arguments(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    """Tell of expected arguments that every call has."""
    for index, call in enumerate(expect[key]):
        if "args" in call:
            yield from vacuous_parts(call["args"], (index, "args"))


@check(
    names=(_targets,),
    vacuous=(_no_calls, _any_arguments),
    untried=(),
    reads=("calls",),
    origin=Origin.RESULT,
    option="calls_order",
)
def calls(expected: Any, observed: Observation, order: Order = "in_order") -> Finding:
    """These calls were made; else the share found, or F1 for `exact`.

    `in_order`: they are a subsequence of all calls. `any`: in any order, each matched to a different call.
    `exact`: exactly these in this order, among the kinds that can be named here. Arguments are matched as a
    subset. A call that a model requested and that was refused matches only if `ok: false` is expected.

    Raises:
        CannotEvaluate: a call is not found, and a matcher of arguments could not be evaluated.
    """
    wanted = as_list(expected)
    seen = [call for call in observed.calls if EFFECTS.get(call.get("kind", ""), Effect).expected]
    unclear: list[CannotEvaluate] = []

    def same(item: Call, call: Call) -> bool:
        try:
            return _matches_made(item, call)
        except CannotEvaluate as error:  # ignored if another call matches
            unclear.append(error)
            return False

    pairs = ALIGNMENTS[order](wanted, seen, same)
    found, made = {i for i, _ in pairs}, {j for _, j in pairs}
    if unclear and len(found) < len(wanted):
        raise unclear[0]
    notes = [_not_found(item, seen, made) for i, item in enumerate(wanted) if i not in found]
    total = 2 * len(wanted)
    if order == "exact":
        total = len(wanted) + len(seen)
        notes += [f"not expected: {describe_call(call)}" for j, call in enumerate(seen) if j not in made]
    return Finding(2 * len(pairs) / total if total else 1.0, _summaries(seen), "\n".join(notes))


def _arguments(key: str, at: Document) -> Iterator[Mention]:
    for index, call in enumerate(at.value[key]):
        for kind in call.keys() - set(OTHER_KEYS):
            yield from argument_mentions(key, kind, call.get("args"), at, (key, index, "args"))


def _arguments_of_no_call(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    """Tell of arguments that no call of their kind has. `args: {}` forbids the call with any arguments."""
    for index, call in enumerate(expect[key]):
        kind = next(iter(call.keys() - set(OTHER_KEYS)), "")
        for name, hint in unknown_arguments(kind, call.get("args")):
            text = f"no call of kind '{kind}' has an argument '{name}', so this cannot fail"
            yield VacuousPart((index, "args", name), text, hint, on_key=True)


@check(
    names=(_targets, _arguments),
    vacuous=(empty, _arguments_of_no_call),
    untried=(),
    reads=("calls",),
    apart=True,
    origin=Origin.EXCESS,
)
def never_calls(expected: Any, observed: Observation) -> Finding:
    """No call matches any of these, made or refused; else 0."""
    wrong = [call for call in observed.calls if any(call_matches(item, call) for item in as_list(expected))]
    return pass_or_fail(
        not wrong, _summaries(wrong), "\n".join(f"{_was(call)}: {describe_call(call)}" for call in wrong)
    )


def _counted_targets(key: str, at: Document) -> Iterator[Mention]:
    for name in at.value[key]:
        kind, _, pattern = name.partition(":")
        if pattern:
            yield from target_mentions(key, kind, pattern, at.key_span((key, name)))


@check(
    names=(_counted_targets,),
    vacuous=(empty,),
    untried=(),
    reads=("calls",),
    apart=True,
    origin=Origin.RESULT,
)
def call_counts(expected: Mapping[str, Any], observed: Observation) -> Finding:
    """`{kind: count}` or `{"kind:name": count}`, the name a glob; else the share that hold.

    Refused calls do not count.
    """
    made = [call for call in observed.calls if not call.get("refused")]
    counts = {key: sum(_counts(key, call) for call in made) for key in expected}
    faults = [
        None if matches(wanted, counts[key]) else f"{key}: expected {one_line(wanted)}, was {counts[key]}"
        for key, wanted in expected.items()
    ]
    return partial_credit(faults, counts)


def call_matches(wanted: Call, call: Call) -> bool:
    """True if the call has this kind and name, and the expected node, arguments and success."""
    if not _named(wanted, call):
        return False
    if "node" in wanted and not last_part_matches(wanted["node"], call.get("node") or ""):
        return False
    if "ok" in wanted and wanted["ok"] is not call.get("ok", True):
        return False
    return "args" not in wanted or matches(wanted["args"], call.get("args"))


def _matches_made(wanted: Call, call: Call) -> bool:
    """True if the call matches and was made; a refused call also matches if a failed one is expected."""
    return call_matches(wanted, call) and (not call.get("refused") or wanted.get("ok") is False)


def _was(call: Call) -> str:
    return "was asked for, and refused" if call.get("refused") else "was made"


def _named(wanted: Call, call: Call) -> bool:
    return all(_has_name(kind, wanted[kind], call) for kind in wanted if kind not in OTHER_KEYS)


def _has_name(kind: str, pattern: str, call: Call) -> bool:
    in_parts = EFFECTS.get(kind, Effect).named_in_parts
    return bool(call["kind"] == kind and name_matches(pattern, call.get("name") or "", in_parts=in_parts))


def _counts(key: str, call: Call) -> bool:
    kind, _, pattern = key.partition(":")
    return _has_name(kind, pattern or "*", call)


def _not_found(wanted: Call, made: Sequence[Call], counted: Iterable[int]) -> str:
    """Describe a missing call, and the nearest one with its differences."""
    text = f"not found: {one_line(wanted)}"
    names = [(kind, pattern) for kind, pattern in wanted.items() if kind not in OTHER_KEYS]
    if len(names) != 1:
        return text
    rest = {key: wanted[key] for key in OTHER_KEYS if key in wanted}
    near = nearest_call(rest, names[0], made, counted, lambda call: _named(wanted, call))
    return text + "".join(f"\n  {line}" for line in near.splitlines())


def _summaries(made: Sequence[Call]) -> list[dict[str, Any]]:
    return [
        {key: call[key] for key in ("kind", "name", "node", "args", "ok", "reason") if key in call}
        for call in made
    ]
