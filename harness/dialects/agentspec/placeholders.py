"""Placeholders: `{{name}}` in the texts of a component ("Specifying inputs through placeholders")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

PLACEHOLDER: Final = re.compile(r"{{\s*(\w+)\s*}}")


def names(value: Any) -> list[str]:
    """The names in a text, or in the texts of lists and mappings at any depth, keys included.

    Each once, in the order they come up.
    """
    return list(dict.fromkeys(_found(value)))


def render(value: Any, values: Mapping[str, Any]) -> Any:
    """The same text, list or mapping with the values in place of their names, as Python's `str` writes them.

    What a value brings in is not looked through again. A name without a value stays, as do other braces.
    """
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), value)
    if isinstance(value, Mapping):
        return {render(key, values): render(held, values) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [render(item, values) for item in value]
    return value


def _found(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        for key, held in value.items():
            yield from _found(key)
            yield from _found(held)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _found(item)
