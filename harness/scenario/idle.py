"""Detects what of a scenario has no effect. Each is a warning.

    when the file is read   expectations that hold for every run, stubs that never answer, times in milliseconds
    after a run             faults that never struck, refused tool calls, bounds that nothing was compared with

They are allowed, since a scenario may be under construction, but a test that cannot fail tests nothing. Those of a
run are told if it ended as expected; checks that hold for other runs, too, are in `harness.scenario.believed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from harness.errors import ExpressionError, Problem, Span
from harness.graph.effects import Effect
from harness.matchers.regex import last_part_matches
from harness.scenario.checks.calls import call_matches
from harness.scenario.checks.finding import as_list
from harness.scenario.document_expect import CHECKS, check_items, checks_in
from harness.scenario.mentions import unknown_arguments
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observation
from harness.source.display import clip, did_you_mean
from harness.source.document import Document, DocumentPath
from harness.units import milliseconds_hint
from harness.world.mcp.tools import REFUSED_ARGUMENTS
from harness.world.spec import Fault, WorldSpec
from harness.world.stub_models import AnyStub

Parts = Sequence[tuple[Document, WorldSpec]]
"""A scenario and its turns, each with its world."""

_COUNTS_NOTHING: Final = "a check of weight 0 counts nothing: it cannot fail the scenario"
_OF_ALL: Final = ("kind", "node", "name", "args")
"""Fields that `request` has in `when` for every kind of effect."""
_REASON_LENGTH: Final = 120


def _warning(code: str, text: str, span: Span | None, hint: str = "") -> Problem:
    return Problem(code, text, span, hint, severity="warning")


_vacuous: Final = partial(_warning, "cannot-fail")
_idle: Final = partial(_warning, "idle-stub")
_untried: Final = partial(_warning, "untried")


def idle_parts(at: Document, parts: Parts) -> Iterator[Problem]:
    """Yield a warning for each part of the scenario at `at` that shows to have no effect before it runs."""
    yield from _vacuous_expectations(at)
    for part, world in parts:
        yield from _idle_stubs(world, part)
    for part, world in parts:
        yield from _unlikely_times(world, part)


# ---------------------------------------------------------------- expectations


def _vacuous_expectations(at: Document) -> Iterator[Problem]:
    """Yield a warning for each expectation of a scenario that cannot fail."""
    if at.value.get("pass_score") == 0:
        text = "pass_score: 0 cannot fail: this scenario passes whatever its run does"
        yield _vacuous(text, at.key_span(("pass_score",)))
    turns = at.value.get("turns") or ()
    # A replay fails where it differs.
    judged_otherwise = "test_scenario" in at.value or "cassette" in at.value
    if not judged_otherwise and not any("expect" in part for part in (at.value, *turns)):
        text = "nothing is expected: this scenario passes whenever its run completes"
        hint = "if that is what is meant, write `expect: {status: completed}`"
        yield _vacuous(text, at.span(("name",)), hint)
    for part in (at, *(at.at(("turns", number)) for number in range(len(turns)))):
        if isinstance(part.value.get("expect"), dict):
            yield from _in_expectations(part.at(("expect",)))


def _in_expectations(at: Document) -> Iterator[Problem]:
    values = at.value
    if not values:
        yield _vacuous("'expect' lists nothing: it has no effect", at.span())
    for key, check in checks_in(values):
        for part in (part for rule in check.vacuous for part in rule(key, values)):
            path = (key, *part.path)
            yield _vacuous(part.message, at.key_span(path) if part.on_key else at.span(path), part.hint)
        for item in check_items(at, key) if check.items and values[key] else ():
            if item.value.get("weight") == 0:
                yield _vacuous(_COUNTS_NOTHING, item.span(("weight",)))
    for key, check in CHECKS.items():
        if check.option in values and key not in values:
            text = f"'{check.option}' does nothing without '{key}'"
            yield _vacuous(text, at.key_span((check.option,)))
    if values.get("weights"):
        yield from _in_weights(at)


def _in_weights(at: Document) -> Iterator[Problem]:
    values, weights = at.value, at.value["weights"]
    one_counts = any(_weights(values, weights))
    if not one_counts:
        text = "the weight of every check is 0, so none of them counts"
        yield _vacuous(text, at.key_span(("weights",)))
    for key, weight in weights.items():
        if CHECKS[key].gate:
            continue
        if key not in values:
            if at.holds(("weights", key)):
                text = f"this weight has no effect: there is no check '{key}' here"
                yield _vacuous(text, at.key_span(("weights", key)))
        elif weight == 0 and one_counts:
            own = CHECKS[key].items and all("weight" in item for item in _items(values[key]))
            if not own:
                yield _vacuous(_COUNTS_NOTHING, at.span(("weights", key)))


def _items(value: Any) -> Sequence[Mapping[str, Any]]:
    return [value] if isinstance(value, Mapping) else value


def _weights(values: Mapping[str, Any], weights: Mapping[str, float]) -> Iterator[float]:
    """Yield the weights of all checks. A gate without a weight yields 1, since it can set the score to 0."""
    for key, check in checks_in(values):
        if check.items:
            yield from (item.get("weight", weights.get(key, 1)) for item in _items(values[key]))
        else:
            yield weights.get(key, 1)
    yield from (weights.get(key, 1) for key, check in CHECKS.items() if check.gate and key not in values)


# ---------------------------------------------------------------- stubs, faults and times


def _idle_stubs(world: WorldSpec, at: Document) -> Iterator[Problem]:
    """Yield a warning for each stub of the world at `at` that never answers, and each fault without effect."""
    for effect, path, stubs in world.lists():
        for index, stub in enumerate(stubs):
            place = stub.path(path, index)
            yield from _in_matchers(effect, stub, at, place)
            if isinstance(at.at(place).value, str):  # a text asks for nothing
                continue
            before = (number for number, each in enumerate(stubs[:index]) if _answers_all_of(each, stub))
            if (number := next(before, None)) is not None:
                line = at.span((*path, number)).line
                text = (
                    f"this stub never answers: the one before it, in line {line}, answers whatever it would"
                )
                yield _idle(text, at.span(place), "put it first, or limit the other with `times`")
    for index, fault in enumerate(world.faults):
        if fault.latency == 0:
            yield _idle("this fault changes nothing", at.span(("faults", index, "latency")))


def _answers_all_of(earlier: AnyStub, later: AnyStub) -> bool:
    """True if the earlier stub is never used up and requires nothing that the later one does not require."""
    asked = earlier.written(*earlier.matchers)
    return earlier.uses == "any" and all(getattr(later, key) == getattr(earlier, key) for key in asked)


def _in_matchers(effect: type[Effect], stub: AnyStub, at: Document, path: DocumentPath) -> Iterator[Problem]:
    if stub.list_node is not None and _excludes(stub.list_node, stub.node):
        text = (
            f"this stub never answers: it is listed under '{stub.list_node}', but asks for node '{stub.node}'"
        )
        yield _idle(text, at.span((*path, "node")))
    for name, hint in unknown_arguments(effect.kind, stub.args):
        text = f"this stub never answers: no call has an argument '{name}' under '{effect.key}'"
        yield _idle(text, at.key_span((*path, "args", name)), hint)
    if stub.when is not None:
        yield from _in_condition(effect, stub.when, at.span((*path, "when")))


def _excludes(node: str, wanted: str | None) -> bool:
    plain = wanted is not None and not set("*?[") & set(node + wanted)
    return plain and not last_part_matches(str(wanted), node) and not last_part_matches(node, str(wanted))


def _in_condition(effect: type[Effect], when: str, span: Span) -> Iterator[Problem]:
    from harness.expressions.cel import compile as compile_cel

    expression = compile_cel(when)
    if not expression.names:
        try:
            never = expression.evaluate({}) is not True
        except ExpressionError:
            never = True
        if never:
            yield _idle(f"this stub never answers: '{when}' is not true for any call", span)
    fields = (*_OF_ALL, *effect.fields)
    for name, field in sorted(expression.reads):
        if name == "request" and field not in fields:
            yield _idle(f"'request' has no '{field}' here", span, did_you_mean(field, fields))


def _unlikely_times(world: WorldSpec, at: Document) -> Iterator[Problem]:
    """Yield a warning for the timeout of a scenario, and for each latency in its world, that is hardly in seconds."""
    places: list[tuple[DocumentPath, float | None]] = [(("timeout",), at.value.get("timeout"))]
    for _, path, stubs in world.lists():
        places += (((*stub.path(path, number), "latency"), stub.latency) for number, stub in enumerate(stubs))
    places += ((("faults", number, "latency"), fault.latency) for number, fault in enumerate(world.faults))
    for path, seconds in places:
        if seconds is not None and (found := milliseconds_hint(str(path[-1]), seconds)):
            text, hint = found
            yield _warning("unlikely-time", text, at.span(path), hint)


# ---------------------------------------------------------------- what a run did not exercise


def untried(
    expected: Sequence[tuple[Observation, Expectations]],
    faults: Iterable[tuple[Fault, int]],
    stubs: Iterable[AnyStub] = (),
    unmet: Iterable[tuple[str, Span | None]] = (),
) -> Iterator[Problem]:
    """Yield a warning for each part of a scenario that its run did not exercise.

    Args:
        expected: the observation and the expectations of each turn and, last, of the whole run.
        faults: the faults that never struck, each with the number of calls that matched it.
        stubs: those of models.
        unmet: for each stub that calls were compared with and never met, the reason and its location.
    """
    for why, span in unmet:
        hint = "has(…) asks for what may be absent" if "no such key" in why else ""
        yield _untried(f"this stub never answers: {why}", span, hint)
    for fault, fitting in faults:
        if fault.rate is None or not fitting:
            yield _untried(f"this fault never struck: {_why(fault, fitting)}", fault.span)
    yield from _refused(expected, stubs)
    for observed, expect in expected:
        for key, check in checks_in(expect.values):
            for rule in check.untried:
                for text, hint in rule(key, expect.values, observed):
                    yield _untried(text, expect.spans.get(key), hint)


def _why(fault: Fault, fitting: int) -> str:
    number = fault.nth if fault.nth is not None else fault.every
    if not fitting:
        return "no call fits it"
    if fault.truncate is not None and fitting >= (number or 1):
        return f"no answer that it hit is longer than {fault.truncate} characters"
    return f"{fitting} {'call fits' if fitting == 1 else 'calls fit'} it, and it waits for number {number}"


def _refused(
    expected: Sequence[tuple[Observation, Expectations]], stubs: Iterable[AnyStub]
) -> Iterator[Problem]:
    """Warn of tool calls of stubs that were refused, unless a failed call is expected there."""
    wanted = [item for _, expect in expected for item in as_list(expect.values.get("calls", ()))]
    awaited = [item for item in wanted if item.get("ok") is False]
    whole, _ = expected[-1]
    calls = [call for call in whole.calls if call.get("refused") or _is_refused_by_server(call)]
    calls = [call for call in calls if not any(call_matches(item, call) for item in awaited)]
    for stub in stubs if calls else ():
        for asked in stub.answer.get("tool_calls") or ():
            key = (asked["name"], asked.get("args") or {})
            call = next((call for call in calls if (call["name"], call["args"]) == key), None)
            if call is not None:
                reason = clip(" ".join(str(call.get("reason")).split()), _REASON_LENGTH)
                text = f"the call of '{asked['name']}' in this stub was refused: {reason}"
                yield _untried(text, stub.span, "where that is meant, expect it in `calls` with `ok: false`")


def _is_refused_by_server(call: Mapping[str, Any]) -> bool:
    """True if the arguments did not fit the input schema of the MCP tool."""
    return call["kind"] == "mcp" and str(call.get("reason", "")).startswith(REFUSED_ARGUMENTS)
