"""The expectations that would notice a change: the path, the calls of tools and services, the result.

A value that differs between two runs with different seeds is matched by its type alone, and a long text by its
beginning: neither an id nor the wording of a model should fail a scenario.

`candidates` are expectations that tell two runs apart: one of them fulfils each, and the other may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from harness.graph import observe
from harness.graph.effects import EFFECTS, EXPECTED_KINDS
from harness.graph.trace import Event
from harness.matchers.value import is_matcher
from harness.report.encoding import encode
from harness.scenario.outcome import Observation
from harness.secrets.encodings import has_placeholder

_LONG: Final = 80
"""Characters of a text that is matched as a whole."""
_MOST: Final = 12
"""Items of a list, or calls, that are written out; of more, the number is expected."""
_OF_MESSAGE: Final = ("type", "name", "content", "tool_calls")
_JSON_TYPES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def expectations(observed: Observation, again: Observation) -> dict[str, Any]:
    """Return the `expect` mapping that a run fulfils, and a run with another seed as well.

    Args:
        observed: the observation of a run.
        again: that of a run with another seed.
    """
    found: dict[str, Any] = {}
    if observed.status != "completed":
        found["status"] = observed.status
    if observed.path and observed.path == again.path:
        found["path"] = observed.path
    found |= _calls(observed.calls, again.calls)
    if observed.error is not None and observed.status == "failed":
        found["error"] = _error(observed.error, again.error or {})
    if observed.interrupts and observed.status == "interrupted":
        found["interrupt"] = [_matched(*pair) for pair in _pairs(observed.interrupts, again.interrupts)]
    if observed.output is not None and observed.status == "completed":
        found["output"] = _matched(observed.output, again.output)
    return found


def _error(error: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: error[key] for key in ("type", "node") if error.get(key)}
    message = error.get("message")
    if not message or message != again.get("message") or has_placeholder(message):
        return found
    return found | {"message": _text(message)}


def _calls(calls: Sequence[Mapping[str, Any]], again: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the expected calls, or their numbers if there are many. Model calls are what the path says already."""
    kinds = [
        kind for kind, effect in EFFECTS.items() if effect.expected and kind not in ("llm", "script", "human")
    ]
    wanted = [call for call in calls if call["kind"] in kinds and not call.get("refused")]
    others = [call for call in again if call["kind"] in kinds and not call.get("refused")]
    if len(wanted) > _MOST:
        names = [f"{call['kind']}:{call['name']}" for call in wanted]
        return {"call_counts": {name: names.count(name) for name in dict.fromkeys(names)}}
    return {"calls": [_call(*pair) for pair in _pairs(wanted, others)]} if wanted else {}


def _call(call: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, Any]:
    args, others = call["args"] or {}, again.get("args") or {}
    if call["kind"] == "http":  # the name is the address, and headers are the client's own
        args = {key: args[key] for key in ("method", "query", "json") if args.get(key) and args[key] != "GET"}
    expected = {call["kind"]: _glob(call["name"])}
    if args and not is_matcher(args):
        expected["args"] = _matched(args, {key: others.get(key) for key in args})
    return expected | ({} if call["ok"] else {"ok": False})


def _glob(name: str) -> str:
    """Return a name as a pattern that it alone matches."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _pairs(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pair the items of two lists; if one is longer, each with itself: nothing is known of what varies."""
    return list(zip(one, other, strict=True)) if len(one) == len(other) else [(each, each) for each in one]


def _matched(value: Any, again: Any) -> Any:
    """Return the expectation that a value fulfils, and the same value of another run."""
    if isinstance(value, Mapping) and isinstance(again, Mapping):
        return _mapping(value, again)
    if isinstance(value, list) and isinstance(again, list):
        if len(value) != len(again):
            return {"$type": "array"}
        if len(value) > _MOST:
            return {"$len": len(value)}
        return [_matched(*pair) for pair in zip(value, again, strict=True)]
    is_hidden = isinstance(value, str) and has_placeholder(value)
    if value != again or is_hidden:
        return {"$type": _JSON_TYPES[type(value)]} if type(value) is type(again) else {"$any": True}
    return _text(value) if isinstance(value, str) else value


