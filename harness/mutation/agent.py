"""The mutants of an agent: of its documents, of its prompts, and of its compiled graph.

The graph has what a document does not say: nodes skipped or run twice, keys that nodes write, reducers; and all of
an app.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from harness.dialects.dialect import Dialect
from harness.dialects.kit.accesses import definitions
from harness.dialects.load import files_read, load_prompts
from harness.dialects.registry import dialect_named, dialect_of
from harness.dialects.request import Changes, LoadRequest, TextReplacement
from harness.errors import SourceError, Span
from harness.evolution.mutator import PLACEHOLDER
from harness.graph.faults import Fault
from harness.graph.model import Graph
from harness.graph.native import COMMAND, NativeGraph
from harness.mutation.dialects import DIALECTS, EDGES, FIELDS, NODES, WRITES_KEYS, changes_of
from harness.mutation.mutant import Agent, Mutant
from harness.mutation.operators import Change
from harness.mutation.places import Place, lines_of, places
from harness.scenario.app_process import graph_outside_runs
from harness.scenario.model import load_request
from harness.settings import Projects
from harness.source.document import read, real_path, relative_path, shown_path
from harness.source.edited_files import DOCUMENTS, EditedDocuments
from harness.variants.application import main_manifest

_SENTENCE: Final = re.compile(r"(?<=[.!?])[ \t]+(?=\S)|\n+")
_FAULTS: Final = {
    "skip": ("node", "skipped", "runs\n+ is skipped: its update is empty"),
    "twice": ("node", "twice", "runs once\n+ runs twice"),
    "drop": ("state", "dropped", "writes {0}\n+ does not write {0}"),
    "overwrite": ("state", "overwritten", "merges what is written\n+ is replaced by what is written"),
    "append": ("state", "appended", "is replaced by what is written\n+ has what is written appended"),
    "reroute": (
        "route",
        "swapped",
        "leads to {0}, or to {1}\n+ leads to {1} instead of {0}, and the reverse",
    ),
    "without": ("call", "dropped", "has the tool {0}\n+ lacks it"),
}
"""By the kind of a fault of a graph: the operator, its name in ids, and its diff."""
_OF_FIELDS: Final = ("overwrite", "append")


def mutants(
    agents: Iterable[Agent], projects: Projects, operators: Collection[str], root: Path
) -> list[Mutant]:
    """Return the mutants of agents, in the order of files and lines, each once. Their ids differ.

    Args:
        agents: the agents.
        projects: the settings of their scenarios.
        operators: the operators to use.
        root: the folder that the paths in ids are relative to.
    """
    found: dict[tuple[str, Span], Mutant] = {}
    for agent in agents:
        scenario = agent.scenario
        request = load_request(scenario, projects.of(scenario.file))
        try:
            dialect = dialect_named(scenario.dialect) if scenario.dialect else dialect_of(request.path)
        except SourceError:  # its runs say so
            continue
        for made in _Source(agent, request, dialect, operators, root).mutants(projects):
            known = found.get((made.id, made.where), made)
            users = tuple(sorted({*known.users, *agent.users}))
            found[made.id, made.where] = replace(made, users=users)
    in_order = sorted(found.values(), key=lambda each: (each.where.file, each.where.line, each.id))
    taken: Counter[str] = Counter()
    for at, each in enumerate(in_order):  # two agents of a file may have nodes of one name
        taken[each.id] += 1
        in_order[at] = each if taken[each.id] == 1 else replace(each, id=f"{each.id}~{taken[each.id]}")
    return in_order


@dataclass(frozen=True)
class _Source:
    """An agent with its files."""

    agent: Agent
    request: LoadRequest
    dialect: Dialect
    operators: Collection[str]
    root: Path

    def mutants(self, projects: Projects) -> Iterator[Mutant]:
        """Yield its mutants."""
        if self.dialect.name in DIALECTS:
            for file in self._documents():
                document = read(file, yaml=self.dialect.yaml)
                for operator, place, change in changes_of(document, self.dialect.name):
                    if operator in self.operators:
                        yield self._in_document(operator, place, change, real_path(file))
        if "prompt" in self.operators:
            yield from self._in_prompts()
        scenario = self.agent.scenario
        try:
            graph = graph_outside_runs(scenario, projects.of(scenario.file))
        except SourceError:  # its runs say so
            return
        nodes, fields = self._lines(NODES), self._lines(FIELDS)
        faults = self._of_app() if isinstance(graph, NativeGraph) else self._of_graph(graph, fields)
        spans = {node.name: node.span for node in graph.nodes} or self._functions()
        for fault in faults:
            if _FAULTS[fault.kind][0] in self.operators:
                lines = fields if fault.kind in _OF_FIELDS else nodes
                yield self._in_graph(fault, lines.get(fault.name), spans)

    def _functions(self) -> dict[str, Span | None]:
        """Return the places of the functions that are the nodes of an app, as its unchanged runs told them."""
        shape = self.agent.shape
        places = zip(shape.get("nodes", ()), shape.get("lines", {}).get("nodes", ()), strict=False)
        found = ((name, str(place).rpartition(":")) for name, place in places if place is not None)
        module = shown_path(str(self._main).partition(":")[0])
        return {name: Span(file or module, int(line), 1) for name, (file, _, line) in found}

    @cached_property
    def _main(self) -> Path:
        return main_manifest(self.request.path, self.agent.scenario.dialect)

    def _documents(self) -> Iterator[Path]:
        """Yield the documents: the manifest, those beside it, and the manifests nested in it."""
        yield self._main
        beside = [*map(real_path, self.request.paths[1:])]
        nested = files_read(self.request, self.agent.scenario.dialect).files
        for file in dict.fromkeys([*beside, *map(real_path, nested)]):
            if file != self._main and file.suffix in DOCUMENTS and file.is_file():
                try:
                    if file in beside or self.dialect.detect(read(file, yaml="1.2")):
                        yield file
                except SourceError:
                    continue

    def _in_document(self, operator: str, place: Place, change: Change, file: Path) -> Mutant:
        document, files = place.document, EditedDocuments(self.dialect.yaml)
        is_item = bool(place.path) and isinstance(place.path[-1], int)
        is_condition = place.path[-1:] == ("condition",)
        value = document.at(place.path[:-1]).value if is_condition else place.value
        if isinstance(value, dict):
            value = value.get("target") or value.get("agent")
        target = [value] if isinstance(value, str) else []
        patch = tuple(edit.as_patch() for edit in change.edits)
        is_written = all(edit.apply(files, file) for edit in change.edits)
        return Mutant(
            id=f"{operator}:{relative_path(file, self.root)}:{'/'.join(place.names())}:{change.name}",
            operator=operator,
            where=document.span(place.path) if is_item else document.key_span(place.path),
            lines=lines_of(document, place),
            diff=files.files.patch(Path()) if is_written else "".join(f"+ {each}\n" for each in patch),
            changes=Changes(patch=patch, patched=file),
            node=place.owner,
            names=change.names,
            route=(place.owner, *target) if operator == "route" and place.owner else (),
            in_edges=not EDGES.isdisjoint(place.path[:-1]),
        )

    def _in_prompts(self) -> Iterator[Mutant]:
        try:
            listed = load_prompts(self.request, self.agent.scenario.dialect)
        except SourceError:
            return
        for prompt in listed:
            span, file = prompt.where, real_path(Path(prompt.where.file))
            owner = prompt.id.partition(".")[0]
            is_of_node = file.suffix != ".py" and owner in self.agent.keys and owner != prompt.id
            for name, new in _prompt_changes(prompt.text):
                files = EditedDocuments(self.dialect.yaml)
                files.write_text(span, prompt.text, new)
                yield Mutant(
                    id=f"prompt:{relative_path(file, self.root)}:{prompt.id}:{name}",
                    operator="prompt",
                    where=span,
                    lines=(span.line, span.line + prompt.text.rstrip().count("\n") + 1),
                    diff=files.files.patch(Path()),
                    changes=Changes(texts=(TextReplacement(file, span.line, span.column, new),)),
                    node=owner if is_of_node else None,
                    in_prompt=True,
                )

    def _in_graph(self, fault: Fault, lines: tuple[int, int] | None, spans: dict[str, Span | None]) -> Mutant:
        is_field, keys = fault.kind in _OF_FIELDS, fault.key.split("\n")
        operator, name, diff = _FAULTS[fault.kind]
        path = "/".join(filter(None, (fault.name, keys[0])))
        where = None if is_field else spans.get(fault.name)
        if lines is None and where is not None and where.file.endswith(".py"):
            ends = [each.end_lineno or 1 for each in definitions(where.file).get(where.line, ())]
            lines = where.line, max(ends, default=where.line)
        lines = lines or (1, 1)
        return Mutant(
            id=f"{operator}:{relative_path(self._main, self.root)}:{path}:{name}",
            operator=operator,
            where=where or Span(shown_path(str(self._main).partition(":")[0]), lines[0], 1),
            lines=lines,
            diff=f"  {'field' if is_field else 'node'} {fault.name}\n- {diff.format(*keys)}\n",
            changes=Changes(patched=self._main, faults=(fault,)),
            node=None if is_field else fault.name,
            route=(fault.name, keys[0]) if fault.kind == "reroute" else (),
            repeats=fault.kind == "twice" and fault.name not in self.agent.acting,
        )

    def _of_graph(self, graph: Graph, fields: Collection[str]) -> Iterator[Fault]:
        seen = self.agent
        for node in graph.nodes:
            yield from (Fault("skip", node.name), Fault("twice", node.name))
            if graph.dialect not in WRITES_KEYS:
                yield from (Fault("drop", node.name, key) for key in seen.keys.get(node.name, ()))
        for channel in graph.channels:
            if channel.name in fields and (channel.reducer is not None or channel.name in seen.lists):
                yield Fault("overwrite" if channel.reducer else "append", channel.name)

    def _of_app(self) -> Iterator[Fault]:
        """Yield the faults of an app, whose graph its unchanged runs showed."""
        seen = self.agent
        for name in seen.shape.get("nodes", ()) if seen.dialect == "langgraph" else ():
            yield Fault("skip", name)
            yield from [Fault("twice", name)] if name in seen.acting else []
        targets: dict[str, dict[str, None]] = {}
        for branch in seen.shape.get("branches", ()):
            edge, _, label = branch.rstrip("]").partition(" [")
            source, _, target = edge.partition(" -> ")
            if label != COMMAND:
                targets.setdefault(source, {})[target] = None
        for source, ends in targets.items():
            yield from (Fault("reroute", source, "\n".join(pair)) for pair in pairwise(ends))
        yield from (Fault("without", node, tool) for node, tool in seen.tools)

    def _lines(self, patterns: dict[str, str]) -> dict[str, tuple[int, int]]:
        """Return the first and the last line of what the manifest declares, by name."""
        if self.dialect.name not in patterns:
            return {}
        document = read(self._main, yaml=self.dialect.yaml)
        found = [place for place in places(document, patterns[self.dialect.name]) if place.owner is not None]
        return {str(place.owner): lines_of(document, place) for place in reversed(found)}


def _prompt_changes(text: str) -> Iterator[tuple[str, str]]:
    """Yield the changes of a prompt, each with its new text."""
    cuts = [0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]
    parts = [(one, other) for one, other in pairwise(cuts) if text[one:other].strip()]
    for number, (start, end) in enumerate(parts if len(parts) > 1 else (), 1):
        yield f"sentence-{number}-dropped", text[:start] + text[end:]
    for found in PLACEHOLDER.finditer(text):
        yield f"{found[0].strip('${}% ')}-dropped", text[: found.start()] + text[found.end() :]
    if text.strip():
        yield "emptied", ""
