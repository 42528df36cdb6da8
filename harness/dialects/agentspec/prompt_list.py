"""The prompts of a configuration, as data.

Ids are `<component>.system_prompt` and `<node>.prompt_template`, with the `name` of the component. Prompts of
components that nothing refers to are listed too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.dialects.agentspec.tables import REFERENCE, TYPE, mapped_entries, table_entries
from harness.dialects.dialect import Prompt, Tunable
from harness.dialects.kit.manifest import Problems, temperature, tool_lists
from harness.dialects.request import LoadRequest
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath
from harness.source.models import describe

_KEYS: Final = ("system_prompt", "prompt_template")


def prompts(request: LoadRequest) -> list[Prompt]:
    """Return the prompts in the order of the documents, each located at its text.

    Raises:
        ManifestError: with a problem for every prompt that is not text, or whose reference leads to no text.
    """
    documents = [request.read(path, yaml="1.1", named_at=request.named_at) for path in request.paths]
    listing = _Listing(documents, request.components)
    found = list(listing.prompts())
    listing.problems.raise_errors()
    return found


class _Listing:
    """A search for prompts in documents, which collects problems."""

    def __init__(self, documents: list[Document], components: Mapping[str, str]) -> None:
        self.problems = Problems()
        self._documents = documents
        self._tables: dict[str, Document] = {}
        self._seen: set[int] = set()
        for document in documents:
            for key, part in table_entries(document):
                self._tables.setdefault(key, part)
        self._tables |= mapped_entries(components, self._tables)

    def prompts(self) -> Iterator[Prompt]:
        """Yield the prompts in the order of the documents."""
        for document in self._documents:
            yield from self._below(document)

    def _below(self, part: Document) -> Iterator[Prompt]:
        value = part.value
        if not isinstance(value, dict | list) or id(value) in self._seen:
            return
        self._seen.add(id(value))  # an alias shares the object of its anchor
        component = value.get("name") if isinstance(value, dict) and TYPE in value else None
        for key in value if isinstance(value, dict) else range(len(value)):
            if isinstance(component, str) and key in _KEYS:
                yield from self._prompt(f"{component}.{key}", str(key), part.at((key,)))
            elif key != "metadata":
                yield from self._below(part.at((key,)))

    def _prompt(self, id_: str, kind: str, part: Document) -> Iterator[Prompt]:
        """Yield a prompt, located at its text. spec: "also values … can become referenced"."""
        followed: set[str] = set()
        while isinstance(part.value, dict) and isinstance(key := part.value.get(REFERENCE), str):
            if key in followed or key not in self._tables:
                code = "circular-reference" if key in followed else "unknown-reference"
                text = f"{id_}: the reference '{key}' leads to no text"
                hint = "" if key in followed else did_you_mean(key, self._tables)
                self.problems.refuse(code, text, part.span((REFERENCE,)), hint)
                return
            followed.add(key)
            part = self._tables[key]
        if isinstance(part.value, str):
            yield Prompt(id_, kind, part.value, part.span())
        elif part.value is not None:
            text = f"{id_}: expected text, found {describe(part.value)}"
            self.problems.refuse("wrong-type", text, part.span())


_PARAMETERS = "default_generation_parameters"


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Return the tunables of the components in the main document.

    An LLM configuration without `default_generation_parameters` has none.

    Raises:
        ManifestError: the file cannot be read.
    """
    document = request.read(request.path, yaml="1.1", named_at=request.named_at)
    components = list(_components(document.value, (), set()))
    found = [
        tunable
        for name, path, component in components
        for tunable in temperature(name, component.get(_PARAMETERS), (*path, _PARAMETERS))
    ]
    lists = ((name, (*path, "tools"), component.get("tools")) for name, path, component in components)
    return [*found, *tool_lists(lists, _name)]


def _components(
    value: Any, path: DocumentPath, seen: set[int]
) -> Iterator[tuple[str, DocumentPath, dict[str, Any]]]:
    if not isinstance(value, dict | list) or id(value) in seen:
        return
    seen.add(id(value))  # an alias shares the object of its anchor
    if isinstance(value, dict) and TYPE in value and isinstance(value.get("name"), str):
        yield value["name"], path, value
    for key in value if isinstance(value, dict) else range(len(value)):
        if key != "metadata":
            yield from _components(value[key], (*path, key), seen)


def _name(tool: Any) -> str | None:
    found = (tool.get("name") or tool.get(REFERENCE)) if isinstance(tool, dict) else None
    return found if isinstance(found, str) else None