def _mapping(value: Mapping[str, Any], again: Mapping[str, Any]) -> Any:
    is_message = "content" in value and "type" in value
    kept = [key for key in value if key in again and (not is_message or (key in _OF_MESSAGE and value[key]))]
    found = {key: _matched(value[key], again[key]) for key in kept}
    if is_message and "tool_calls" in found:
        found["tool_calls"] = [
            {key: call[key] for key in ("name", "args") if key in call} for call in found["tool_calls"]
        ]
    return {"$exact": found} if len(found) == 1 and is_matcher(value) else found


def _text(text: str) -> Any:
    """Return a text, or of a long one its first sentence: enough to recognise it."""
    if len(text) <= _LONG and "\n" not in text:
        return text
    first = next((line for line in text.splitlines() if line.strip()), "").strip()
    sentence = re.match(r".{20,}?[.!?](?=\s|$)", first)
    part = sentence[0] if sentence and len(sentence[0]) <= _LONG else first[:_LONG]
    if len(part) == _LONG and " " in part:
        part = part[: part.rindex(" ")]
    return {"$contains": part} if part else {"$type": "string"}


Expect = dict[str, Any]
_ABSENT: Final = object()
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+|$")
_SHORT: Final = 200
"""Characters of a mapping that may be expected as a whole, with no other key."""
_LONG_TERM: Final = 60
"""Characters of a text that a condition looks for."""


def candidates(
    before: Observation,
    after: Observation,
    events: tuple[Sequence[Event], Sequence[Event]],
    given: Mapping[str, Any],
) -> Iterator[Expect]:
    """Yield expectations with one key, the most telling ones first.

    Args:
        before: the run that fulfils them.
        after: the other one.
        events: the events of both.
        given: the expectations so far; a list of theirs is not replaced.
    """
    for key in ("output", "state"):
        values = getattr(before, key), getattr(after, key)
        found = _partial(*values) if values[0] is not None and values[0] != values[1] else ()
        yield from ({key: each} for each in sorted(found, key=_effort))
    yield from _of_path(before, after, given)
    yield from _of_routes(before, after)
    yield from _of_calls(before, after, given)
    yield from map(_condition, _terms(_calls_in(events[0]), _calls_in(events[1])))
    for name in dict.fromkeys(call["name"] for call in (*before.calls, *after.calls)):
        counts = [sum(call["name"] == name for call in run.calls) for run in (before, after)]
        if counts[0] != counts[1]:
            yield _condition(f"size(calls.filter(call, call.name == {_cel(name)})) == {counts[0]}")
    if before.interrupts != after.interrupts:
        yield {"interrupt": before.interrupts}
    for key, texts, others in (
        ("warnings", before.warnings, after.warnings),
        ("never_warnings", after.warnings, before.warnings),
    ):
        for text in (each for each in texts if each not in others):
            yield {key: [{"$contains": _without_place(text)}]}
    if before.error and before.error != after.error:
        yield {"error": {key: before.error[key] for key in ("type", "node") if before.error.get(key)}}
        yield {"error": {"message": before.error["message"]}}
    yield from map(_condition, _amounts(before, after))


def _effort(expected: Any) -> tuple[bool, int]:
    """Return the order in which expected values are tried: what is there before what is missing, short ones first."""
    text = encode(expected)
    return "$missing" in text, len(text)


