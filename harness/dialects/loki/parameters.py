"""Parameters of tools, and the JSON Schema of what a model may send. The readers of tool files make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, the JSON Schema of its values, what it is, and whether it must be given."""

    name: str
    type: Mapping[str, Any]
    about: str = ""
    required: bool = False


def schema(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """The JSON Schema of all the arguments of a tool."""
    listed = list(parameters)
    properties = {
        each.name: {**each.type, **({"description": each.about} if each.about else {})} for each in listed
    }
    needed = {each.name for each in listed if each.required}
    required = [name for name in properties if name in needed]
    return {"type": "object", "properties": properties, "required": required}


def one_of(values: Iterable[Any]) -> dict[str, Any]:
    """The JSON Schema of a choice."""
    listed = list(values)
    are_texts = all(isinstance(value, str) for value in listed)
    return {**({"type": "string"} if are_texts else {}), "enum": listed}
