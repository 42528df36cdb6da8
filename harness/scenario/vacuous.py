"""Detects expectations that hold for every run. Each is a warning, when the file is read and of every run.

They are allowed, since a scenario may be under construction, but a test that cannot fail tests nothing. Stubs
that never answer are in `harness.scenario.idle_stubs`, warnings that need a run in `harness.scenario.untried`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.errors import ExpressionError, Problem, Span
from harness.matchers.regex import last_part_matches
from harness.scenario.document_expect import CHECKS, check_items, checks_in
from harness.scenario.mentions import ENTRIES, unknown_arguments
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath

_COUNTS_NOTHING: Final = "a check of weight 0 counts nothing: it cannot fail the scenario"


def vacuous_expectations(at: Document, timeout_s: float) -> Iterator[Problem]:
    """Yield a warning for each expectation of a scenario that cannot fail. Its runs end at `timeout_s`."""
    if at.value.get("pass_score") == 0:
        yield _warning(
            "pass_score: 0 cannot fail: this scenario passes whatever its run does",
            at.key_span(("pass_score",)),
        )
    turns = at.value.get("turns") or ()
    judged_otherwise = (
        "test_scenario" in at.value or "cassette" in at.value
    )  # a replay fails where it differs
    if not judged_otherwise and not any("expect" in part for part in (at.value, *turns)):
        text = "nothing is expected: this scenario passes whenever its run completes"
        yield _warning(
            text, at.span(("name",)), "if that is what is meant, write `expect: {status: completed}`"
        )
    for part in (at, *(at.at(("turns", number)) for number in range(len(turns)))):
        if isinstance(part.value.get("expect"), dict):
            yield from _in_expectations(part.at(("expect",)), timeout_s)


def _in_expectations(at: Document, timeout_s: float) -> Iterator[Problem]:
    values = at.value
    if not values:
        text = "'expect' lists nothing: it has no effect"
        yield _warning(text, at.span())
    for key, check in checks_in(values):
        for part in (part for rule in check.vacuous for part in rule(key, values, timeout_s)):
            path = (key, *part.path)
            yield _warning(part.message, at.key_span(path) if part.on_key else at.span(path), part.hint)
        for item in check_items(at, key) if check.items and values[key] else ():
            if item.value.get("weight") == 0:
                yield _warning(_COUNTS_NOTHING, item.span(("weight",)))
    for key, check in CHECKS.items():
        if check.option in values and key not in values:
            text = f"'{check.option}' does nothing without '{key}'"
            yield _warning(text, at.key_span((check.option,)))
    yield from _in_weights(at)


def _in_weights(at: Document) -> Iterator[Problem]:
    values = at.value
    weights = values.get("weights")
    if not weights:
        return
    one_counts = any(_weights(values, weights))
    if not one_counts:
        text = "the weight of every check is 0, so none of them counts"
        yield _warning(text, at.key_span(("weights",)))
    for key, weight in weights.items():
        if CHECKS[key].gate:
            continue
        if key not in values:
            if at.holds(("weights", key)):
                yield _warning(
                    f"this weight has no effect: there is no check '{key}' here",
                    at.key_span(("weights", key)),
                )
        elif weight == 0 and one_counts and not (CHECKS[key].items and _have_weights(values[key])):
            yield _warning(_COUNTS_NOTHING, at.span(("weights", key)))


def _have_weights(items: Any) -> bool:
    """True if each item of a check has a weight of its own."""
    return all("weight" in item for item in ([items] if isinstance(items, Mapping) else items))


def _weights(values: Mapping[str, Any], weights: Mapping[str, float]) -> Iterator[float]:
    """Yield the weights of all checks. A gate without a weight yields 1, since it can set the score to 0."""
    for key, check in checks_in(values):
        if check.items:
            items = [values[key]] if isinstance(values[key], Mapping) else values[key]
            yield from (item.get("weight", weights.get(key, 1)) for item in items)
        else:
            yield weights.get(key, 1)
    yield from (weights.get(key, 1) for key, check in CHECKS.items() if check.gate and key not in values)


def _warning(text: str, span: Span, hint: str = "") -> Problem:
    return Problem("cannot-fail", text, span, hint, severity="warning")


_MATCHERS: Final = ("node", "model", "args", "when", "method", "url", "query")
_OF_ALL: Final = ("kind", "node", "name", "args")
_FIELDS: Final = {
    "llm": (*_OF_ALL, "model", "provider", "params", "messages", "tools", "response_format", "prompt"),
    "http": (*_OF_ALL, "method", "url", "query", "headers", "json", "text"),
    "mcp": (*_OF_ALL, "server"),
    "agents": (*_OF_ALL, "prompt"),
}
"""Fields of `request` in `when`, by the key of the world under which the stub stands."""
_CALLS_OF: Final = {"llm": "llm", "http": "http", "human": "human", **ENTRIES}
"""The kind of calls that stubs under a key of the world answer."""


def idle_stubs(at: Document) -> Iterator[Problem]:
    """Yield a warning for each stub of a scenario or its turns that never answers, and each fault without effect."""
    for part in (at, *(at.at(("turns", number)) for number in range(len(at.value.get("turns") or ())))):
        for key, path, stubs, default in _lists(part.value):
            yield from _in_list(key, part, path, stubs, default)
        for index, fault in enumerate(part.value.get("faults") or ()):
            if fault.get("latency") == 0:
                yield _idle_stubs_warning(
                    "this fault changes nothing", part.span(("faults", index, "latency"))
                )


def _lists(world: Mapping[str, Any]) -> Iterator[tuple[str, DocumentPath, Sequence[Any], Any]]:
    """Yield each stub list of a world: its key, its path, its stubs, and their default `times`."""
    for key in ("llm", "human", "http"):
        stubs = world.get(key)
        if isinstance(stubs, Mapping):
            yield from ((key, (key, node), of_node, 1) for node, of_node in stubs.items())
        elif stubs:
            yield key, (key,), stubs, 1
    for key in ENTRIES:
        for name, entry in (world.get(key) or {}).items():
            if isinstance(entry, list):
                yield key, (key, name), entry, "any"
            elif isinstance(entry, Mapping) and "real" not in entry:
                yield key, (key, name), (entry,), "any"
    for server, scripted in (world.get("mcp") or {}).items():
        tools = scripted.get("tools") or () if isinstance(scripted, Mapping) else ()
        for index, tool in enumerate(tools):
            yield "mcp", ("mcp", server, "tools", index, "stubs"), tool.get("stubs") or (), "any"


def _in_list(
    key: str, at: Document, path: DocumentPath, stubs: Sequence[Any], default: Any
) -> Iterator[Problem]:
    for index, stub in enumerate(stubs):
        if not isinstance(stub, Mapping):
            continue
        is_alone = isinstance(at.at(path).value, Mapping)
        place = path if is_alone else (*path, index)
        yield from _in_matchers(key, at.at(place), path[1] if len(path) == 2 else None)
        for before, earlier in enumerate(stubs[:index]):
            if isinstance(earlier, Mapping) and _answers_all_of(earlier, stub, default):
                line = at.span((*path, before)).line
                text = (
                    f"this stub never answers: the one before it, in line {line}, answers whatever it would"
                )
                yield _idle_stubs_warning(
                    text, at.span(place), "put it first, or limit the other with `times`"
                )
                break


def _answers_all_of(earlier: Mapping[str, Any], later: Mapping[str, Any], default: Any) -> bool:
    """True if the earlier stub is never used up and requires nothing that the later one does not require."""
    matchers = [key for key in _MATCHERS if key in earlier]
    return earlier.get("times", default) == "any" and all(
        key in later and later[key] == earlier[key] for key in matchers
    )


def _in_matchers(key: str, at: Document, node: Any) -> Iterator[Problem]:
    stub = at.value
    if key in ("llm", "human") and isinstance(node, str) and _excludes(node, stub.get("node")):
        text = f"this stub never answers: it is listed under '{node}', but asks for node '{stub['node']}'"
        yield _idle_stubs_warning(text, at.span(("node",)))
    args = stub.get("args")
    for name, hint in unknown_arguments(_CALLS_OF.get(key, key), args):
        text = f"this stub never answers: no call has an argument '{name}' under '{key}'"
        yield _idle_stubs_warning(text, at.key_span(("args", name)), hint)
    if "when" in stub:
        yield from _in_condition(key, stub["when"], at.span(("when",)))


def _excludes(node: str, wanted: str | None) -> bool:
    plain = wanted is not None and not set("*?[") & set(node + wanted)
    return plain and not last_part_matches(str(wanted), node) and not last_part_matches(node, str(wanted))


def _in_condition(key: str, when: str, span: Span) -> Iterator[Problem]:
    from harness.expressions.cel import compile as compile_cel

    expression = compile_cel(when)
    if not expression.names:
        try:
            never = expression.evaluate({}) is not True
        except ExpressionError:
            never = True
        if never:
            yield _idle_stubs_warning(f"this stub never answers: '{when}' is not true for any call", span)
    fields = _FIELDS.get(key, _OF_ALL)
    for name, field in sorted(expression.reads):
        if name == "request" and field not in fields:
            text = f"'request' has no '{field}' here"
            yield _idle_stubs_warning(text, span, did_you_mean(field, fields))


def _idle_stubs_warning(text: str, span: Span, hint: str = "") -> Problem:
    return Problem("idle-stub", text, span, hint, severity="warning")
