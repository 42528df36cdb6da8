"""Parameters of tools, as the readers of tool files find them, and the JSON Schema of a tool's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool. `type` is the JSON Schema of its values."""

    name: str
    type: Mapping[str, Any]
    description: str = ""
    required: bool = False


def object_schema(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments of a tool with these parameters."""
    listed = list(parameters)
    properties = {}
    for parameter in listed:
        description = {"description": parameter.description} if parameter.description else {}
        properties[parameter.name] = {**parameter.type, **description}
    needed = {parameter.name for parameter in listed if parameter.required}
    required = [name for name in properties if name in needed]
    return {"type": "object", "properties": properties, "required": required}


def enum_schema(values: Iterable[Any]) -> dict[str, Any]:
    """Return the JSON Schema of an enumeration."""
    listed = list(values)
    are_texts = all(isinstance(value, str) for value in listed)
    return {**({"type": "string"} if are_texts else {}), "enum": listed}
