"""Validation of `response_format`: a JSON Schema, bare or inside `json_schema`.

spec: "`response_format` — Structured Output".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.dialects.leafmesh.path_patterns import EACH, matches
from harness.errors import Problem, Severity
from harness.graph.to_json import to_json
from harness.matchers.schema_flaws import (
    EXTERNAL,
    NO_TARGET,
    misspelt_keywords,
    schema_flaw,
    unresolved_references,
)
from harness.source.document import Document, DocumentPath
from harness.source.suggest import did_you_mean


def response_format_problems(document: Document) -> Iterator[Problem]:
    """Yield errors in the schemas of agents, and warnings of misspelt keywords."""
    for path, written in matches(document.value, "agents", EACH, "response_format"):
        if not isinstance(written, dict):
            continue
        at: DocumentPath = path
        schema: Any = written
        if written.get("type") == "json_schema":
            at = (*path, "json_schema", "schema")
            schema = next((value for _, value in matches(written, "json_schema", "schema")), None)
        if not isinstance(schema, dict):
            text = "response_format: of type json_schema, it needs a mapping 'schema' inside 'json_schema'"
            yield Problem("missing-key", text, document.span(at))
        else:
            yield from _check_schema(to_json(schema), document, at)  # replies are JSON, so dates become texts


def _check_schema(schema: Mapping[str, Any], document: Document, at: DocumentPath) -> Iterator[Problem]:
    if (flaw := schema_flaw(schema)) is not None:
        text = f"response_format is not a JSON Schema: {flaw.message}"
        yield Problem("bad-schema", text, document.span((*at, *flaw.path)), flaw.hint)
        return
    defined = [f"#/{key}/{name}" for key in ("$defs", "definitions") for name in schema.get(key, ())]
    for lost in unresolved_references(schema):
        text = f"response_format: the reference '{lost.reference}' {lost.why}"
        hint = did_you_mean(lost.reference, defined) if lost.why == NO_TARGET else ""
        # A provider may resolve an external schema; replies cannot be validated against it here.
        severity: Severity = "warning" if lost.why == EXTERNAL else "error"
        yield Problem("bad-schema", text, document.span((*at, *lost.path)), hint, severity)
    for keyword in misspelt_keywords(schema):
        text = f"response_format: '{keyword.keyword}' is not a keyword of JSON Schema, and is ignored"
        where, hint = document.key_span((*at, *keyword.path)), f"did you mean '{keyword.meant}'?"
        yield Problem("unknown-key", text, where, hint, "warning")
