"""Coverage of docs/scenario-format.md: a scenario that passes, or a named test, uses every row.

The rows are the keys of the format's models, the kinds of errors, and the value matchers. The document's tables are
compared with them first. A scenario covers the keys that are written in it.
"""

import re
from collections.abc import Iterator
from functools import cache
from inspect import get_annotations
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from harness.errors import SourceError
from harness.matchers.value import MATCHERS
from harness.scenario import document, document_expect, load, schema
from harness.source.document import read
from harness.world import stub_models
from harness.world.failures import ErrorKind

ROOT = Path(__file__).parents[2]
FORMAT = (ROOT / "docs/scenario-format.md").read_text(encoding="utf-8")
OTHER_TESTS = (Path(__file__).parent / "test_rows_without_a_dialect.py").read_text(encoding="utf-8")

# Rows that no scenario can use, and the test that covers each.
BY_TEST = {
    "WorldSpec.http": "test_http_stubs_answer_by_method_url_and_arguments",
    "WorldSpec.handlers": "test_a_handler_is_answered_by_its_entry",
    "WorldSpec.scripts": "test_a_script_runs_for_real_unless_it_is_stubbed",
    "WorldSpec.retrieval": "test_a_retrieval_is_answered_by_the_entry_of_its_node",
    "HTTPStub.method": "test_http_stubs_answer_by_method_url_and_arguments",
    "HTTPStub.url": "test_http_stubs_answer_by_method_url_and_arguments",
    "HTTPStub.query": "test_http_stubs_answer_by_method_url_and_arguments",
    "HTTPStub.json": "test_http_stubs_answer_by_method_url_and_arguments",
    "HTTPStub.status": "test_http_stubs_answer_by_method_url_and_arguments",
    "HTTPStub.text": "test_http_stubs_answer_by_method_url_and_arguments",
    "HTTPStub.headers": "test_http_stubs_answer_by_method_url_and_arguments",
    "_Named.http": "test_calls_of_every_kind_are_found_by_name",
    "_Named.script": "test_calls_of_every_kind_are_found_by_name",
    "_Named.retrieval": "test_calls_of_every_kind_are_found_by_name",
    "ScenarioKeys.test_scenario": "test_a_test_scenario_must_exist_in_the_manifest",
    "ScenarioKeys.cassette": "test_the_cassette_key_is_read_but_answers_no_call",
    "UsageBounds.cost": "test_a_bound_on_the_cost_is_compared_with_the_cost_of_tokens",
    "Expect.unused": "test_unused_can_only_be_true",
}


def models(model: type[BaseModel], seen: dict[str, type[BaseModel]]) -> dict[str, type[BaseModel]]:
    """Collect a model and the models that its fields refer to, by name."""
    if model.__name__ not in seen:
        seen[model.__name__] = model
        for field in model.model_fields.values():
            for inner in models_in(field.annotation):
                models(inner, seen)
    return seen


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def row(model: type[BaseModel], name: str) -> str:
    """Return `Model.key`, with the model that declares the key."""
    owner = next(base for base in reversed(model.__mro__) if name in get_annotations(base))
    return f"{owner.__name__}.{model.model_fields[name].alias or name}"


KEYS = {
    row(model, name)
    for model in models(schema.File, {}).values()
    for name in model.model_fields
    if not (model is schema.File and name in ("defaults", "scenarios"))
} | {"File.defaults"}
KINDS = {f"error {kind}" for kind in get_args(ErrorKind)}
ROWS = KEYS | KINDS | set(MATCHERS)


# ------------------------------------------------------------------ the document


