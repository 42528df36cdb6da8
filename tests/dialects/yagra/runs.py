"""Running small workflows in a scripted world and virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.engine.conversation import Conversation, Ending
from harness.engine.standstill import Simulation
from harness.graph import observe
from harness.graph.trace import Event
from harness.time.clock import VirtualTimeLoop
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec
from tests.world.stubs import world_spec


@dataclass(frozen=True)
class RunResult:
    """The result of a run. `seconds` are virtual."""

    ending: Ending
    events: Sequence[Event]
    seconds: float

    @property
    def state(self) -> Mapping[str, Any]:
        assert self.ending.status == "completed", self.ending.error
        return self.ending.state

    @property
    def error(self) -> Exception:
        assert self.ending.error is not None, self.ending.state
        return self.ending.error

    @property
    def path(self) -> list[Any]:
        return observe.path(self.events)

    def calls(self, kind: str) -> list[dict[str, Any]]:
        return [call for call in observe.calls(self.events) if call["kind"] == kind]

    def requests(self, kind: str) -> list[dict[str, Any]]:
        return [
            event["request"] for event in self.events if event["event"] == "call" and event["kind"] == kind
        ]


def run_workflow(
    folder: Path,
    *nodes: Mapping[str, Any],
    world: WorldSpec | None = None,
    given: Any = None,
    python: str = "",
    prompts: Mapping[str, Any] | None = None,
    edges: Sequence[tuple[str, str]] = (),
    **more: Any,
) -> RunResult:
    """Run a workflow of these nodes once. It starts at the first; nodes without edges are in `end_at`."""
    write(folder / "own.py", python)
    write(folder / "prompts.yaml", json.dumps(prompts or {}))
    ids = [node["id"] for node in nodes]
    ends = [id_ for id_ in ids if id_ not in {source for source, _ in edges}]
    workflow = {
        "version": "1.0",
        "start_at": ids[0],
        "end_at": ends,
        "nodes": nodes,
        "edges": [{"source": source, "target": target} for source, target in edges],
        **more,
    }
    path = write(folder / "workflow.yaml", json.dumps(workflow))
    graph = load_graph(LoadRequest((path,)), "yagra")

    async def main() -> RunResult:
        simulation = Simulation(ScriptedWorld(world or WorldSpec(), folders=(folder,)))
        conversation = Conversation(graph, simulation)
        await conversation.prepare()
        ending = await conversation.send(given)
        return RunResult(ending, simulation.trace.events, simulation.now)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


def write(path: Path, text: str) -> Path:
    """Write a file unless it has this text already, since a graph is recompiled when its file changes."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def handlers(**entries: str | Sequence[Any]) -> WorldSpec:
    """Return a world with handlers by name: the name of a function in the workflow's `own.py`, or stubs."""
    return world_spec(
        handlers={name: f"own.{said}" if isinstance(said, str) else [*said] for name, said in entries.items()}
    )


def answers(times: Any = "any", latency_s: float = 0.0, **values: Any) -> Any:
    """Return a stub of a handler that returns these values."""
    return {"times": times, "latency": latency_s, "return": values}


def fails(text: str, times: Any = "any", kind: str = "RuntimeError", latency_s: float = 0.0) -> Any:
    """Return a stub that raises a built-in exception with this text."""
    return {
        "times": times,
        "latency": latency_s,
        "error": {"kind": "exception", "message": text, "type": kind},
    }
