"""An agent that scenarios run, and a mutant of it: one fault, as in-memory changes, with its place and diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.dialects.request import Changes
from harness.errors import SourceError, Span
from harness.scenario.model import Scenario
from harness.source.document import Document, DocumentPath, parse
from harness.source.editing import remove_value, replace_text, replace_value
from harness.source.yaml import Version


@dataclass
class Seen:
    """The facts that the unchanged runs of an agent showed.

    Attributes:
        keys: the keys that each node wrote.
        lists: the fields that hold lists.
        shape: the graph, as in results.
        dialect: the dialect.
        tools: the tools that ran, with the node that each ran in.
        acting: the nodes that called or asked something.
    """

    keys: dict[str, dict[str, None]] = field(default_factory=dict)
    lists: dict[str, None] = field(default_factory=dict)
    shape: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""
    tools: dict[tuple[str, str], None] = field(default_factory=dict)
    acting: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Agent:
    """An agent that scenarios run.

    Attributes:
        scenario: one of them.
        users: the numbers of all of them.
        seen: what their runs showed.
    """

    scenario: Scenario
    users: tuple[int, ...]
    seen: Seen = field(default_factory=Seen)


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Attributes:
        id: the operator, the manifest, and the path of the change by names.
        operator: the name of its operator.
        change: what it does, in a word.
        where: the location of the change.
        lines: the first and the last line of the part that it is in, in the file of `where`.
        diff: the change as a diff.
        changes: the change itself.
        users: the numbers of the scenarios whose agent has it.
        node: the node that must run for it to matter; None if it may matter in any run.
        names: the names that it takes away: a scenario that uses one notices.
        route: both ends of the edge that it is about, or its source alone; empty for none.
        in_prompt: it changes what a model is told.
    """

    id: str
    operator: str
    change: str
    where: Span
    lines: tuple[int, int]
    diff: str
    changes: Changes
    users: tuple[int, ...]
    node: str | None = None
    names: frozenset[str] = frozenset()
    route: tuple[str, ...] = ()
    in_prompt: bool = False

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.where.file}:{self.where.line}"


class Texts:
    """The text of a document, with changes, for diffs."""

    def __init__(self, document: Document, yaml: Version) -> None:
        suffix = Path(document.file).suffix.lower()
        self.document = document
        self._parse = partial(parse, file=document.file, yaml=yaml, json=suffix == ".json")

    def diff_of_patch(self, operations: Sequence[Mapping[str, Any]]) -> str:
        """Return the diff of a JSON Patch."""
        text = self.document.text
        for operation in operations:
            try:
                made = self._applied(self._parse(text), operation)
            except (SourceError, LookupError):
                made = None
            if made is None:
                return "".join(f"{line}\n" for line in _told(operations))
            text = made
        return unified(self.document.text, text, self.document.file)

    def diff_of_text(self, where: Span, new: str) -> str:
        """Return the diff of another text at a location."""
        made = replace_text(self.document, where.line, where.column, new, self._parse)
        return "" if made is None else unified(self.document.text, made, self.document.file)

    def _applied(self, document: Document, operation: Mapping[str, Any]) -> str | None:
        path = _path(document.value, operation["path"])
        if operation["op"] == "remove":
            return remove_value(document, path, self._parse)
        if operation["op"] == "move":
            return self._renamed(document, _path(document.value, operation["from"]), str(path[-1]))
        return replace_value(document, path, operation["value"], self._parse)

    def _renamed(self, document: Document, path: DocumentPath, new: str) -> str | None:
        start = document.key_start(path)
        at = document.text.find(str(path[-1]), start)
        return document.text[:at] + new + document.text[at + len(str(path[-1])) :]


def unified(before: str, after: str, file: str) -> str:
    """Return a unified diff, as git writes it."""
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, f"a/{file}", f"b/{file}")
    )


def _told(operations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for operation in operations:
        yield f"- {operation.get('from', operation['path'])}"
        yield from [f"+ {operation['path']}: {operation['value']!r}"] if "value" in operation else ()


def _path(value: Any, pointer: str) -> DocumentPath:
    path: list[str | int] = []
    for written in pointer.split("/")[1:]:
        step = written.replace("~1", "/").replace("~0", "~")
        path.append(int(step) if isinstance(value, list) else step)
        value = (
            value[int(step)]
            if isinstance(value, list)
            else value.get(step)
            if isinstance(value, dict)
            else None
        )
    return tuple(path)
