"""Mistakes in an `output_schema` are warnings, because it is only shown to models. spec: "Structured Output"."""

from __future__ import annotations

import pytest

from tests.dialects.loki.loader import Loader


def graph(schema: str) -> str:
    return f"start: a\nnodes:\n  a: {{type: llm, prompt: p, output_schema: {schema}, next: b}}\n  b: {{type: end}}\n"


# the schema; the code, a part of the message, the place, the hint
MISTAKES = {
    "a type that is none": (
        "{type: objct}",
        "bad-schema",
        "is not a JSON Schema: expected a type, or a list of different types, found text 'objct'",
        "objct",
        "did you mean 'object'?",
    ),
    "a type that is none, inside": (
        '{properties: {k: {type: [strng, "null"]}}}',
        "bad-schema",
        "found text 'strng'",
        "strng",
        "did you mean 'string'?",
    ),
    "a misspelt keyword": (
        "{type: object, requird: [k]}",
        "unknown-key",
        "'requird' is not a keyword of JSON Schema",
        "requird",
        "did you mean 'required'?",
    ),
    "a list that is none": (
        "{type: object, required: k}",
        "bad-schema",
        "is not a JSON Schema: 'k' is not of type 'array'",
        "k",
        "",
    ),
    "a property that is no schema": (
        "{properties: {k: string}}",
        "bad-schema",
        "'string' is not of type 'object'",
        "string",
        "",
    ),
    "properties without the word": (
        "{k: string, n: integer}",
        "bad-schema",
        "has no keyword of JSON Schema",
        "{k: string, n: integer}",
        "write `type: object`, with these under `properties`, each as a mapping with a `type`",
    ),
}


@pytest.mark.parametrize("which", MISTAKES)
def test_a_mistake_in_a_schema_is_located(which: str, loader: Loader) -> None:
    schema, code, message, place, hint = MISTAKES[which]
    (problem,) = loader.graph(graph(schema)).warnings
    assert (problem.code, problem.severity, problem.hint) == (code, "warning", hint)
    assert message in problem.message
    assert loader.place(problem) == place


@pytest.mark.parametrize(
    "schema",
    [
        "{}",
        "true",
        "{type: array, items: {type: string}}",
        r"{type: string, pattern: '\p{L}+'}",
        "{description: whatever it is}",
        "{properties: {type: {type: string, format: date, example: x, nullable: true, x-note: y}}}",
        '{type: object, properties: {n: {type: ["integer", "null"]}}, required: [n]}',
    ],
)
def test_a_valid_schema_is_no_warning(schema: str, loader: Loader) -> None:
    assert loader.graph(graph(schema)).warnings == ()
