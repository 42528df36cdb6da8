"""The expectation that would have noticed a mutant: it holds for the unchanged run, and fails with the mutant.

what differs between both runs ──▶ candidates, the most telling first ──▶ each is run with both ──▶ the first
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.authoring.expected import expectations
from harness.authoring.writer import mapping_text
from harness.matchers.value import is_matcher
from harness.mutation.execution import Chain, Run
from harness.mutation.mutant import Mutant
from harness.mutation.unchanged import Unchanged
from harness.report.encoding import encode
from harness.scenario.checks.finding import as_list
from harness.scenario.document_expect import CHECKS
from harness.scenario.model import Expectations, Scenario
from harness.scenario.outcome import Observation
from harness.secrets.encodings import has_placeholder

_MOST_TRIED: Final = 12
_MOST_SCENARIOS: Final = 3
_OTHER_SEED: Final = 7919
Expect = dict[str, Any]


@dataclass(frozen=True)
class Suggestion:
    """An expectation of a scenario that would have noticed a mutant. `expect` has the keys to add or replace."""

    scenario: Scenario
    expect: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The keys as YAML, to paste below `expect`."""
        return mapping_text(self.expect)


def suggestion(
    mutant: Mutant,
    differing: Sequence[tuple[Unchanged, Sequence[Run]]],
    with_mutant: Callable[[Scenario, Mutant, float], Scenario],
) -> Chain[Suggestion | None]:
    """Find an expectation that notices a mutant; None if there is none.

    Args:
        mutant: the mutant.
        differing: the scenarios in which it makes a difference, with its runs.
        with_mutant: returns a scenario with the mutant, which takes at most so many real seconds.
    """
    for each, made in differing[:_MOST_SCENARIOS]:
        scenario, tried = each.scenario.whole(), 0
        before, after = each.runs[0].outcome, made[0].outcome
        for expect in _candidates(before.observed, after.observed, scenario.expect.values):
            if tried == _MOST_TRIED:
                break
            if has_placeholder(encode(expect)) or not _tells(expect, before.observed, after.observed):
                continue
            tried += 1
            stricter = with_expectations(scenario, expect)
            noticed = yield with_mutant(stricter, mutant, each.real_timeout_s)
            if not any(run.outcome.verdict == "failed" for run in noticed):
                continue
            held = yield stricter
            if not all(run.outcome.passed for run in held):
                continue
            if before.seeded:
                other = yield replace(stricter, seed=scenario.seed + _OTHER_SEED)
                if not all(run.outcome.passed for run in other):
                    continue
            return Suggestion(scenario, expect)
    return None


def with_expectations(scenario: Scenario, expect: Mapping[str, Any]) -> Scenario:
    """Return a scenario with more expectations, or with other ones in place of its own."""
    scenario = scenario.whole()
    values = {**scenario.expect.values, **expect}
    kept = {key: span for key, span in scenario.expect.spans.items() if key.partition("[")[0] not in expect}
    spans = kept | dict.fromkeys(expect, scenario.span)
    for key in expect:
        if CHECKS[key].items:
            spans |= {f"{key}[{at}]": scenario.span for at in range(len(as_list(values[key])))}
    return replace(
        scenario, expect=Expectations(values, scenario.expect.weights, spans, scenario.expect.prompts)
    )


def _tells(expect: Mapping[str, Any], before: Observation, after: Observation) -> bool:
    """True if expectations hold for one run and not for another, as far as that can be told without running."""
    ((key, value),) = expect.items()
    check = CHECKS[key]
    if check.items or check.option:
        return True
    try:
        findings = [check.function(value, observed) for observed in (before, after)]
    except Exception:  # it cannot be evaluated
        return False
    return [found is None or found.score >= 1 for found in findings] == [True, False]


# ---------------------------------------------------------------- candidates


def _candidates(before: Observation, after: Observation, given: Mapping[str, Any]) -> Iterator[Expect]:
    """Yield expectations that the unchanged run fulfils, and perhaps not the other one."""
    for key in ("state", "output"):
        yield from _of_value(key, getattr(before, key), getattr(after, key), given.get(key))
    if before.path != after.path:
        if "path" not in given:
            yield {"path": before.path}
        more = [name for name in after.visits if name not in before.visits]
        if more:
            yield {"never": [*given.get("never", ()), more[0]]}
        for name, times in before.visits.items():
            if after.visits.get(name) != times and _is_mapping(given.get("visits", {})):
                yield {"visits": {**given.get("visits", {}), name: times}}
    yield from _of_calls(before, after, given)
    if before.interrupts != after.interrupts:
        yield {"interrupt": before.interrupts}
    for text in before.warnings:
        if text not in after.warnings:
            yield {"warnings": [*given.get("warnings", ()), {"$contains": _without_place(text)}]}
    for text in after.warnings:
        if text not in before.warnings:
            told = {"$contains": _without_place(text)}
            yield {"never_warnings": [*given.get("never_warnings", ()), told]}
    if before.error != after.error and before.error:
        yield {"error": {key: before.error[key] for key in ("type", "node") if before.error.get(key)}}
    yield from _of_amounts(before, after, given)


