"""Observations of runs, written by hand, and one check of them."""

from typing import Any

from harness.scenario.checks.run import run_checks
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observation


def call(kind: Any, name: Any, node: Any = "agent", args: Any = None, ok: Any = True) -> Any:
    return {"kind": kind, "name": name, "node": node, "args": args or {}, "ok": ok, "latency": 0.0}


WEATHER = [
    call("llm", "gpt-4o-mini"),
    call("tool", "get_weather", args={"city": "Paris", "days": 3}),
    call("tool", "get_weather", node="outer/agent", args={"city": "London"}, ok=False),
    call("llm", "gpt-4o-mini"),
]

REFUSED = {
    **call("tool", "get_weather", node="tools", args={"days": "many"}, ok=False),
    "reason": "days: not a number",
    "refused": True,
}


def ran(*path: Any, **more: Any) -> Any:
    return Observation(path=list(path), **more)


def checked(key: Any, expected: Any, observed: Any, **options: Any) -> Any:
    """The one result of one key."""
    results = run_checks(Expectations({key: expected, **options}), observed, default_status=observed.status)
    (result,) = [one for one in results if one.name.partition("[")[0] == key]
    return result
