"""JSON Schemas (2020-12) of files, with which yaml-language-server completes and checks them in editors.

    # yaml-language-server: $schema=scenario.schema.json

They are derived from the pydantic models that validate the files. Rules that a schema cannot express (CEL, keys that
exclude each other, files that must exist) are checked when a file is loaded.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def editor_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """Return the JSON Schema of the files that a model validates."""
    derived = model.model_json_schema(by_alias=True)
    _clean(derived)
    return {"$schema": DIALECT, **derived, "title": title}


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