def _of_value(key: str, before: Any, after: Any, given: Any) -> Iterator[Expect]:
    if before == after or before is None:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping) and (given is None or _is_mapping(given)):
        for name, value in before.items():
            if value != after.get(name, _ABSENT):
                for expected in _expected(value):
                    yield {key: {**(given or {}), name: expected}}
        for name in after:
            if name not in before:
                yield {key: {**(given or {}), name: {"$missing": True}}}
        return
    for expected in _expected(before):
        yield {key: expected}


_ABSENT: Final = object()


def _expected(value: Any) -> Iterator[Any]:
    """Yield what matches a value: what is stable in it, and the whole."""
    observed = Observation(output=value)
    if (found := expectations(observed, observed).get("output", _ABSENT)) is not _ABSENT:
        yield found
    yield {"$exact": value} if isinstance(value, Mapping) else value


def _of_calls(before: Observation, after: Observation, given: Mapping[str, Any]) -> Iterator[Expect]:
    if "calls" not in given:
        found = expectations(before, before).get("calls")
        if found:
            yield {"calls": found}
        asked = [{call["kind"]: call["name"], "node": call["node"]} for call in before.calls]
        failed = [
            {**each, **({} if call["ok"] else {"ok": False})}
            for each, call in zip(asked, before.calls, strict=True)
        ]
        if asked:
            yield {"calls": failed}
    names = [[f"{call['kind']}:{call['name']}" for call in run.calls] for run in (before, after)]
    counts = given.get("call_counts") or {}
    for name in dict.fromkeys([*names[0], *names[1]]):
        if names[0].count(name) != names[1].count(name):
            if names[0].count(name):
                yield {"call_counts": {**counts, name: names[0].count(name)}}
            else:
                kind, _, called = name.partition(":")
                yield {"never_calls": [*given.get("never_calls", ()), {kind: called}]}
    if len(before.calls) != len(after.calls):
        return
    for at, (one, other) in enumerate(zip(before.calls, after.calls, strict=True)):
        if one.get("prompt") != other.get("prompt"):
            yield _condition(f"calls[{at}].prompt == {encode(one['prompt'])}", given)
        if one.get("args") != other.get("args") and isinstance(one.get("args"), Mapping):
            for name, value in one["args"].items():
                if value != other.get("args", {}).get(name):
                    yield _condition(f"calls[{at}].args[{encode(name)}] == {encode(value)}", given)


def _condition(that: str, given: Mapping[str, Any]) -> Expect:
    return {"checks": [*as_list(given.get("checks", [])), {"that": that}]}


def _of_amounts(before: Observation, after: Observation, given: Mapping[str, Any]) -> Iterator[Expect]:
    times = before.latency["nodes"], after.latency["nodes"]
    for name, seconds in times[0].items():
        if seconds < times[1].get(name, 0.0):
            known = given.get("latency") or {}
            yield {"latency": {**known, "nodes": {**(known.get("nodes") or {}), name: seconds}}}
        elif seconds != times[1].get(name):
            yield _condition(f"latency.nodes[{encode(name)}] == {encode(seconds)}", given)
    if before.latency["total"] != after.latency["total"]:
        yield _condition(f"latency.total == {encode(before.latency['total'])}", given)
    for name in ("llm_calls", "input_tokens", "output_tokens"):
        if before.usage[name] < after.usage[name]:
            yield {"usage": {**(given.get("usage") or {}), name: before.usage[name]}}
        elif before.usage[name] != after.usage[name]:
            yield _condition(f"usage.{name} == {before.usage[name]}", given)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) and not is_matcher(value)


def _without_place(text: str) -> str:
    """Return the text of a warning without its location, and without its hint."""
    lead, found, rest = text.partition(": ")
    told = rest if found and lead.rpartition(":")[2].isdecimal() else text
    return told.partition(" (")[0]
