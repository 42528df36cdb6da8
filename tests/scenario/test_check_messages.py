"""Messages of failed checks."""

from typing import Any

import pytest

from harness.scenario.outcome import Observation
from tests.scenario.observed import REFUSED, WEATHER, call, checked, ran


@pytest.mark.parametrize(
    ("key", "expected", "observed", "message"),
    [
        (
            "status",
            "completed",
            Observation(status="failed", error={"type": "ValueError", "message": "no", "node": "b"}),
            "expected completed, was failed: ValueError: no (node b)",
        ),
        (
            "status",
            "completed",
            ran("a", "b", status="interrupted", interrupts=["first", {"question": "Why?", "options": ["x"]}]),
            "expected completed, was interrupted: paused in b, asking: {question: 'Why?', options: ['x']}\n"
            "  answer under `human: {b: '…'}`, or in a turn with `resume`",
        ),
        (
            "status",
            "completed",
            ran(latency={"nodes": {"a": 1, "b": 2}}, routes=[["a", "c"]], status="interrupted", interrupts=["b"]),
            "expected completed, was interrupted: paused in b\n"
            "  answer under `human: {b: '…'}`, or in a turn with `resume`",
        ),
        (
            "status",
            "completed",
            ran("a", "b", ["a", "c"], routes=[["a", "b"], ["b", "a"], ["b", "c"], ["c", "d"]],
                status="interrupted", interrupts=[1]),
            "expected completed, was interrupted: paused in a, asking: 1\n"
            "  answer under `human: {a: '…'}`, or in a turn with `resume`",
        ),
        (
            "status",
            "completed",
            ran("n" * 10_000, status="interrupted", interrupts=["v" * 10_000]),
            f"expected completed, was interrupted: paused in {'n' * 59}…, asking: '{'v' * 98}…\n"
            f"  answer under `human: {{{'n' * 59}…: '…'}}`, or in a turn with `resume`",
        ),
        (
            "status",
            "completed",
            ran(
                visits={"a": 1, "b": 1},
                routes=[["a", "b"], ["b", "join"], ["b", "__end__"]],
                status="timeout",
                latency={"total": 30.0},
            ),
            "expected completed, was timeout: cut off by `timeout` after 30 s of virtual time; "
            "called and never started: join",
        ),
        (
            "path",
            ["a", "b", "d"],
            ran("a", ["b", "c"], "d"),
            "step 2: expected b, was [b, c]\n  expected: a → b → d\n  actual:   a → [b, c] → d",
        ),
        ("path", ["a"], ran("a", "b"), "step 2: expected the end, was b\n  expected: a\n  actual:   a → b"),
        ("path", ["a"], ran(), "step 1: expected a, was the end\n  expected: a\n  actual:   nothing"),
        ("path_includes", ["b", "x"], ran("a", "b"), "not found in this order: x\n  actual: a → b"),
        ("visits", {"a": 2}, ran(visits={"a": 1}), "a: expected 2, was 1"),
        ("max_visits", {"a": 2}, ran(visits={"a": 3}), "a: expected at most 2, was 3"),
        ("never", ["a", "b"], ran("a", "c"), "ran: a"),
        ("routes", [{"from": "a", "to": "b"}], ran(routes=[["a", "c"]]), "a → b was not taken; it led to c"),
        ("state", {"a": 1, "b": 2}, Observation(state={"a": 2}), "a: expected 1, was 2\nb: expected 2, was nothing"),
        (
            "calls",
            [{"tool": "get_*", "args": {"city": "Rome"}}],
            Observation(calls=WEATHER[:2]),
            "not found: {tool: 'get_*', args: {city: 'Rome'}}\n"
            "  nearest: tool get_weather from agent {city: 'Paris', days: 3}\n"
            "    args.city: expected 'Rome', was 'Paris'",
        ),
        (
            "calls",
            [{"tool": "get_weather", "args": {"city": "Rome"}}],
            Observation(calls=[REFUSED, call("tool", "get_wether", args={"city": "Rome"}), call("llm", "m")]),
            "not found: {tool: 'get_weather', args: {city: 'Rome'}}\n"
            "  nearest: tool get_weather from tools {days: 'many'}\n"
            "    it was refused: days: not a number\n"
            "    args.city: expected 'Rome', was nothing",
        ),
        (
            "calls",
            [{"tool": "get_weather", "args": {"city": "Rome"}}],
            Observation(calls=[call("tool", "get_wether", args={"city": "Oslo"}), call("tool", "x")]),
            "not found: {tool: 'get_weather', args: {city: 'Rome'}}\n"
            "  nearest: tool get_wether from agent {city: 'Oslo'}\n"
            "    tool: expected get_weather, was get_wether\n"
            "    args.city: expected 'Rome', was 'Oslo'",
        ),
        (
            "calls",
            [{"tool": "ask"}],
            Observation(calls=[call("mcp", "ask")]),
            "not found: {tool: 'ask'}\n  nearest: mcp ask from agent {}\n    expected a call of kind tool, was mcp",
        ),
        (
            "calls",
            [{"tool": "a", "args": {"n": n}} for n in (1, 2)],
            Observation(calls=[call("tool", "a", args={"n": 1}), call("tool", "a", args={"n": 3, "m": 2})]),
            "not found: {tool: 'a', args: {n: 2}}\n"
            "  nearest: tool a from agent {n: 3, m: 2}\n"
            "    args.n: expected 2, was 3",
        ),
        ("calls", [{"tool": "a"}], Observation(calls=[call("llm", "m")]), "not found: {tool: 'a'}"),
        (
            "never_calls",
            [{"tool": "get_weather"}],
            Observation(calls=[REFUSED]),
            "was asked for, and refused: tool get_weather from tools {days: 'many'}",
        ),
        ("call_counts", {"tool:x": 1}, Observation(), "tool:x: expected 1, was 0"),
        ("interrupt", ["a", "b"], Observation(interrupts=["a"]), "pause 2: expected 'b', was nothing"),
        ("warnings", ["b"], Observation(warnings=["ab"]), "no warning 'b'\n  raised: 'ab'"),
        ("usage", {"input_tokens": 123456789}, Observation(usage={"input_tokens": 123456790}),
         "input_tokens: expected at most 123456789, was 123456790"),
        ("latency", {"nodes": {"a": 1}}, Observation(latency={"nodes": {"a": 1.5}}),
         "a: expected at most 1 s, was 1.5 s"),
        (
            "checks",
            [{"that": "state.count > 2"}],
            Observation(state={"count": 1}),
            "state.count > 2 is false\n  state.count = 1",
        ),
    ],
)  # fmt: skip
def test_a_failed_check_says(key: Any, expected: Any, observed: Any, message: Any) -> None:
    assert checked(key, expected, observed).message == message


def test_a_long_path_is_shown_around_its_first_difference() -> None:
    expected = [f"n{i}" for i in range(40)]

    message = checked("path", expected, ran(*expected[:20], "x", *expected[21:])).message

    assert message.startswith("step 21: expected n20, was x\n")
    assert "… → n12 → " in message
    assert " → n19 → x → n21 → " in message
    assert " → n28 → …" in message


def test_actual_values_are_those_asked_for_and_cut() -> None:
    state = {"long": "x" * 9000, "list": list(range(900)), "other": 1}

    actual = checked(
        "state", {"long": {"$len": 9000}, "list": {"$len": 900}}, Observation(state=state)
    ).actual

    assert actual["long"] == "x" * 500 + "… (9000 characters)"
    assert (len(actual["list"]), actual["list"][-1]) == (51, "… 850 more")
    assert "other" not in actual
