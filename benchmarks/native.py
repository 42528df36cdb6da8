"""(n) A LangGraph app, run by the harness, compared with its own `ainvoke` and an HTTP transport in the process.

Both sides use the provider's own client: its requests, its parsing. Neither includes the process of a run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openai

from benchmarks import scenarios
from benchmarks.manifests import clerk_app
from benchmarks.measure import Figure, medians, seconds
from harness.scenario.load import load_file
from harness.scenario.run import run_once
from harness.settings import Settings

TARGET = 1.3
ROUNDS = 15
CALLS_OF_A_RUN = (2, 5)
CALLS = 30
"""Model calls between two readings of the clock, at least."""
TEXT = "How heavy are my parcels?"
ANSWER = "They are heavy."


def run() -> list[Figure]:
    """Measure, and return the figures. Both sides create an event loop per run; graphs are built beforehand."""
    figures = []
    for calls in CALLS_OF_A_RUN:
        ours, own = _by_harness(calls), partial(_ainvoke, _graph(calls))
        works: dict[str, Callable[[], object]] = {"own": own, "ours": ours}
        took = medians({name: partial(seconds, work, CALLS // calls) for name, work in works.items()}, ROUNDS)
        title = f"an app with {calls} model calls, run / its own ainvoke"
        figures.append(Figure("n", title, took["ours"] / took["own"], target=TARGET))
        figures.append(Figure("n", "its own ainvoke, a run", took["own"] * 1000, "ms"))
    return figures


def _by_harness(calls: int) -> Callable[[], object]:
    tools = [{"tool_calls": [{"name": "weigh", "args": {"parcel": parcel}}]} for parcel in range(calls - 1)]
    scenario = {"name": "parcels", "input": TEXT, "llm": [*tools, ANSWER], "expect": {"output": ANSWER}}
    with TemporaryDirectory() as folder:
        path = scenarios.write(Path(folder, "n.scenario.yaml"), "clerk_app.py:graph", [scenario], "langgraph")
        [loaded] = load_file(path).scenarios
    result = run_once(loaded, Settings(), seed=0)
    assert result.observed.output == ANSWER, result.observed
    return partial(run_once, loaded, Settings(), seed=0)


def _graph(calls: int) -> Any:
    """Return the app with a transport that answers in this process."""
    # That of the HTTP library which the provider's client uses.
    http = import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
    answers = _completions(calls)
    transport = http.MockTransport(lambda _request: http.Response(200, json=next(answers)))
    return clerk_app.build(openai.DefaultAsyncHttpxClient(transport=transport))


def _completions(calls: int) -> Iterator[dict[str, Any]]:
    usage = {"prompt_tokens": 30, "completion_tokens": 8, "total_tokens": 38}
    for number, at in zip(count(), cycle(range(calls)), strict=False):
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER, "refusal": None}
        if at < calls - 1:
            function = {"name": "weigh", "arguments": json.dumps({"parcel": at})}
            message |= {
                "content": None,
                "tool_calls": [{"id": f"call_{at}", "type": "function", "function": function}],
            }
        finish = "stop" if at == calls - 1 else "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 0, "model": "gpt-4o-mini"}
        yield {**head, "choices": [choice], "usage": usage}


def _ainvoke(graph: Any) -> None:
    async def main() -> None:
        ended = await graph.ainvoke({"messages": [("user", TEXT)]})
        assert ended["messages"][-1].content == ANSWER

    asyncio.run(main())
