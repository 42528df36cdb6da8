"""Detects parts of a scenario that its run did not exercise: faults that never struck, tool calls of stubs that
were refused, bounds and texts that were compared with nothing.

Only a run shows this. They are warnings of a run that ended as expected; those that show before it runs are in
`vacuous`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from harness.errors import Problem, Span
from harness.scenario.checks.calls import call_matches
from harness.scenario.checks.finding import as_list
from harness.scenario.document_expect import checks_in
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observation
from harness.source.display import clip
from harness.world.mcp.tools import REFUSED_ARGUMENTS
from harness.world.spec import Fault
from harness.world.stub_models import AnyStub

_REASON_LENGTH: Final = 120


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
        yield _warning(
            f"this stub never answers: {why}",
            span,
            "has(…) asks for what may be absent" if "no such key" in why else "",
        )
    for fault, fitting in faults:
        if fault.rate is None or not fitting:
            yield _warning(f"this fault never struck: {_why(fault, fitting)}", fault.span)
    yield from _refused(expected, stubs)
    for observed, expect in expected:
        for key, check in checks_in(expect.values):
            for rule in check.untried:
                for text, hint in rule(key, expect.values, observed):
                    yield _warning(text, expect.spans.get(key), hint)


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
                yield _warning(text, stub.span, "where that is meant, expect it in `calls` with `ok: false`")


def _is_refused_by_server(call: Mapping[str, Any]) -> bool:
    """True if the arguments did not fit the input schema of the MCP tool."""
    return call["kind"] == "mcp" and str(call.get("reason", "")).startswith(REFUSED_ARGUMENTS)


def _warning(text: str, span: Span | None, hint: str = "") -> Problem:
    return Problem("untried", text, span, hint, severity="warning")
