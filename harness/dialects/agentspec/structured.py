"""Reading the values of declared outputs from the reply of a model or the result of a tool.

spec: "Agent" (outputs are filled "directly, or through tools"), "Tools" (several outputs), LlmNode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from harness.dialects.agentspec.data_flow import UnfitValue
from harness.dialects.agentspec.properties import Property

Properties = Mapping[str, Property]

_DEFINITIONS: Final = "#/$defs/"


def is_single_string(properties: Properties) -> bool:
    """True if there is one output, a string, whose value is the text of a reply."""
    return [item.schema.get("type") for item in properties.values()] == ["string"]


def is_single_object(properties: Properties) -> bool:
    """True if there is one output, an object. Models tend to reply with that object itself."""
    return [item.schema.get("type") for item in properties.values()] == ["object"]


def schema_of(properties: Properties) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties. Those without a default are required.

    The `$defs` of a property move to the top, prefixed with its name, and references to them are rewritten.
    """
    definitions = {
        f"{title}.{name}": _relocate_references(definition, title)
        for title, item in properties.items()
        for name, definition in item.schema.get("$defs", {}).items()
    }
    required = [title for title, item in properties.items() if not item.has_default]
    return {
        "type": "object",
        "properties": {
            title: _relocate_references(
                {key: value for key, value in item.schema.items() if key != "$defs"}, title
            )
            for title, item in properties.items()
        },
        **({"required": required} if required else {}),
        **({"$defs": definitions} if definitions else {}),
    }


def _relocate_references(schema: Any, title: str) -> Any:
    """Return a part of a property's schema with references rewritten to the moved definitions."""
    if isinstance(schema, list):
        return [_relocate_references(item, title) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    moved = {key: _relocate_references(value, title) for key, value in schema.items()}
    reference = moved.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFINITIONS):
        moved["$ref"] = f"{_DEFINITIONS}{title}.{reference.removeprefix(_DEFINITIONS)}"
    return moved


def outputs_from_reply(text: str, properties: Properties, owner: str) -> Mapping[str, Any]:
    """Return the outputs in a model's reply: its text for a single string, else the values of a JSON object.

    The reply may also be the bare value of a single output: JSON that is not an object, or the object itself.

    Raises:
        UnfitValue: the reply is no such JSON.
    """
    if is_single_string(properties):
        return dict.fromkeys(properties, text)
    if not properties:
        return {}
    found = _parse_json(text)
    if isinstance(found, dict):
        is_value = found and is_single_object(properties) and not properties.keys() & found.keys()
    else:
        is_value = found is not _NO_JSON and len(properties) == 1
        if not is_value:
            wanted = ", ".join(properties)
            raise UnfitValue(f"{owner}: expected a JSON object with {wanted}, found the reply {text[:200]!r}")
    return dict.fromkeys(properties, found) if is_value else found


_NO_JSON: Final = object()


def _parse_json(text: str) -> Any:
    """Parse a text as JSON; `_NO_JSON` if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


def json_object(text: str) -> Mapping[str, Any] | None:
    """Parse a text as a JSON object; None if it is anything else."""
    found = _parse_json(text)
    return found if isinstance(found, dict) else None


def outputs_from_tool(returned: Any, properties: Properties, owner: str) -> Mapping[str, Any]:
    """Return the outputs in the result of a tool.

    spec: with several, "the expected return value of the tool is a dictionary".

    Raises:
        UnfitValue: there are several outputs, and the result is not a mapping.
    """
    if not properties:
        return {}
    if len(properties) > 1:
        if not isinstance(returned, Mapping):
            text = f"{owner}: expected a mapping with {', '.join(properties)}, found {returned!r}"
            raise UnfitValue(text[:400])
        return returned
    (title,) = properties
    if isinstance(returned, Mapping) and set(returned) == {title}:
        return returned
    return {title: returned}
