"""Checks of the end of a run: its status, its failure, its pauses, its warnings and its left-over stubs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import indent
from typing import Any, Final

from harness.matchers.json_schema import schema_errors
from harness.matchers.plain import ABSENT, kind_of
from harness.matchers.regex import last_part_matches
from harness.matchers.schema_flaws import keywords_of_other_types
from harness.matchers.vacuous import VacuousPart, vacuous_parts, vacuous_schema
from harness.matchers.value import compare, is_matcher, matches
from harness.scenario.checks.check import check, empty
from harness.scenario.checks.finding import (
    TOLERANCE,
    Finding,
    as_list,
    difference_text,
    one_line,
    partial_credit,
    pass_or_fail,
    readable_diff,
)
from harness.scenario.mentions import Mention, written_texts
from harness.scenario.outcome import JSON, Observation, Origin
from harness.source.display import clip
from harness.source.document import Document, DocumentPath
from harness.source.project import PYPROJECT

_NAME_LENGTH: Final = 60
_MOST_NAMED: Final = 5
_TYPED: Final = "say which `type` it has to be; of JSON in a text: {$json: {$schema: …}}"
_TOKENS: Final = ("input_tokens", "output_tokens", "cost")
_OF_ONE: Final = ("$all", "$some", "$json", "$exact")
"""Matchers whose argument is compared with the same value, or with a part of it."""
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


def _vacuous_parts(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    if expect[key] or key != "error":  # `error: {}`: there is one
        yield from vacuous_parts(expect[key])


def _failing_node(key: str, at: Document) -> Iterator[Mention]:
    node = (at.value[key] or {}).get("node")
    if isinstance(node, str):
        yield Mention("error.node", "caller", node, at.span((key, "node")))


@check(
    names=(_failing_node,),
    vacuous=(_vacuous_parts,),
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


@check(names=(_pauses,), vacuous=(_vacuous_parts,), untried=(), reads=("interrupts",), origin=Origin.RESULT)
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
    vacuous=(empty, _vacuous_parts),
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


def _missing_keys(key: str, at: Document) -> Iterator[Mention]:
    """Yield the keys that are allowed to be missing: with a typo, they always are."""
    for path in _absent(at.value[key], (key,)):
        yield Mention(key, "absent", str(path[-1]), at.key_span(path))


def _absent(value: Any, path: DocumentPath, *, negated: bool = False) -> Iterator[DocumentPath]:
    """Yield the paths of keys that match if they are missing: `$missing: true`, and keys under `$not`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _absent(item, (*path, index), negated=negated)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            is_matcher = str(key).startswith("$")
            if key in _OF_ONE or (key == "$not" and not negated):
                yield from _absent(item, (*path, key), negated=key == "$not")
            elif not is_matcher and (negated or item == {"$missing": True}):
                yield *path, key
            elif not is_matcher:
                yield from _absent(item, (*path, key))


def _silent_schema(key: str, expect: Mapping[str, Any], observed: Observation) -> Iterator[tuple[str, str]]:
    """Tell of a schema whose keywords all apply to other types: any text is valid under `properties`."""
    value = observed.state if key == "state_schema" else observed.output
    yield from _silent_parts(key, expect[key], value)


def _silent_matchers(key: str, expect: Mapping[str, Any], observed: Observation) -> Iterator[tuple[str, str]]:
    yield from _silent_values(key, expect[key], observed.state if key == "state" else observed.output)


def _silent_values(place: str, expected: Any, value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(expected, Mapping):
        return
    if is_matcher(expected):
        yield from _silent_parts(place, expected.get("$schema", {}), value)
    elif isinstance(value, Mapping):
        for name, wanted in expected.items():
            if name in value:
                yield from _silent_values(f"{place}.{name}", wanted, value[name])


def _silent_parts(place: str, schema: Any, value: Any) -> Iterator[tuple[str, str]]:
    """Tell of the schema and of those of its properties, each for the value that it is compared with."""
    if keywords := keywords_of_other_types(schema, value):
        what = f"{place} does not constrain {kind_of(value)}"
        yield f"{what}: '{keywords[0]}' applies to values of another type", _TYPED
    elif isinstance(schema, Mapping) and isinstance(value, Mapping):
        for name, of_property in schema.get("properties", {}).items():
            if name in value:
                yield from _silent_parts(f"{place}.{name}", of_property, value[name])


@check(
    names=(_missing_keys,),
    vacuous=(_vacuous_parts,),
    untried=(_silent_matchers,),
    reads=("state",),
    apart=True,
    origin=Origin.RESULT,
)
def state(expected: Any, observed: Observation) -> Finding:
    """The final state matches (mappings as subsets); else the share of leaf keys that match."""
    return _value(expected, observed.state)


@check(
    names=(_missing_keys,),
    vacuous=(_vacuous_parts,),
    untried=(_silent_matchers,),
    reads=("output",),
    apart=True,
    origin=Origin.RESULT,
)
def output(expected: Any, observed: Observation) -> Finding:
    """The result matches (mappings as subsets); else the share of leaf keys that match."""
    return _value(expected, observed.output)


@check(names=(), vacuous=(empty,), untried=(), reads=("store",), origin=Origin.RESULT)
def store(expected: Any, observed: Observation) -> Finding:
    """The store has these items, or not (`$missing`); else the share of leaf keys that match.

    An item without a `key` is any one of its namespace.
    """
    wanted, found = {}, {}
    for item in expected:
        label = "/".join([*item["namespace"], item.get("key", "*")])
        wanted[label] = item["value"]
        values = [
            each["value"]
            for each in observed.store or ()
            if each["namespace"] == item["namespace"] and item.get("key", each["key"]) == each["key"]
        ]
        if values:
            found[label] = next((value for value in values if matches(item["value"], value)), values[0])
    return _value(wanted, found)


def _optional(key: str, at: Document) -> Iterator[Mention]:
    """Yield the properties that a schema lists but does not require."""
    schema = at.value[key]
    if isinstance(schema, Mapping) and isinstance(schema.get("properties"), Mapping):
        for name in schema["properties"]:
            if name not in schema.get("required", ()):
                yield Mention(key, "absent", name, at.key_span((key, "properties", name)))


def _vacuous_schema(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    yield from vacuous_schema(expect[key])


@check(
    names=(_optional,),
    vacuous=(_vacuous_schema,),
    untried=(_silent_schema,),
    reads=("state",),
    origin=Origin.RESULT,
)
def state_schema(expected: Any, observed: Observation) -> Finding:
    """The final state is valid under this JSON Schema (2020-12); else 0."""
    return _valid(expected, observed.state)


@check(
    names=(_optional,),
    vacuous=(_vacuous_schema,),
    untried=(_silent_schema,),
    reads=("output",),
    origin=Origin.RESULT,
)
def output_schema(expected: Any, observed: Observation) -> Finding:
    """The result is valid under this JSON Schema (2020-12); else 0."""
    return _valid(expected, observed.output)


def _value(expected: Any, actual: JSON) -> Finding:
    compared = compare(expected, actual)
    return Finding(compared.score, _expected_part(expected, actual), difference_text(compared))


def _valid(schema: Any, actual: JSON) -> Finding:
    errors = schema_errors(schema, actual)
    return pass_or_fail(not errors, actual, "\n".join(errors))


def _expected_part(expected: Any, actual: JSON) -> JSON:
    """Return the part of `actual` whose keys `expected` names."""
    if not (isinstance(expected, Mapping) and isinstance(actual, Mapping)) or is_matcher(expected):
        return actual
    return {key: _expected_part(wanted, actual[key]) for key, wanted in expected.items() if key in actual}


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
