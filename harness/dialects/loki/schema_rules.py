"""Mistakes in `output_schema`: warnings, for Loki only shows it to models. spec: "Structured Output"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.dialects.loki import document as doc
from harness.errors import Problem
from harness.matchers.schema_flaws import accepts_everything, misspelt_keywords
from harness.source.display import clip
from harness.source.document import Document
from harness.source.models import describe
from harness.source.suggest import did_you_mean

_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_NOTES = frozenset(
    {"title", "description", "default", "examples", "format", "$schema", "$id", "$comment", "$defs"}
)
_OPENAPI = frozenset({"example", "nullable"})
"""Keywords that models know from elsewhere."""
_LONGEST = 200


def schema_warnings(graph: doc.GraphFile, document: Document) -> Iterator[Problem]:
    """What is wrong with the schemas, in the order of the nodes."""
    for id_, node in graph.nodes.items():
        schema = getattr(node, "output_schema", None)
        if not isinstance(schema, Mapping):
            continue
        at = ("nodes", id_, "output_schema")
        if schema and accepts_everything(schema) and _NOTES.isdisjoint(schema):
            text = f"the output_schema of node '{id_}' has no keyword of JSON Schema"
            hint = "write `type: object`, with these under `properties`, each as a mapping with a `type`"
            yield Problem("bad-schema", text, document.span(at), hint, "warning")
            continue
        for found in misspelt_keywords(schema):
            if found.keyword in _OPENAPI:
                continue
            text = f"node '{id_}': '{found.keyword}' is no keyword of JSON Schema"
            span, hint = document.key_span((*at, *found.path)), f"did you mean '{found.meant}'?"
            yield Problem("unknown-key", text, span, hint, "warning")
        yield from _invalid(id_, schema, document)


def _invalid(id_: str, schema: Mapping[str, Any], document: Document) -> Iterator[Problem]:
    from jsonschema import Draft202012Validator  # takes as long as the rest of loading an agent
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema))
    if error is None:
        return
    text, hint = f"the output_schema of node '{id_}' is no JSON Schema: {clip(error.message, _LONGEST)}", ""
    if error.validator in ("anyOf", "enum"):  # in the schema of schemas that is a `type`
        found = describe(error.instance)
        text = f"the output_schema of node '{id_}' expects a type of JSON Schema, and finds {found}"
        hint = did_you_mean(str(error.instance), _TYPES)
    span = document.span(("nodes", id_, "output_schema", *error.absolute_path))
    yield Problem("bad-schema", text, span, hint, "warning")
