"""Finding the tunables of a manifest: what dialects have in common.

What cannot be tuned is left out here: the search says which kinds of change found nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from harness.dialects.tunable import Tunable
from harness.source.document import DocumentPath

Name = Callable[[Any], str | None]


def mappings(value: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """The mappings in a mapping or a list, each with its key or place."""
    if isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    else:
        items = enumerate(value if isinstance(value, list) else ())
    yield from ((key, item) for key, item in items if isinstance(item, dict))


def temperature(owner: str, within: Any, path: DocumentPath, default: float | None = None) -> list[Tunable]:
    """The temperature in the mapping at `path`; none where it is written as something else than a number."""
    if not isinstance(within, dict):
        return []
    value = within.get("temperature")
    if value is None:
        value = default
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return []
    return [Tunable("temperature", owner, (*path, "temperature"), value)]


def tool_lists(
    lists: Iterable[tuple[str, DocumentPath, Any]], name: Name, further: Iterable[Any] = ()
) -> list[Tunable]:
    """Lists of tools, each with its owner, path and value. Each may have the tools of all, and `further` ones.

    `name` is the name of a tool as it is written; a list with a tool that has none is left out.
    """
    found = [
        (owner, path, value)
        for owner, path, value in lists
        if isinstance(value, list) and value and all(name(each) for each in value)
    ]
    pool: dict[str, Any] = {}
    for each in [*(tool for _, _, value in found for tool in value), *further]:
        if (known := name(each)) is not None:
            pool.setdefault(known, each)
    return [
        Tunable("tools", owner, path, tuple(dict.fromkeys(str(name(each)) for each in value)), pool)
        for owner, path, value in found
    ]


def plain_name(tool: Any) -> str | None:
    """The name of a tool that is written as its name."""
    return tool if isinstance(tool, str) and tool else None
