"""A scenario whose only node calls a real tool, and what came of it."""

from collections.abc import Callable
from typing import Any

from harness.scenario.outcome import RunResult

MANIFEST = """\
version: "1.0"
start_at: fetch
end_at: [fetch]
state_schema: {found: {type: str}, more: {type: str}}
nodes:
  - {id: fetch, handler: fetch}
edges: []
"""

HEAD = """\
harness: 1
manifest: agent.yaml
scenarios:
- name: it
  input: {}
"""
HANDLERS = "  handlers: {fetch: real_tool.fetch}\n"

Run = Callable[..., RunResult]

CAUGHT = """\
try:
{}
except Exception as error:
    kinds = [f"{{kind.__module__.partition('.')[0]}}.{{kind.__name__}}" for kind in type(error).__mro__]
    return {{"found": " ".join(kinds), "more": str(error)}}"""


def function_of(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    head = "async def" if "await " in body or "async " in body else "def"
    return f"{head} fetch(state):\n{lines}"


def found(outcome: RunResult) -> str:
    """Return what the tool put into the state."""
    assert outcome.observed.error is None, outcome.observed.error
    text: str = outcome.observed.state["found"]
    return text


def http_calls(outcome: RunResult) -> list[dict[str, Any]]:
    return [call for call in outcome.observed.calls if call["kind"] == "http"]