def cells(section: str) -> Iterator[list[str]]:
    """Yield the cells of each table row under a heading."""
    body = re.split(r"^#+ ", FORMAT.partition(f"# {section}\n")[2], maxsplit=1, flags=re.M)[0]
    for line in body.splitlines():
        if line.startswith("|") and "---" not in line:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def words(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def keys_of(*parts: type[BaseModel]) -> set[str]:
    return {field.alias or name for model in parts for name, field in model.model_fields.items()}


@pytest.mark.parametrize(
    ("section", "known"),
    [
        ("A scenario", keys_of(document.ScenarioKeys)),
        ("The world", keys_of(stub_models.LLMStub)),
        ("`llm`", keys_of(stub_models.LLMStub)),
        ("Expectations", keys_of(document_expect.Expect)),
    ],
)
def test_the_tables_name_keys_that_exist(section: str, known: set[str]) -> None:
    named = [word for first, *_ in cells(section) for word in words(first)]
    kinds = set(get_args(ErrorKind)) if section == "The world" else set()
    assert named
    assert set(named) - kinds - known == set()


@pytest.mark.parametrize(
    ("section", "model"), [("A scenario", document.ScenarioKeys), ("Expectations", document_expect.Expect)]
)
def test_the_tables_name_every_key(section: str, model: type[BaseModel]) -> None:
    named = set(re.findall(r"`(\w+)\b", "\n".join(" ".join(line) for line in cells(section))))
    in_text = {"weights"}  # documented above the table
    assert keys_of(model) - named - in_text == set()


def test_the_table_of_errors_is_complete() -> None:
    rows = [line for line in cells("The world") if len(line) == 4]
    assert {word for line in rows for at in (0, 2) for word in words(line[at])} == set(get_args(ErrorKind))


def test_the_list_of_matchers_is_complete() -> None:
    body = FORMAT.partition("### Value matchers")[2].partition("\n## ")[0]
    assert set(re.findall(r"\$[a-z]\w*", body)) == set(MATCHERS)


# ------------------------------------------------------------------ coverage


@cache
def covered_rows() -> frozenset[str]:
    found: set[str] = set()
    for folder in ("scenarios", "tests"):
        for path in sorted((ROOT / folder).rglob("*.scenario.yaml")):
            found.update(rows_of(path))
    return frozenset(found)


def rows_of(path: Path) -> Iterator[str]:
    """Yield the rows that a scenario file uses; none if it is invalid."""
    try:
        data = read(path, yaml="1.2", error=SourceError).value
        head = load.Head.model_validate(data)
        defaults = data.get("defaults", {})
        scenarios = [document.ScenarioKeys.model_validate({**defaults, **one}) for one in data["scenarios"]]
    except (SourceError, ValidationError):
        return
    yield from (row(load.Head, name) for name in head.model_fields_set - {"defaults", "scenarios"})
    if defaults:
        yield "File.defaults"
    for scenario in scenarios:
        yield from used(scenario)
    yield from (key for key in all_keys(data) if key in MATCHERS)


KEPT: dict[str, TypeAdapter[Any]] = {
    "tool_calls": TypeAdapter(list[stub_models.ReplyToolCall]),
    "usage": TypeAdapter(stub_models.Usage),
}
"""The models of values that are checked and kept as they are written."""


def used(value: Any) -> Iterator[str]:
    """Yield the rows that are set in a model and in the models inside it."""
    if isinstance(value, BaseModel):
        for name in value.model_fields_set & set(type(value).model_fields):
            inner = getattr(value, name)
            yield row(type(value), name)
            if name in ("error", "kind") and isinstance(inner, str):
                yield f"error {inner}"
            kept = KEPT.get(name) if isinstance(value, stub_models.LLMStub) else None
            yield from used(kept.validate_python(inner) if kept else inner)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from used(item)


def all_keys(value: Any) -> Iterator[str]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str):
            yield key
        if isinstance(item, dict | list):
            yield from all_keys(item)


@pytest.mark.parametrize("name", sorted(ROWS - set(BY_TEST)))
def test_a_scenario_uses_the_row(name: str) -> None:
    assert name in covered_rows()


@pytest.mark.parametrize("name", sorted(BY_TEST))
def test_a_test_covers_the_row(name: str) -> None:
    assert name in ROWS
    assert f"\ndef {BY_TEST[name]}(" in OTHER_TESTS
