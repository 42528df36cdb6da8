"""Expectations that the unchanged run fulfils, and that the run with a mutant may not: one for each difference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from harness.authoring.expected import expectations
from harness.graph import observe
from harness.graph.trace import Event
from harness.matchers.value import is_matcher
from harness.report.encoding import encode
from harness.scenario.checks.finding import as_list
from harness.scenario.outcome import Observation

Expect = dict[str, Any]
_ABSENT: Final = object()
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+|$")
_LONG: Final = 60
"""Characters of a text that a condition looks for."""


def candidates(
    before: Observation,
    after: Observation,
    events: tuple[Sequence[Event], Sequence[Event]],
    given: Mapping[str, Any],
) -> Iterator[Expect]:
    """Yield expectations with one key, the most telling ones first.

    Args:
        before: the unchanged run.
        after: the run with the mutant.
        events: the events of both.
        given: the expectations so far, which the new ones include.
    """
    for key in ("output", "state"):
        yield from sorted(
            _of_value(key, getattr(before, key), getattr(after, key), given.get(key)),
            key=lambda found: len(encode(found)),
        )
    yield from _of_path(before, after, given)
    yield from _of_calls(before, after, given)
    yield from _of_requests(_calls(events[0]), _calls(events[1]), given)
    if before.interrupts != after.interrupts:
        yield {"interrupt": before.interrupts}
    for key, texts, others in (
        ("warnings", before.warnings, after.warnings),
        ("never_warnings", after.warnings, before.warnings),
    ):
        for text in (each for each in texts if each not in others):
            yield {key: [*given.get(key, ()), {"$contains": _without_place(text)}]}
    if before.error and before.error != after.error:
        yield {"error": {key: before.error[key] for key in ("type", "node") if before.error.get(key)}}
    yield from _of_amounts(before, after, given)


def _of_value(key: str, before: Any, after: Any, given: Any) -> Iterator[Expect]:
    if before == after or before is None:
        return
    if not (
        isinstance(before, Mapping) and isinstance(after, Mapping) and (given is None or _is_plain(given))
    ):
        yield from ({key: expected} for expected in _expected(before, after))
        return
    for name in dict.fromkeys([*before, *after]):
        if name not in before:
            yield {key: {**(given or {}), name: {"$missing": True}}}
        elif before[name] != after.get(name, _ABSENT):
            for expected in _expected(before[name], after.get(name)):
                yield {key: {**(given or {}), name: expected}}


def _expected(value: Any, other: Any) -> Iterator[Any]:
    """Yield what matches a value: one item that the other one lacks, what is stable in it, the whole."""
    if isinstance(value, list) and isinstance(other, list):
        yield from [{"$len": len(value)}] if len(value) != len(other) else []
        for item in value:
            if item not in other:
                yield from ({"$some": found} for found in _stable(item))
    yield from _stable(value)
    yield {"$exact": value} if isinstance(value, Mapping) else value


def _stable(value: Any) -> Iterator[Any]:
    observed = Observation(output=value)
    if (found := expectations(observed, observed).get("output", _ABSENT)) is not _ABSENT:
        yield found


def _of_path(before: Observation, after: Observation, given: Mapping[str, Any]) -> Iterator[Expect]:
    if before.path == after.path:
        return
    if "path" not in given:
        yield {"path": before.path}
    for name in after.visits:
        if name not in before.visits:
            yield {"never": [*given.get("never", ()), name]}
    for name, times in before.visits.items():
        if after.visits.get(name) != times:
            yield {"visits": {**given.get("visits", {}), name: times}}


def _of_calls(before: Observation, after: Observation, given: Mapping[str, Any]) -> Iterator[Expect]:
    if "calls" not in given:
        if found := expectations(before, before).get("calls"):
            yield {"calls": found}
        calls = [
            {call["kind"]: call["name"], "node": call["node"]} | ({} if call["ok"] else {"ok": False})
            for call in before.calls
        ]
        yield from [{"calls": calls}] if calls else []
    names = [[f"{call['kind']}:{call['name']}" for call in run.calls] for run in (before, after)]
    for name in dict.fromkeys([*names[0], *names[1]]):
        counts = [of.count(name) for of in names]
        if counts[0] != counts[1] and counts[0]:
            yield {"call_counts": {**given.get("call_counts", {}), name: counts[0]}}
        elif counts[0] != counts[1]:
            kind, _, called = name.partition(":")
            yield {"never_calls": [*given.get("never_calls", ()), {kind: called}]}


def _calls(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event["event"] == "call"]


def _of_requests(
    before: Sequence[Event], after: Sequence[Event], given: Mapping[str, Any]
) -> Iterator[Expect]:
    """Yield conditions on what calls were made with, and on what models were asked."""
    for at, (one, other) in enumerate(zip(before, after, strict=False)):
        if one["kind"] == other["kind"] == "llm":
            asked = observe.model_request(one["request"]), observe.model_request(other["request"])
            terms = _request_terms(f"calls[{at}].request", *asked)
        else:
            terms = _argument_terms(
                f"calls[{at}].args", one["request"].get("args"), other["request"].get("args")
            )
        yield from (_condition(term, given) for term in terms)


def _argument_terms(at: str, before: Any, after: Any) -> Iterator[str]:
    for name, value in before.items() if isinstance(before, Mapping) else ():
        if not isinstance(after, Mapping) or value != after.get(name, _ABSENT):
            key = encode(name)
            yield f"{key} in {at} && {at}[{key}] == {encode(value)}"


def _request_terms(call: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    contents = [[message.get("content") for message in each["messages"]] for each in (before, after)]
    for at, text in enumerate(contents[0]):
        other = contents[1][at] if at < len(contents[1]) else None
        if isinstance(text, str) and text != other:
            found = f"{call}.messages[{at}].content"
            for sentence in _sentences(text):
                if not isinstance(other, str) or sentence not in other:
                    yield f"{found}.contains({encode(sentence)})"
            yield f"{found} == {encode(text)}"
    yield from (f"{encode(name)} in {call}.tools" for name in before["tools"] if name not in after["tools"])
    yield from _argument_terms(f"{call}.params", before["params"], after["params"])
    added = (name for name in after["params"] if name not in before["params"])
    yield from (f"!({encode(name)} in {call}.params)" for name in added)
    for key in ("tools", "response_format"):
        if before[key] != after[key]:
            yield f"{call}.{key} == {encode(before[key])}"


def _sentences(text: str) -> Iterator[str]:
    cuts = [0, *(found.start() for found in _SENTENCE.finditer(text))]
    for start, end in pairwise(cuts):
        sentence = text[start:end].strip()
        if len(sentence) > _LONG and " " in sentence[:_LONG]:
            yield sentence[:_LONG].rpartition(" ")[0]
            yield sentence[-_LONG:].partition(" ")[2]
        if sentence:
            yield sentence


def _condition(that: str, given: Mapping[str, Any]) -> Expect:
    return {"checks": [*as_list(given.get("checks", [])), {"that": that}]}


def _of_amounts(before: Observation, after: Observation, given: Mapping[str, Any]) -> Iterator[Expect]:
    for name, seconds in before.latency["nodes"].items():
        if seconds != after.latency["nodes"].get(name):
            yield _condition(f"latency.nodes[{encode(name)}] == {encode(seconds)}", given)
    if before.latency["total"] != after.latency["total"]:
        yield _condition(f"latency.total == {encode(before.latency['total'])}", given)
    for name in ("llm_calls", "input_tokens", "output_tokens"):
        if before.usage[name] != after.usage[name]:
            yield _condition(f"usage.{name} == {before.usage[name]}", given)


def _is_plain(value: Any) -> bool:
    return isinstance(value, Mapping) and not is_matcher(value)


def _without_place(text: str) -> str:
    """Return the text of a warning without its location, and without its hint."""
    lead, found, rest = text.partition(": ")
    told = rest if found and lead.rpartition(":")[2].isdecimal() else text
    return told.partition(" (")[0]
