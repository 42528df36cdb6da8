"""The mutants of an agent: of its documents, its prompts, and its compiled graph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from harness.dialects.load import files_read, load_prompts
from harness.dialects.registry import dialect_named, dialect_of
from harness.dialects.request import Changes, LoadRequest, TextReplacement
from harness.errors import SourceError, Span
from harness.evolution.mutator import PLACEHOLDER
from harness.mutation.compiled import graph_mutants
from harness.mutation.dialects import DIALECTS, EDGES, changes_of
from harness.mutation.mutant import Agent, Mutant
from harness.mutation.operators import Change
from harness.mutation.places import Place, lines_of
from harness.scenario.model import load_request
from harness.settings import Projects
from harness.source.document import Document, read, real_path, relative_path
from harness.source.edited_documents import DOCUMENTS, EditedDocuments
from harness.source.yaml import Version
from harness.variants.application import main_manifest

_SENTENCE: Final = re.compile(r"(?<=[.!?])[ \t]+(?=\S)|\n+")


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
        request = load_request(agent.scenario, projects.of(agent.scenario.file))
        for made in _of_agent(agent, request, projects, operators, root):
            known = found.get((made.id, made.where))
            users = made.users if known is None else tuple(sorted({*known.users, *made.users}))
            found[made.id, made.where] = replace(made, users=users)
    in_order = sorted(found.values(), key=lambda each: (each.where.file, each.where.line, each.id))
    taken: Counter[str] = Counter()
    for at, each in enumerate(in_order):  # two agents of a file may have nodes of one name
        taken[each.id] += 1
        in_order[at] = each if taken[each.id] == 1 else replace(each, id=f"{each.id}~{taken[each.id]}")
    return in_order


def _of_agent(
    agent: Agent, request: LoadRequest, projects: Projects, operators: Collection[str], root: Path
) -> Iterator[Mutant]:
    named = agent.scenario.dialect
    try:
        dialect = dialect_named(named) if named else dialect_of(request.path)
    except SourceError:  # its runs say so
        return
    main = main_manifest(request.path, named)
    if dialect.name in DIALECTS:
        for file in _documents(request, named, main, dialect.detect):
            for operator, place, change in changes_of(read(file, yaml=dialect.yaml), dialect.name):
                if operator in operators:
                    id_ = f"{operator}:{relative_path(file, root)}:{'/'.join(place.names())}:{change.name}"
                    yield _in_document(agent, id_, operator, place, change, dialect.yaml, file)
    if "prompt" in operators:
        yield from _in_prompts(agent, request, dialect.yaml, root)
    for made in graph_mutants(agent, dialect, main, projects, relative_path(main, root)):
        if made.operator in operators:
            yield made


def _documents(
    request: LoadRequest, named: str | None, main: Path, detect: Callable[[Document], bool]
) -> Iterator[Path]:
    """Yield the documents of an agent: its manifest, those beside it, and the manifests nested in it."""
    yield main
    others = [real_path(path) for path in (*request.paths[1:], *files_read(request, named).files)]
    for file in dict.fromkeys(others):
        if file != main and file.suffix in DOCUMENTS and file.is_file():
            try:
                if file in map(real_path, request.paths[1:]) or detect(read(file, yaml="1.2")):
                    yield file
            except SourceError:
                continue


def _in_document(
    agent: Agent, id_: str, operator: str, place: Place, change: Change, yaml: Version, file: Path
) -> Mutant:
    document, files = place.document, EditedDocuments(yaml)
    last = place.path[-1] if place.path else ""
    source, target = place.owner, place.value if isinstance(place.value, str) else ""
    if isinstance(place.value, dict):
        target = next((v for k in ("target", "agent") if isinstance(v := place.value.get(k), str)), "")
    patch = tuple(edit.as_patch() for edit in change.edits)
    is_written = all(edit.apply(files, real_path(file)) for edit in change.edits)
    return Mutant(
        id=id_,
        operator=operator,
        change=change.name,
        where=document.span(place.path) if isinstance(last, int) else document.key_span(place.path),
        lines=lines_of(document, place),
        diff=files.files.patch(Path()) if is_written else "".join(f"+ {each}\n" for each in patch),
        changes=Changes(patch=patch, patched=real_path(file)),
        users=agent.users,
        node=place.owner,
        names=change.names,
        route=tuple(filter(None, (source, target))) if operator == "route" and source else (),
        in_edges=not EDGES.isdisjoint(place.path[:-1]),
    )


def _in_prompts(agent: Agent, request: LoadRequest, yaml: Version, root: Path) -> Iterator[Mutant]:
    try:
        listed = load_prompts(request, agent.scenario.dialect)
    except SourceError:
        return
    for prompt in listed:
        span, file = prompt.where, real_path(Path(prompt.where.file))
        owner = prompt.id.partition(".")[0]
        is_of_node = file.suffix != ".py" and owner in agent.seen.keys and owner != prompt.id
        for name, new in _prompt_changes(prompt.text):
            files = EditedDocuments(yaml)
            files.write_text(span, prompt.text, new)
            yield Mutant(
                id=f"prompt:{relative_path(file, root)}:{prompt.id}:{name}",
                operator="prompt",
                change=name,
                where=span,
                lines=(span.line, span.line + prompt.text.rstrip().count("\n") + 1),
                diff=files.files.patch(Path()),
                changes=Changes(texts=(TextReplacement(file, span.line, span.column, new),)),
                users=agent.users,
                node=owner if is_of_node else None,
                in_prompt=True,
            )


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
