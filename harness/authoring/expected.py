"""The expectations that would notice a change: the path, the calls of tools and services, the result.

A value that differs between two runs with different seeds is matched by its type alone, and a long text by its
beginning: neither an id nor the wording of a model should fail a scenario.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.graph.effects import EFFECTS
from harness.matchers.value import is_matcher
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
