"""The JSON Schema (2020-12) of scenario files, with which yaml-language-server completes and validates in editors.

    # yaml-language-server: $schema=scenario.schema.json

Rules that a schema cannot express (CEL, arguments of matchers, keys that exclude each other) are checked when a
file is loaded.
"""

from __future__ import annotations

from typing import Any, Final

from harness import DISTRIBUTION
from harness.scenario.document import FORMAT_VERSION, NO_DEFAULT, File

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """Return a new copy of the schema, derived from `harness.scenario.document`."""
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
        "description": "Replaced by a value from `cases`.",
    }
    for name in definitions.keys() - {"CaseValue"}:
        _allow_case_values(definitions[name])
    return {"$schema": DIALECT, **derived, "title": f"Scenario file of {DISTRIBUTION}"}


def _defaults(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a scenario with no required keys, and without the keys that cannot have a default."""
    properties = {key: value for key, value in scenario["properties"].items() if key not in NO_DEFAULT}
    kept = {key: value for key, value in scenario.items() if key not in ("required", "properties")}
    return {
        **kept,
        "properties": properties,
        "description": "Default values for all scenarios.",
    }


def _clean(node: Any) -> None:
    """Remove artefacts of pydantic: titles and examples of keys, and null as the default of optional keys."""
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
    """Allow `${case.x}` where text is not valid: it is replaced before validation."""
    properties = definition.get("properties", {})
    for key, value in properties.items():
        if value.get("type") in ("integer", "number", "boolean", "array", "object"):
            described = {"description": value["description"]} if "description" in value else {}
            properties[key] = {**described, "anyOf": [value, {"$ref": "#/$defs/CaseValue"}]}
