"""The new value of each kind of expectation. `BY_HAND` is shown as `…`."""

from typing import Any

import pytest

from harness.authoring.proposal import BY_HAND, changes

LLM = {"kind": "llm", "name": "gpt-4o", "node": "ask", "args": {}, "ok": True}


def tool(name: str, *, ok: bool = True, **args: Any) -> dict[str, Any]:
    return {"kind": "tool", "name": name, "node": "act", "args": args, "ok": ok}


@pytest.mark.parametrize(
    ("expect", "actual", "new"),
    [
        ({"status": "completed"}, "interrupted", {"status": "interrupted"}),
        ({"path": ["a", ["b", "c"]]}, ["a", "d"], {"path": ["a", "d"]}),
        ({"path_includes": ["a", "b", "d"]}, ["a", "x", "d"], {"path_includes": ["a", "x", "d"]}),
        ({"path_includes": ["a", "b", "d"]}, ["a", ["x", "y"], "d"], {"path_includes": ["a", "x", "y", "d"]}),
        ({"path_includes": ["a", "b"]}, ["z", "a"], {"path_includes": ["a"]}),
        ({"visits": {"a": 1, "b": {"$gte": 2}}}, {"a": 3, "b": 1}, {"visits.a": 3, "visits.b.$gte": 1}),
        ({"max_visits": {"a": 1, "b": 1}}, {"a": 1, "b": 3}, {"max_visits.b": 3}),
        ({"call_counts": {"llm": 2}}, {"llm": 0}, {"call_counts.llm": 0}),
        ({"latency": {"total": 1, "nodes": {"a": 1}}}, {"a": 2.0}, {"latency.nodes.a": 2}),
        ({"usage": {"cost": 0.1, "llm_calls": 1}}, {"cost": None, "llm_calls": 2}, {"usage.llm_calls": 2}),
        ({"never": ["a", "b"]}, [["c", "a"]], {"never": ["b"]}),
        ({"never_calls": [{"tool": "a"}, {"tool": "b"}]}, [tool("a")], {"never_calls": [{"tool": "b"}]}),
        ({"never_warnings": [{"$contains": "x"}, "y"]}, ["an x"], {"never_warnings": ["y"]}),
        ({"error": {"type": "A", "node": "n"}}, {"type": "B", "node": "g/n"}, {"error.type": "B"}),
        ({"error": {"type": "A"}}, None, {"error": ...}),
        ({"interrupt": "go?"}, ["go on?"], {"interrupt": "go on?"}),
        ({"interrupt": ["a", "b"]}, ["a", "c"], {"interrupt.1": "c"}),
        ({"interrupt": {"$len": 2}}, ["a"], {"interrupt.$len": 1}),
        (
            {"store": [{"namespace": ["m"], "key": "k", "value": {"a": 1}}]},
            {"m/k": {"a": 2}},
            {"store.0.value.a": 2},
        ),
        (
            {"state": {"a": {"$contains": "x"}, "b": 1}},
            {"a": "y", "b": 2},
            {"state.a.$contains": ..., "state.b": 2},
        ),
        ({"state": {"a": {"$cel": "value > 1"}}}, {"a": "x"}, {"state.a.$cel": ...}),
        ({"output": ["a", "b"]}, ["b", "c"], {"output": ["b", "c"]}),
        ({"output": [{"a": 1}, {"a": 2}]}, [{"a": 1}, {"a": 3}], {"output.1.a": 3}),
        ({"routes": [{"from": "a", "to": "b"}]}, [["a", "c"]], {"routes": ...}),
    ],
)
def test_the_new_value(expect: dict[str, Any], actual: Any, new: dict[str, Any]) -> None:
    key = next(iter(expect))

    found = changes(expect, key, actual)

    shown = {".".join(map(str, path)): ... if value is BY_HAND else value for path, value in found}
    assert shown == new


@pytest.mark.parametrize(
    ("order", "calls", "made", "new"),
    [
        ("in_order", [{"tool": "a", "args": {"n": 1}}], [tool("a", n=2, to=3)], [{"tool": "a", "args": {"n": 2}}]),
        ("in_order", [{"llm": "*"}, {"tool": "pay"}], [LLM, tool("send"), LLM], [{"llm": "*"}, {"tool": "send"}]),
        ("in_order", [{"tool": "a"}, {"llm": "gpt-4o"}], [LLM], [{"llm": "gpt-4o"}]),
        ("in_order", [{"tool": "a", "ok": True}], [tool("a", ok=False)], [{"tool": "a", "ok": False}]),
        ("in_order", [{"tool": "a", "args": {"n": {"$gt": 1}}}], [tool("a", n=0)], ...),
        ("exact", [{"llm": "gpt-4o"}], [LLM, tool("a"), LLM], [{"llm": "gpt-4o"}, {"tool": "a"}, {"llm": "gpt-4o"}]),
        ("any", [{"tool": "a"}, {"tool": "b"}], [tool("c"), tool("a")], [{"tool": "a"}, {"tool": "c"}]),
        ("in_order", [{"tool": "a"}, {"tool": "a"}], [tool("a")], [{"tool": "a"}]),
    ],
)  # fmt: skip
def test_the_new_calls(order: str, calls: Any, made: Any, new: Any) -> None:
    ((_, value),) = changes({"calls": calls, "calls_order": order}, "calls", made)

    assert (... if value is BY_HAND else value) == new
