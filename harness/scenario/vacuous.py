"""Detects expectations that hold for every run. Each is a warning, when the file is read and of every run.

They are allowed, since a scenario may be under construction, but a test that cannot fail tests nothing. Stubs
that never answer are in `harness.scenario.idle_stubs`, warnings that need a run in `believed` and `untried`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.errors import Problem, Span
from harness.scenario.document_expect import CHECKS, check_items, checks_in
from harness.source.document import Document

_COUNTS_NOTHING: Final = "a check of weight 0 counts nothing: it cannot fail the scenario"


def vacuous_expectations(at: Document) -> Iterator[Problem]:
    """Yield a warning for each expectation of a scenario that cannot fail."""
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
            yield from _in_expectations(part.at(("expect",)))


def _in_expectations(at: Document) -> Iterator[Problem]:
    values = at.value
    if not values:
        text = "'expect' lists nothing: it has no effect"
        yield _warning(text, at.span())
    for key, check in checks_in(values):
        for part in (part for rule in check.vacuous for part in rule(key, values)):
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
