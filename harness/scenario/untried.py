"""Detects parts of a scenario that its run did not exercise: faults that never struck, tool calls of stubs that
were refused, bounds and texts that were compared with nothing.

Only a run shows this. They are warnings of a run that completed; those that show before it runs are in
`vacuous`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from harness.errors import Problem, Span
from harness.matchers.plain import kind_of
from harness.matchers.schema_flaws import keywords_of_other_types
from harness.scenario.checks.calls import call_matches
from harness.scenario.checks.finding import as_list
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observation
from harness.source.display import clip
from harness.world.spec import FaultSpec, Stub

_REASON_LENGTH: Final = 120
_TYPED: Final = "say which `type` it has to be; of JSON in a text: {$json: {$schema: …}}"
_TOKENS: Final = ("input_tokens", "output_tokens", "cost")


def untried(
    expected: Sequence[tuple[Observation, Expectations]],
    faults: Iterable[tuple[FaultSpec, int]],
    stubs: Iterable[Stub] = (),
    undecided: Iterable[tuple[str, Span | None]] = (),
) -> Iterator[Problem]:
    """Yield a warning for each part of a scenario that its run did not exercise.

    Args:
        expected: the observation and the expectations of each turn and, last, of the whole run.
        faults: the faults that never struck, each with the number of calls that matched it.
        stubs: those of models.
        undecided: for each stub whose `when` never had a value, the reason and its location.
    """
    for why, span in undecided:
        text = f"this stub never answers: its `when` has no value in any call: {why}"
        yield _warning(text, span, "has(…) asks for what may be absent" if "no such key" in why else "")
    for fault, fitting in faults:
        if fault.rate is None or not fitting:
            yield _warning(f"this fault never struck: {_why(fault, fitting)}", fault.span)
    yield from _refused(expected, stubs)
    for observed, expect in expected:
        yield from _bounds(observed, expect)
        yield from _near_misses(observed, expect)
        yield from _silent_schemas(observed, expect)


def _why(fault: FaultSpec, fitting: int) -> str:
    number = fault.nth if fault.nth is not None else fault.every
    if not fitting:
        return "no call fits it"
    return f"{fitting} {'call fits' if fitting == 1 else 'calls fit'} it, and it waits for number {number}"


def _refused(
    expected: Sequence[tuple[Observation, Expectations]], stubs: Iterable[Stub]
) -> Iterator[Problem]:
    """Warn of tool calls of stubs that were refused, unless a failed call is expected there."""
    wanted = [item for _, expect in expected for item in as_list(expect.values.get("calls", ()))]
    awaited = [item for item in wanted if item.get("ok") is False]
    whole, _ = expected[-1]
    calls = [call for call in whole.calls if call.get("refused")]
    calls = [call for call in calls if not any(call_matches(item, call) for item in awaited)]
    for stub in stubs if calls else ():
        for asked in stub.answer.get("tool_calls") or ():
            key = (asked["name"], asked.get("args") or {})
            call = next((call for call in calls if (call["name"], call["args"]) == key), None)
            if call is not None:
                reason = clip(" ".join(str(call.get("reason")).split()), _REASON_LENGTH)
                text = f"the call of '{asked['name']}' in this stub was refused: {reason}"
                yield _warning(text, stub.span, "where that is meant, expect it in `calls` with `ok: false`")


def _bounds(observed: Observation, expect: Expectations) -> Iterator[Problem]:
    """Warn of bounds on tokens and cost if models were called but reported no tokens."""
    usage = observed.usage
    bounds = [key for key in _TOKENS if key in (expect.values.get("usage") or {})]
    if bounds and usage["llm_calls"] and not usage["input_tokens"] and not usage["output_tokens"]:
        text = f"no model reported tokens, so the bound of {', '.join(bounds)} was not checked"
        yield _warning(text, expect.spans.get("usage"), "a stub reports them by `usage`")


def _near_misses(observed: Observation, expect: Expectations) -> Iterator[Problem]:
    """Warn of texts in `never_warnings` that are only a part of a warning, since a text must be equal."""
    for wanted in expect.values.get("never_warnings") or ():
        if isinstance(wanted, str) and any(_is_part(wanted, text) for text in observed.warnings):
            text = f"'{wanted}' is only a part of a warning, but plain text must equal the whole warning"
            yield _warning(text, expect.spans.get("never_warnings"), "write {$contains: …} for a part")


def _silent_schemas(observed: Observation, expect: Expectations) -> Iterator[Problem]:
    """Warn of schemas whose keywords all apply to other types: any text is valid under `properties`."""
    for key, value in (("state_schema", observed.state), ("output_schema", observed.output)):
        if keywords := keywords_of_other_types(expect.values.get(key), value):
            what = f"{key} does not constrain {kind_of(value)}"
            text = f"{what}: '{keywords[0]}' applies to values of another type"
            yield _warning(text, expect.spans.get(key), _TYPED)


def _is_part(wanted: str, text: str) -> bool:
    return wanted != text and wanted.lower() in text.lower()


def _warning(text: str, span: Span | None, hint: str = "") -> Problem:
    return Problem("untried", text, span, hint, severity="warning")
