"""Checks of the end of a run: its status, failure, pauses, warnings, left-over stubs, and what it took."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import indent
from typing import Any, Final

from harness.matchers.plain import ABSENT
from harness.matchers.regex import last_part_matches
from harness.matchers.vacuous import VacuousPart
from harness.matchers.value import is_matcher, matches
from harness.scenario.checks.check import check, empty, saying_nothing
from harness.scenario.checks.finding import (
    TOLERANCE,
    Finding,
    as_list,
    one_line,
    partial_credit,
    pass_or_fail,
    readable_diff,
)
from harness.scenario.mentions import Mention, written_texts
from harness.scenario.outcome import Observation, Origin
from harness.source.display import clip
from harness.source.document import Document
from harness.source.project import PYPROJECT

_NAME_LENGTH: Final = 60
_MOST_NAMED: Final = 5
_TOKENS: Final = ("input_tokens", "output_tokens", "cost")
_PLACE: Final = re.compile(r"\A[^\n]*?:\d+:\d+: ")


@check(names=(), vacuous=(), untried=(), reads=("status",), origin=Origin.RESULT, gate=True)
def status(expected: Any, observed: Observation) -> Finding:
    """`completed` (default), `interrupted`, `failed`, `timeout` or `invalid`; else 0."""
    if matches(expected, observed.status):
        return Finding(1.0, observed.status)
    wanted = expected if isinstance(expected, str) else one_line(expected)
    message = f"expected {wanted}, was {observed.status}"
    if observed.error:
        message += f": {_failure_text(observed.error)}"
    elif observed.status == "interrupted":
        message += _pause_text(observed)
    elif observed.status == "timeout":
        message += _timeout_text(observed)
    return Finding(0.0, observed.status, message)


def _timeout_text(observed: Observation) -> str:
    """Describe a timeout: after how long, and the nodes that were scheduled but had not started."""
    begun = {*observed.visits, "__end__"}
    waiting = dict.fromkeys(
        clip(str(target), _NAME_LENGTH) for _, target in observed.routes if target not in begun
    )
    text = f": cut off by `timeout` after {observed.latency['total']:g} s of virtual time"
    return text + (f"; called and never started: {', '.join(list(waiting)[:_MOST_NAMED])}" if waiting else "")


def _failing_node(key: str, at: Document) -> Iterator[Mention]:
    node = (at.value[key] or {}).get("node")
    if isinstance(node, str):
        yield Mention("error.node", "caller", node, at.span((key, "node")))


@check(
    names=(_failing_node,),
    vacuous=(saying_nothing,),
    untried=(),
    reads=("error",),
    apart=True,
    origin=Origin.RESULT,
)
def error(expected: Any, observed: Observation) -> Finding:
    """`{type?, message?, node?}` of the failure; else the share that hold. `null`: there was none."""
    actual = observed.error
    if not isinstance(expected, Mapping):
        return pass_or_fail(matches(expected, actual), actual, readable_diff(expected, actual))
    if actual is None:
        return Finding(0.0, None, "there was no failure")
    faults = [_error_fault(key, wanted, actual.get(key, ABSENT)) for key, wanted in expected.items()]
    return partial_credit(faults, actual)


def _pauses(key: str, at: Document) -> Iterator[Mention]:
    for path, name in written_texts(at.value[key], (key,)):
        yield Mention(key, "pause", name, at.span(path))


@check(names=(_pauses,), vacuous=(saying_nothing,), untried=(), reads=("interrupts",), origin=Origin.RESULT)
def interrupt(expected: Any, observed: Observation) -> Finding:
    """The values with which the run paused, in order; else the share that match, of the longer of both lists.

    A list is the values in order, or the value of a single pause that is a list. A matcher may also apply to
    the list of all values (`{$len: 2}`).
    """
    actual = observed.interrupts
    wanted = as_list(expected)
    if is_matcher(expected) and matches(expected, actual):
        return Finding(1.0, actual)
    if len(actual) == 1 and isinstance(actual[0], list) and matches(expected, actual[0]):
        return Finding(1.0, actual)
    count = max(len(wanted), len(actual))
    faults = [_pause_fault(index, wanted[index:][:1], actual[index:][:1]) for index in range(count)]
    return partial_credit(faults, actual)


@check(
    names=(),
    vacuous=(empty, saying_nothing),
    untried=(),
    reads=("warnings",),
    apart=True,
    origin=Origin.RESULT,
)
def warnings(expected: Any, observed: Observation) -> Finding:
    """Each of these is the text of a warning (a plain text must be equal); else the share found."""
    raised = "; ".join(map(one_line, observed.warnings)) or "none"
    faults = [
        None if any(_fits(text, wanted) for text in observed.warnings) else f"no warning {one_line(wanted)}"
        for wanted in as_list(expected)
    ]
    finding = partial_credit(faults, observed.warnings)
    message = f"{finding.message}\n  raised: {raised}"
    return finding if finding.score == 1 else replace(finding, message=message)


def _near_misses(key: str, expect: Mapping[str, Any], observed: Observation) -> Iterator[tuple[str, str]]:
    """Tell of texts that are only a part of a warning, since a text must be equal."""
    for wanted in expect[key]:
        if isinstance(wanted, str) and any(_is_part(wanted, text) for text in observed.warnings):
            text = f"'{wanted}' is only a part of a warning, but plain text must equal the whole warning"
            yield text, "write {$contains: …} for a part"


def _is_part(wanted: str, text: str) -> bool:
    return wanted != text and wanted.lower() in text.lower()


@check(
    names=(), vacuous=(empty,), untried=(_near_misses,), reads=("warnings",), apart=True, origin=Origin.EXCESS
)
def never_warnings(expected: Any, observed: Observation) -> Finding:
    """None of these is the text of a warning; else 0."""
    raised = [text for text in observed.warnings if any(_fits(text, wanted) for wanted in as_list(expected))]
    return pass_or_fail(not raised, observed.warnings, "\n".join(f"warned: {text}" for text in raised))


def _fits(text: str, wanted: Any) -> bool:
    """True if a warning matches, with or without the location at its beginning."""
    return matches(wanted, text) or matches(wanted, _PLACE.sub("", text))


@check(names=(), vacuous=(), untried=(), reads=("unused",), origin=Origin.PATH, gate=True)
def unused(_: Any, observed: Observation) -> Finding:
    """No stub is left over; else 0."""
    return pass_or_fail(not observed.unused, observed.unused, "\n".join(observed.unused))


def _pause_fault(index: int, wanted: list[Any], paused: list[Any]) -> str | None:
    """Describe the mismatch of one pause, or return None; an empty list means that there is no such pause."""
    if not wanted:
        return f"pause {index + 1}: expected none, was {one_line(paused[0])}"
    difference = readable_diff(wanted[0], paused[0] if paused else ABSENT)
    if "\n" in difference:
        return f"pause {index + 1}:\n{indent(difference, '  ')}"
    return f"pause {index + 1}: {difference}" if difference else None


def _error_fault(key: str, wanted: Any, actual: Any) -> str | None:
    if key == "node" and isinstance(wanted, str) and isinstance(actual, str):
        holds = last_part_matches(wanted, actual)
    else:
        holds = matches(wanted, actual)
    return None if holds else readable_diff({key: wanted}, {} if actual is ABSENT else {key: actual})


def _pause_text(observed: Observation) -> str:
    """Describe the nodes that wait for an answer, their questions, and how to answer."""
    paused = _paused(observed)
    if not paused:
        return ""
    nodes = list(dict.fromkeys(paused))
    values = [value for value in observed.interrupts[-len(paused) :] if value not in nodes]
    asking = f", asking: {'; '.join(map(one_line, values))}" if values else ""
    answer = one_line({"human": {clip(node, _NAME_LENGTH): "…" for node in nodes}})[1:-1]
    return (
        f": paused in {', '.join(clip(node, _NAME_LENGTH) for node in nodes)}{asking}\n"
        f"  answer under `{answer}`, or in a turn with `resume`"
    )


def _paused(observed: Observation) -> list[str]:
    """Return the nodes of the last superstep (of a turn that only resumed nodes: those) that have not been left."""
    last = as_list(observed.path[-1]) if observed.path else list(observed.latency["nodes"])
    return [node for node in last if not _was_left(node, observed.routes)] or last


def _was_left(node: str, routes: Sequence[Sequence[str]]) -> bool:
    """True if a route leads away from the node after the last one that leads to it."""
    ends = [(origin == node, target == node) for origin, target in routes]
    since = max((at + 1 for at, (_, reached) in enumerate(ends) if reached), default=0)
    return any(left for left, _ in ends[since:])


def _failure_text(failure: Mapping[str, Any]) -> str:
    where = f" (node {failure['node']})" if failure.get("node") else ""
    first, _, rest = str(failure.get("message")).partition("\n")
    return f"{failure.get('type')}: {first}{' …' if rest else ''}{where}"


def _timed(key: str, at: Document) -> Iterator[Mention]:
    for name in at.value[key].get("nodes", ()):
        yield Mention("latency.nodes", "timed", name, at.key_span((key, "nodes", name)))


def _no_nodes(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    if "nodes" in expect[key] and not expect[key]["nodes"]:
        yield VacuousPart(("nodes",), "'latency.nodes' lists nothing, so it cannot fail", on_key=True)


def _not_run(key: str, expect: Mapping[str, Any], observed: Observation) -> Iterator[tuple[str, str]]:
    """Tell of bounds of nodes that did not run."""
    for node in expect[key].get("nodes", ()):
        if node not in observed.latency.get("nodes", {}):
            yield f"node '{node}' did not run, so its latency was not checked", "expect it in `path_includes`"


@check(
    names=(_timed,),
    vacuous=(empty, _no_nodes),
    untried=(_not_run,),
    reads=("latency",),
    apart=True,
    origin=Origin.EXCESS,
)
def latency(expected: Mapping[str, Any], observed: Observation) -> Finding | None:
    """Upper bounds in virtual seconds by node; else the share that hold.

    `total` is not a check: it only determines the latency penalty. None if there is no other bound.
    """
    bounds = expected.get("nodes") or {}
    return _bounded(bounds, observed.latency.get("nodes", {}), " s") if bounds else None


def _no_tokens(key: str, expect: Mapping[str, Any], observed: Observation) -> Iterator[tuple[str, str]]:
    """Tell of bounds on tokens and cost if models were called but reported no tokens."""
    usage = observed.usage
    bounds = [name for name in _TOKENS if name in expect[key]]
    if bounds and usage["llm_calls"] and not usage["input_tokens"] and not usage["output_tokens"]:
        text = f"no model reported tokens, so the bound of {', '.join(bounds)} was not checked"
        yield text, "a stub reports them by `usage`"


@check(
    names=(),
    vacuous=(empty,),
    untried=(_no_tokens,),
    reads=("usage",),
    apart=True,
    origin=Origin.EXCESS | Origin.LOOP,
)
def usage(expected: Mapping[str, Any], observed: Observation) -> Finding:
    """Upper bounds: `{input_tokens, output_tokens, llm_calls, cost}`; else the share that hold.

    A bound on the cost cannot be evaluated if tokens were reported and none of their models has a price.
    """
    reported = {name: each for name, each in observed.usage.get("by_model", {}).items() if each["cost"] != 0}
    if "cost" in expected and reported and all(each["cost"] is None for each in reported.values()):
        names = ", ".join(f"'{name}'" for name in reported)
        message = f"cost: no price is known of {names}; add it to [tool.harness.prices] in {PYPROJECT}"
        return Finding(0.0, None, message, broken=True)
    return _bounded(expected, observed.usage, "")


def _bounded(bounds: Mapping[str, Any], amounts: Mapping[str, Any], unit: str) -> Finding:
    actual = {key: amounts.get(key) or 0 for key in bounds}
    faults = [
        None
        if actual[key] <= most + TOLERANCE
        else f"{key}: expected at most {most:.10g}{unit}, was {actual[key]:.10g}{unit}"
        for key, most in bounds.items()
    ]
    return partial_credit(faults, actual)
