"""The tunables of a configuration: the temperatures of LLM configurations, and the tool lists of agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.dialects.agentspec.tables import REFERENCE, TYPE
from harness.dialects.dialect import Tunable
from harness.dialects.kit.manifest import temperature, tool_lists
from harness.dialects.request import LoadRequest
from harness.source.document import DocumentPath

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
