"""The mutants that are made in compiled graphs: of nodes, of what they write, of the state, and those of apps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from harness.dialects.dialect import Dialect
from harness.dialects.request import Changes
from harness.errors import SourceError, Span
from harness.graph.faults import Fault
from harness.graph.model import Graph
from harness.graph.native import COMMAND, NativeGraph
from harness.mutation.dialects import FIELDS, NODES, WRITES_KEYS
from harness.mutation.mutant import Agent, Mutant
from harness.mutation.places import lines_of, places
from harness.scenario.app_process import graph_outside_runs
from harness.settings import Projects
from harness.source.document import read, shown_path

_DIFFS: Final = {
    "skip": "runs\n+ is skipped: its update is empty",
    "twice": "runs once\n+ runs twice",
    "drop": "writes {0}\n+ does not write {0}",
    "overwrite": "what is written is merged into the value\n+ what is written replaces the value",
    "append": "what is written replaces the value\n+ what is written is appended to the value",
    "reroute": "leads to {0}, or to {1}\n+ leads to {1} instead of {0}, and the reverse",
    "without": "has the tool {0}\n+ lacks it",
}


class _Found(NamedTuple):
    operator: str
    fault: Fault
    told: str
    names: tuple[str, ...] = ()


def graph_mutants(
    agent: Agent, dialect: Dialect, main: Path, projects: Projects, at: str
) -> Iterator[Mutant]:
    """Yield the mutants of an agent that its document cannot say. `at` names its manifest in ids."""
    try:
        graph = graph_outside_runs(agent.scenario, projects.of(agent.scenario.file))
    except SourceError:  # its runs say so
        return
    nodes, fields = _lines(main, dialect, NODES), _lines(main, dialect, FIELDS)
    spans = {node.name: node.span for node in graph.nodes}
    found = _of_app(agent) if isinstance(graph, NativeGraph) else _of_graph(agent, graph, fields)
    for operator, fault, told, names in found:
        is_field = fault.kind in ("overwrite", "append")
        line, last = (fields if is_field else nodes).get(fault.name, (1, 1))
        where = spans.get(fault.name) if not is_field else None
        where = where or Span(shown_path(str(main).partition(":")[0]), line, 1)
        keys = fault.key.split("\n")
        yield Mutant(
            id=f"{operator}:{at}:{'/'.join((fault.name, *names))}:{told}",
            operator=operator,
            change=told,
            where=where,
            lines=(line, last),
            diff=f"  {'field' if is_field else 'node'} {fault.name}\n- {_DIFFS[fault.kind].format(*keys)}\n",
            changes=Changes(patched=main, faults=(fault,)),
            users=agent.users,
            node=None if is_field else fault.name,
            route=(fault.name, *keys[:1]) if fault.kind == "reroute" else (),
            repeats=fault.kind == "twice" and fault.name not in agent.seen.acting,
        )


def _of_graph(agent: Agent, graph: Graph, fields: Mapping[str, object]) -> Iterator[_Found]:
    for node in graph.nodes:
        yield _Found("node", Fault("skip", node.name), "skipped")
        yield _Found("node", Fault("twice", node.name), "twice")
        for key in agent.seen.keys.get(node.name, ()) if graph.dialect not in WRITES_KEYS else ():
            yield _Found("state", Fault("drop", node.name, key), "dropped", (key,))
    for channel in graph.channels:
        if channel.name in fields and channel.reducer is not None:
            yield _Found("state", Fault("overwrite", channel.name), "overwritten")
        elif channel.name in fields and channel.name in agent.seen.lists:
            yield _Found("state", Fault("append", channel.name), "appended")


def _of_app(agent: Agent) -> Iterator[_Found]:
    """Yield the mutants of an app, whose graph its unchanged runs showed."""
    shape = agent.seen.shape
    for name in shape.get("nodes", ()):
        if agent.seen.dialect == "langgraph":
            yield _Found("node", Fault("skip", name), "skipped")
            yield from [_Found("node", Fault("twice", name), "twice")] if name in agent.seen.acting else []
    targets: dict[str, list[str]] = {}
    for branch in shape.get("branches", ()):
        edge, _, label = branch.rstrip("]").partition(" [")
        source, _, target = edge.partition(" -> ")
        if label != COMMAND:
            targets.setdefault(source, []).append(target)
    for source, ends in targets.items():
        for pair in pairwise(dict.fromkeys(ends)):
            yield _Found("route", Fault("reroute", source, "\n".join(pair)), "swapped", (pair[0],))
    for node, tool in agent.seen.tools:
        yield _Found("call", Fault("without", node, tool), "dropped", (tool,))


def _lines(main: Path, dialect: Dialect, patterns: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return the first and the last line of what a document declares, by name."""
    if dialect.name not in patterns:
        return {}
    document = read(main, yaml=dialect.yaml)
    found = [place for place in places(document, patterns[dialect.name]) if place.owner is not None]
    return {str(place.owner): lines_of(document, place) for place in reversed(found)}
