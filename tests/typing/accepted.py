"""How users write tests, which type checkers accept: mypy with `strict`, and pyright."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given

import harness
from harness import AgentRun, Call, FormatError, Results, Run, load_results
from harness.strategies import replies, tool_calls


def find_order(number: str) -> dict[str, str]:
    return {"number": number, "state": "sent"}


def test_a_run(agent_run: AgentRun) -> None:
    run: Run = agent_run(
        Path("agents/triage.yaml"),
        "I was charged twice",
        llm={"classify": [{"json": {"intent": "billing"}}], "answer": lambda request: f"{request.prompt}!"},
        tools={"find_order": find_order, "pay": [{"reply": "paid"}, {"error": "timeout"}]},
        now=datetime(2026, 1, 1, tzinfo=UTC),
        seed=7,
        timeout=2.5,
        record_mode="once",
    )
    calls: list[Call] = run.calls(tool="find_order")
    arguments: Mapping[str, Any] = calls[0].args
    assert arguments == {"number": "7"}
    again: Run = run.send("and the other one?", human=["yes"]).resume("approve")
    checked: Run = again.check(
        status="completed",
        path=["classify", ["a", "b"]],
        visits={"classify": 1},
        state={"intent": "billing"},
        latency={"total": 3, "nodes": {"classify": 2}},
        usage={"cost": 0.1},
        calls=[{"tool": "find_order"}],
    )
    written: str = checked.to_scenario("a double charge")
    assert written


@given(reply=replies({"type": "object"}, words=["billing"]), calls=tool_calls([find_order]))
def test_replies(reply: Any, calls: list[dict[str, Any]]) -> None:
    harness.run(
        "agents/triage.yaml", "hi", llm={"classify": [{"json": reply}], "answer": {"tool_calls": calls}}
    )


def test_an_app() -> None:
    async def main() -> Run:
        return await harness.arun(find_order, {"number": "7"}, context={"user": "ada"}, faults=[{"llm": "*"}])

    seconds: float = asyncio.run(main()).latency["total"]
    assert seconds == 0
    try:
        harness.run("agents/none.yaml")
    except FormatError as error:
        print(error)


def frames() -> None:
    results: Results = load_results("reports/monday", Path("reports/tuesday"))
    runs = results.frame()
    failed = results.checks().query("not passed")
    print(runs["latency"].max(), len(failed), results.groups("tag", "model").columns)
