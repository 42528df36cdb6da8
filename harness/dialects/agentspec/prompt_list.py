"""The prompts of a configuration, as data.

Ids are `<component>.system_prompt`, `<node>.prompt_template` and `<parameters>.additional_instructions`, with the
`name` of the component. Prompts of components that nothing refers to are listed too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.dialects.agentspec.dialect import REFERENCE, TYPE, mapped_entries, table_entries
from harness.dialects.dialect import Prompt, Tunable
from harness.dialects.kit.manifest import Problems, temperature, tool_lists
from harness.dialects.request import LoadRequest
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath
from harness.source.models import describe

_KEYS: Final = ("system_prompt", "prompt_template", "additional_instructions")


def prompts(request: LoadRequest) -> list[Prompt]:
    """Return the prompts in the order of the documents, each located at its text.

    Raises:
        ManifestError: with a problem for every prompt that is not text, or whose reference leads to no text.
    """
    documents = [request.read(path, yaml="1.1", named_at=request.named_at) for path in request.paths]
    tables: dict[str, Document] = {}
    for document in documents:
        for key, part in table_entries(document):
            tables.setdefault(key, part)
    tables |= mapped_entries(request.components, tables)
    problems, seen = Problems(), set[int]()
    found = [
        prompt
        for document in documents
        for owner, path, _ in _fields(document.value, (), seen)
        if path[-1] in _KEYS
        for prompt in _prompt(f"{owner}.{path[-1]}", str(path[-1]), document.at(path), tables, problems)
    ]
    problems.raise_errors()
    return found


def _prompt(
    id_: str, kind: str, part: Document, tables: Mapping[str, Document], problems: Problems
) -> Iterator[Prompt]:
    """Yield a prompt, located at its text. spec: "also values … can become referenced"."""
    followed: set[str] = set()
    while isinstance(part.value, dict) and isinstance(key := part.value.get(REFERENCE), str):
        if key in followed or key not in tables:
            code = "circular-reference" if key in followed else "unknown-reference"
            hint = "" if key in followed else did_you_mean(key, tables)
            text = f"{id_}: the reference '{key}' leads to no text"
            problems.refuse(code, text, part.span((REFERENCE,)), hint)
            return
        followed.add(key)
        part = tables[key]
    if isinstance(part.value, str):
        yield Prompt(id_, kind, part.value, part.span())
    elif part.value is not None:
        problems.refuse("wrong-type", f"{id_}: expected text, found {describe(part.value)}", part.span())


_PARAMETERS = "default_generation_parameters"


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Return the tunables of the components in the main document.

    An LLM configuration without `default_generation_parameters` has none.

    Raises:
        ManifestError: the file cannot be read.
    """
    document = request.read(request.path, yaml="1.1", named_at=request.named_at)
    fields = list(_fields(document.value, (), set()))
    found = [
        tunable
        for owner, path, value in fields
        if path[-1] == _PARAMETERS
        for tunable in temperature(owner, value, path)
    ]
    return [*found, *tool_lists((field for field in fields if field[1][-1] == "tools"), _name)]


def _fields(value: Any, path: DocumentPath, seen: set[int]) -> Iterator[tuple[str, DocumentPath, Any]]:
    """Yield the name of the component, the path and the value of each field of the components with a name."""
    if not isinstance(value, dict | list) or id(value) in seen:
        return
    seen.add(id(value))  # an alias shares the object of its anchor
    name = value.get("name") if isinstance(value, dict) and TYPE in value else None
    for key in value if isinstance(value, dict) else range(len(value)):
        if key != "metadata":
            if isinstance(name, str):
                yield name, (*path, key), value[key]
            yield from _fields(value[key], (*path, key), seen)


def _name(tool: Any) -> str | None:
    found = (tool.get("name") or tool.get(REFERENCE)) if isinstance(tool, dict) else None
    return found if isinstance(found, str) else None
