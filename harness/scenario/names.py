"""Names in scenarios that the graph does not have: a `never` with a typo can never fail, its stub never answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from harness.errors import Problem, Span
from harness.graph.model import END, START, Graph
from harness.scenario.judge import JUDGE_NODE
from harness.scenario.model import Expectations, Scenario
from harness.source.display import clip
from harness.source.suggest import did_you_mean
from harness.world.spec import Stub, WorldSpec

_NAME_LENGTH: Final = 60

LEAVES: Final[Mapping[str, frozenset[str]]] = {
    "sherma": frozenset({"call_llm", "data_transform", "set_state", "interrupt", "load_skills"}),
    "agentspec": frozenset(
        {
            *("StartNode", "EndNode", "LlmNode", "ApiNode", "ToolNode", "BranchingNode"),
            *("InputMessageNode", "OutputMessageNode", "Agent", "tools", "OciAgent", "OpenAiAgent"),
        }
    ),
}
"""By dialect, the kinds of nodes that never run another graph. All others may."""


def unknown_names(scenario: Scenario, graph: Graph) -> Iterator[Problem]:
    """A warning for each node that an expectation names and the graph does not have.

    Expectations name nodes of the top graph (docs/scenario-format.md, "Paths, by dialect").
    """
    nodes = [node.name for node in graph.nodes]
    for expect in (scenario.expect, *(turn.expect for turn in scenario.turns if turn.expect is not None)):
        for key, name in _named(expect):
            if name not in (*nodes, START, END):
                yield _unknown(key, name, expect.spans.get(key.partition(".")[0]), graph)


def unknown_in_worlds(runs: Iterable[tuple[Scenario, Graph]]) -> Iterator[Problem]:
    """A warning for each node that the stubs and faults of a file name and no graph they are for has.

    A world that scenarios share (`defaults`) may name nodes of only some of their graphs. Stubs may
    name nodes of nested graphs, so a graph that may run others has no unknown names.
    """
    known: set[tuple[str, Span | None]] = set()
    unknown: dict[tuple[str, Span | None], Problem] = {}
    for scenario, graph in runs:
        nodes = {node.name for node in graph.nodes}
        may_nest = any(node.kind not in LEAVES.get(graph.dialect, ()) for node in graph.nodes)
        for key, name, span in _named_in_worlds(scenario):
            if may_nest or name in nodes:
                known.add((name, span))
            else:
                unknown.setdefault((name, span), _unknown(key, name, span, graph))
    yield from (problem for place, problem in unknown.items() if place not in known)


def _unknown(key: str, name: str, span: Span | None, graph: Graph) -> Problem:
    text = f"{key} names '{clip(name, _NAME_LENGTH)}', which is no node of '{clip(graph.name, _NAME_LENGTH)}'"
    hint = did_you_mean(name, [clip(node.name, _NAME_LENGTH) for node in graph.nodes])
    return Problem("unknown-name", text, span, hint, "warning")


def _named_in_worlds(scenario: Scenario) -> Iterator[tuple[str, str, Span | None]]:
    """The nodes that stubs and faults ask for; globs, and paths of nested nodes, are left out."""
    for world in (scenario.world, *(turn.world for turn in scenario.turns)):
        asked = [(key, name, stub.span) for key, stub in _stubs(world) for name in stub.nodes]
        asked += [("faults", fault.node, fault.span) for fault in world.faults if fault.node is not None]
        yield from (each for each in asked if each[1] != JUDGE_NODE and not set("*?[/") & set(each[1]))


def _stubs(world: WorldSpec) -> Iterator[tuple[str, Stub]]:
    for key in ("llm", "http", "human"):
        yield from ((key, stub) for stub in getattr(world, key))
    for key in ("tools", "handlers", "agents", "scripts", "retrieval"):
        yield from ((key, stub) for entry in getattr(world, key).values() for stub in entry.stubs)
    for server in world.mcp.values():
        yield from (("mcp", stub) for tool in server.tools for stub in tool.stubs)


def _named(expect: Expectations) -> Iterator[tuple[str, str]]:
    values = expect.values
    for key in ("never", "path", "path_includes"):
        yield from ((key, name) for name in _flat(values.get(key, ())))
    for key in ("visits", "max_visits"):
        yield from ((key, name) for name in _keys(values.get(key)))
    yield from (("latency.nodes", name) for name in _keys(_keys_of(values.get("latency"), "nodes")))
    for route in values.get("routes", ()):
        yield from (("routes", str(route[end])) for end in ("from", "to") if end in route)


def _flat(names: Iterable[Any]) -> Iterator[str]:
    for name in names:
        if isinstance(name, list):
            yield from _flat(name)
        elif isinstance(name, str):
            yield name


def _keys(value: Any) -> Iterable[str]:
    return value if isinstance(value, Mapping) else ()


def _keys_of(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None
