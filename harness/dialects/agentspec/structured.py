"""The values of declared outputs in the reply of a model or the result of a tool.

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
    """True if the text of a reply is the one output: a string."""
    return [item.schema.get("type") for item in properties.values()] == ["string"]


def is_single_object(properties: Properties) -> bool:
    """True if there is one output, an object: models tend to reply with the object itself."""
    return [item.schema.get("type") for item in properties.values()] == ["object"]


def schema_of(properties: Properties) -> dict[str, Any]:
    """The JSON Schema of an object with these properties; those without a default are required.

    Definitions of a property move to the top, under its name, and the references to them follow.
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
    """A part of a property's schema, with references to the moved definitions."""
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
    """The outputs in a model's reply: its text, if the output is one string, else the values of a JSON object.

    One output may also be all of the reply: any JSON that is not an object, or the object that it asks for.

    Raises:
        UnfitValue: the reply has no such JSON.
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
    """The JSON that a text is, `_NO_JSON` if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


def json_object(text: str) -> Mapping[str, Any] | None:
    """The JSON object in a text; None if the text is anything else."""
    found = _parse_json(text)
    return found if isinstance(found, dict) else None


def outputs_from_tool(returned: Any, properties: Properties, owner: str) -> Mapping[str, Any]:
    """The outputs of a tool. spec: with several, "the expected return value of the tool is a dictionary".

    Raises:
        UnfitValue: there are several, and the result is not a mapping.
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
