"""Warnings of mistakes in `output_schema`. They are not errors, because Loki only shows the schema to models.

spec: "Structured Output".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.dialects.loki import document as doc
from harness.errors import Problem
from harness.matchers.schema_flaws import KEYWORDS, misspelt_keywords, schema_flaw
from harness.source.document import Document


def schema_warnings(graph: doc.GraphFile, document: Document) -> Iterator[Problem]:
    """Yield the warnings in the order of the nodes."""
    for id_, node in graph.nodes.items():
        schema = getattr(node, "output_schema", None)
        if not isinstance(schema, Mapping):
            continue
        path = ("nodes", id_, "output_schema")
        if schema and KEYWORDS.isdisjoint(schema):
            text = f"the output_schema of node '{id_}' has no keyword of JSON Schema"
            hint = "write `type: object`, with these under `properties`, each as a mapping with a `type`"
            yield Problem("bad-schema", text, document.span(path), hint, "warning")
            continue
        for found in misspelt_keywords(schema):
            text = f"node '{id_}': '{found.keyword}' is not a keyword of JSON Schema"
            span, hint = document.key_span((*path, *found.path)), f"did you mean '{found.meant}'?"
            yield Problem("unknown-key", text, span, hint, "warning")
        if (flaw := schema_flaw(schema, patterns=False)) is not None:
            text = f"the output_schema of node '{id_}' is not a JSON Schema: {flaw.message}"
            yield Problem("bad-schema", text, document.span((*path, *flaw.path)), flaw.hint, "warning")
