"""The JSON Schema of scenario files, derived from `harness.scenario.document` and the value matchers."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Annotated, Any, Final

from jsonschema import Draft202012Validator
from pydantic import Field

from harness import DISTRIBUTION
from harness.matchers.value import MATCHERS, VALUE_REF
from harness.scenario.document import NO_DEFAULT, FileKeys, ScenarioKeys
from harness.source.models import editor_schema
from harness.world.field_types import EXPECTED_VALUE, LEFT_OUT

_CASE: Final = {"$ref": "#/$defs/CaseValue"}


class File(FileKeys):
    """A scenario file."""

    defaults: ScenarioKeys = Field(
        LEFT_OUT, description="Merged under every scenario: mappings key by key, the rest is replaced."
    )
    scenarios: Annotated[list[ScenarioKeys], Field(min_length=1)] = Field(description="The scenarios.")


def schema() -> dict[str, Any]:
    """Return a new copy of the schema."""
    derived = editor_schema(File, f"Scenario file of {DISTRIBUTION}")
    definitions = derived["$defs"]
    definitions["ExpectedValue"] = _expected_value()
    definitions["Defaults"] = _defaults(definitions["ScenarioKeys"])
    described = derived["properties"]["defaults"]["description"]
    derived["properties"]["defaults"] = {"$ref": "#/$defs/Defaults", "description": described}
    _refer_to_values(derived)
    definitions["CaseValue"] = {
        "type": "string",
        "pattern": r"^\$\{case\.[^{}]+\}$",
        "description": "Replaced by a value from `cases`.",
    }

    def refuses_text(part: dict[str, Any]) -> bool:
        return not Draft202012Validator({"$defs": definitions, **part}).is_valid("${case.x}")

    for definition in definitions.values():
        _allow_case_values(definition, refuses_text)
    return derived


def _defaults(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a scenario with no required keys, and without the keys that cannot have a default."""
    defaults = {**deepcopy(scenario), "description": "Default values for all scenarios."}
    del defaults["required"]
    for key in NO_DEFAULT:
        del defaults["properties"][key]
    return defaults


def _refer_to_values(node: Any) -> None:
    """Put the reference to `ExpectedValue` where a type is marked as one."""
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _refer_to_values(part)
    if isinstance(node, dict) and node.pop(EXPECTED_VALUE, False):
        node["$ref"] = VALUE_REF


def _allow_case_values(node: dict[str, Any], refuses_text: Callable[[dict[str, Any]], bool]) -> None:
    """Allow `${case.x}` below a node wherever text is not valid: it is replaced before validation."""

    def allowing(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        _allow_case_values(part, refuses_text)
        if not refuses_text(part):
            return part
        described = {"description": part.pop("description")} if "description" in part else {}
        return {**described, "anyOf": [part, _CASE]}

    for member in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        _allow_case_values(member, refuses_text)
    node |= {key: allowing(node[key]) for key in ("items", "additionalProperties") if key in node}
    if "properties" in node:
        node["properties"] = {key: allowing(part) for key, part in node["properties"].items()}


def _expected_value() -> dict[str, Any]:
    """Return the JSON Schema of an expected value, to which `VALUE_REF` refers."""
    value = {"$ref": VALUE_REF}
    names = {"enum": [*MATCHERS]}
    return {
        "description": "A value, in which `{$name: argument}` is a matcher.",
        "properties": {
            name: {"description": kind.meaning, **kind.argument} for name, kind in MATCHERS.items()
        },
        "additionalProperties": value,
        "items": value,
        # As in `malformed`: a matcher is the only key of its mapping, and an only key with `$` is a matcher.
        "if": {"maxProperties": 1},
        "then": {"propertyNames": {"anyOf": [names, {"not": {"pattern": r"^\$"}}]}},
        "else": {"propertyNames": {"not": names}},
    }
