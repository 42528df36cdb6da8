"""The JSON Schema (2020-12) of scenario files, for editors: yaml-language-server completes and checks with it.

    # yaml-language-server: $schema=scenario.schema.json

What a schema cannot say (CEL, matchers' arguments, which keys go together) is checked when a file is loaded.
"""

from __future__ import annotations

from typing import Any, Final

from harness import DISTRIBUTION
from harness.scenario.document import FORMAT_VERSION, NO_DEFAULT, File

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """A new copy of the schema, derived from `harness.scenario.document`."""
    derived = File.model_json_schema(by_alias=True)
    definitions = derived["$defs"]
    definitions["Defaults"] = _defaults(definitions["ScenarioKeys"])
    properties = derived["properties"]
    properties["defaults"] = {
        "$ref": "#/$defs/Defaults",
        "description": properties["defaults"]["description"],
    }
    properties["harness"] = {"const": FORMAT_VERSION, "description": properties["harness"]["description"]}
    _clean(derived)
    definitions["CaseValue"] = {
        "type": "string",
        "pattern": r"^\$\{case\.[^{}]+\}$",
        "description": "Filled from `cases`.",
    }
    for name in definitions.keys() - {"CaseValue"}:
        _allow_case_values(definitions[name])
    return {"$schema": DIALECT, **derived, "title": f"Scenario file of {DISTRIBUTION}"}


def _defaults(scenario: dict[str, Any]) -> dict[str, Any]:
    """A scenario without what only one can have, of which nothing must be there."""
    properties = {key: value for key, value in scenario["properties"].items() if key not in NO_DEFAULT}
    kept = {key: value for key, value in scenario.items() if key not in ("required", "properties")}
    return {
        **kept,
        "properties": properties,
        "description": "What every scenario says unless it says otherwise.",
    }


def _clean(node: Any) -> None:
    """Takes out what is there for Python's sake: titles and examples of keys, null as default of keys left out."""
    if isinstance(node, list):
        for item in node:
            _clean(item)
    elif isinstance(node, dict):
        if node.get("default", ...) is None:
            del node["default"]
        for key, value in node.items():
            if key == "properties":
                for entry in value.values():
                    entry.pop("title", None)
                    entry.pop("examples", None)
            if key not in ("default", "enum", "const"):
                _clean(value)


def _allow_case_values(definition: dict[str, Any]) -> None:
    """Lets `${case.x}` stand where no text may: it is replaced before it is checked."""
    properties = definition.get("properties", {})
    for key, value in properties.items():
        if value.get("type") in ("integer", "number", "boolean", "array", "object"):
            described = {"description": value["description"]} if "description" in value else {}
            properties[key] = {**described, "anyOf": [value, {"$ref": "#/$defs/CaseValue"}]}
