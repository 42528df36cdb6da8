"""Functions that find the tunables of a manifest.

Values that cannot be tuned are left out without a message: the search reports which kinds of change had no target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from harness.dialects.dialect import Tunable
from harness.source.document import DocumentPath

ToolName = Callable[[Any], str | None]
"""A function from a tool as written to its name; None if it has none."""


def mappings(value: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the mappings in a mapping or a list, each with its key or index."""
    if isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    else:
        items = enumerate(value if isinstance(value, list) else ())
    yield from ((key, item) for key, item in items if isinstance(item, dict))


def temperature(owner: str, within: Any, path: DocumentPath, default: float | None = None) -> list[Tunable]:
    """Return the temperature of the mapping `within` at `path`, as a list of one; empty if it is not a number."""
    if not isinstance(within, dict):
        return []
    value = within.get("temperature")
    if value is None:
        value = default
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return []
    return [Tunable("temperature", owner, (*path, "temperature"), value)]


def tool_lists(
    lists: Iterable[tuple[str, DocumentPath, Any]], name: ToolName, further: Iterable[Any] = ()
) -> list[Tunable]:
    """Return the tunables of tool lists. The pool of each is the tools of all lists, and `further` ones.

    Args:
        lists: the owner, path and value of each list. A list with a tool that has no name is left out.
        name: returns the name of a tool.
        further: tools that no list has.
    """
    found = [
        (owner, path, value)
        for owner, path, value in lists
        if isinstance(value, list) and value and all(name(tool) for tool in value)
    ]
    pool: dict[str, Any] = {}
    for tool in [*(tool for _, _, value in found for tool in value), *further]:
        if (known := name(tool)) is not None:
            pool.setdefault(known, tool)
    return [
        Tunable("tools", owner, path, tuple(dict.fromkeys(str(name(tool)) for tool in value)), pool)
        for owner, path, value in found
    ]


def plain_name(tool: Any) -> str | None:
    """Return the name of a tool that is written as its name."""
    return tool if isinstance(tool, str) and tool else None