def _partial(before: Any, after: Any) -> Iterator[Any]:
    """Yield what matches a value and not another one: of mappings, the keys that lead to a difference."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys([*before, *after]):
            if name not in before:
                yield {"$exact": before} if len(encode(before)) < _SHORT else {name: {"$missing": True}}
            elif before[name] != after.get(name, _ABSENT):
                yield from ({name: found} for found in _partial(before[name], after.get(name)))
        return
    if isinstance(before, list) and isinstance(after, list):
        yield from [{"$len": len(before)}] if len(before) != len(after) else []
        yield from ({"$some": found} for item in before if item not in after for found in _stable(item))
    yield from _stable(before)
    yield {"$exact": before} if isinstance(before, Mapping) else before


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
            yield {"never": [name]}
    for name, times in before.visits.items():
        if after.visits.get(name) != times:
            yield {"visits": {name: times}}


def _of_routes(before: Observation, after: Observation) -> Iterator[Expect]:
    for source, target in before.routes:
        if before.routes.count([source, target]) != after.routes.count([source, target]):
            yield {"routes": [{"from": source, "to": target}]}


def _of_calls(before: Observation, after: Observation, given: Mapping[str, Any]) -> Iterator[Expect]:
    if "calls" not in given:
        if found := expectations(before, before).get("calls"):
            yield {"calls": found}
        calls = [
            {call["kind"]: call["name"], "node": call["node"]} | ({} if call["ok"] else {"ok": False})
            for call in before.calls
            if call["kind"] in EXPECTED_KINDS
        ]
        yield from [{"calls": calls}] if calls else []
    names = [
        [f"{call['kind']}:{call['name']}" for call in run.calls if call["kind"] in EXPECTED_KINDS]
        for run in (before, after)
    ]
    for name in dict.fromkeys([*names[0], *names[1]]):
        counts = [of.count(name) for of in names]
        if counts[0] != counts[1]:
            kind, _, called = name.partition(":")
            yield {"call_counts": {name: counts[0]}} if counts[0] else {"never_calls": [{kind: called}]}


def _calls_in(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event["event"] == "call"]


def _terms(before: Sequence[Event], after: Sequence[Event]) -> Iterator[str]:
    """Yield conditions on what calls were made with, and on what models were asked."""
    for at, (one, other) in enumerate(zip(before, after, strict=False)):
        if one["kind"] == other["kind"] == "llm":
            asked = observe.model_request(one["request"]), observe.model_request(other["request"])
            yield from _request_terms(f"calls[{at}].request", *asked)
        else:
            yield from _argument_terms(
                f"calls[{at}].args", one["request"].get("args"), other["request"].get("args")
            )


def _argument_terms(at: str, before: Any, after: Any) -> Iterator[str]:
    for name, value in before.items() if isinstance(before, Mapping) else ():
        other = after.get(name, _ABSENT) if isinstance(after, Mapping) else _ABSENT
        if value != other:
            key = _cel(name)
            if isinstance(value, Mapping) and isinstance(other, Mapping):
                yield from _argument_terms(f"{at}[{key}]", value, other)
            yield f"{key} in {at} && {at}[{key}] == {_cel(value)}"


def _request_terms(call: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    contents = [[message.get("content") for message in each["messages"]] for each in (before, after)]
    for at, text in enumerate(contents[0]):
        other = contents[1][at] if at < len(contents[1]) else None
        if isinstance(text, str) and text != other:
            found = f"{call}.messages[{at}].content"
            for sentence in _sentences(text):
                if not isinstance(other, str) or sentence not in other:
                    yield f"{found}.contains({_cel(sentence)})"
            yield f"{found} == {_cel(text)}"
    yield from (f"{_cel(name)} in {call}.tools" for name in before["tools"] if name not in after["tools"])
    yield from _argument_terms(f"{call}.params", before["params"], after["params"])
    added = (name for name in after["params"] if name not in before["params"])
    yield from (f"!({_cel(name)} in {call}.params)" for name in added)
    for key in ("tools", "response_format"):
        if before[key] != after[key]:
            yield f"{call}.{key} == {_cel(before[key])}"


def _sentences(text: str) -> Iterator[str]:
    cuts = [0, *(found.start() for found in _SENTENCE.finditer(text))]
    for start, end in pairwise(cuts):
        sentence = text[start:end].strip()
        if len(sentence) > _LONG_TERM and " " in sentence[:_LONG_TERM]:
            yield sentence[:_LONG_TERM].rpartition(" ")[0]
            yield sentence[-_LONG_TERM:].partition(" ")[2]
        if any(map(str.isalnum, sentence)):
            yield sentence


def _condition(that: str) -> Expect:
    return {"checks": [{"that": that}]}


def _cel(value: Any) -> str:
    """Return a value in CEL; a text in single quotes, which a YAML file need not escape."""
    if isinstance(value, str) and value.isprintable() and not {"'", "\\"} & {*value}:
        return f"'{value}'"
    return encode(value)


def _amounts(before: Observation, after: Observation) -> Iterator[str]:
    for name, seconds in before.latency["nodes"].items():
        if seconds != after.latency["nodes"].get(name):
            yield f"latency.nodes[{_cel(name)}] == {_cel(seconds)}"
    if before.latency["total"] != after.latency["total"]:
        yield f"latency.total == {_cel(before.latency['total'])}"
    for name in ("llm_calls", "input_tokens", "output_tokens"):
        if before.usage[name] != after.usage[name]:
            yield f"usage.{name} == {before.usage[name]}"


def _without_place(text: str) -> str:
    """Return the text of a warning without its location, and without its hint."""
    lead, found, rest = text.partition(": ")
    told = rest if found and lead.rpartition(":")[2].isdecimal() else text
    return told.partition(" (")[0]
