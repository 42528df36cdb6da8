"""The JSON Schema for editors says what the loader says, as far as a schema can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.scenario.schema import schema
from harness.source.document import parse

VALIDATOR = Draft202012Validator(schema())


def is_valid(text: str) -> bool:
    return VALIDATOR.is_valid(parse(text, file="f", yaml="1.2").value)


def properties(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for definition in (node, *node["$defs"].values()):
        yield from definition.get("properties", {}).items()


def test_it_is_a_schema_of_the_newest_dialect() -> None:
    Draft202012Validator.check_schema(schema())
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_key_is_described() -> None:
    assert [key for key, value in properties(schema()) if not value.get("description")] == []


@pytest.mark.parametrize(
    "text",
    [
        "harness: 1\nmanifest: m\nscenarios: [{name: x}]",
        "harness: 1\nmanifest: [m]\ndefaults: {timeout: 3}\nscenarios: [{name: x, llm: {a: [b, {json: 1}]}}]",
        "harness: 1\nscenarios: [{name: x, manifest: m, tools: {a: real, b: {return: 1}, c: [{error: auth}]}}]",
        "harness: 1\nmanifest: m\nscenarios: [{name: x, turns: [{input: a}, {resume: {}}], expect: {path: [[b]]}}]",
    ],
)
def test_good_files_are_valid(text: str) -> None:
    assert is_valid(text)


@pytest.mark.parametrize(
    "text",
    [
        "manifest: m\nscenarios: [{name: x}]",
        "harness: 2\nmanifest: m\nscenarios: [{name: x}]",
        "harness: 1\nmanifest: m\nscenarios: [{}]",
        "harness: 1\nmanifest: m\nscenarios: [{name: x, timout: 1}]",
        "harness: 1\nmanifest: m\ndefaults: {name: x}\nscenarios: [{name: x}]",
        "harness: 1\nmanifest: m\nscenarios: [{name: x, llm: [{repaly: x}]}]",
        "harness: 1\nmanifest: m\nscenarios: [{name: x, expect: {status: complete}}]",
    ],
)
def test_bad_files_are_not(text: str) -> None:
    assert not is_valid(text)
