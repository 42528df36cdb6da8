"""`harness schema --kind …`: the schemas for editors say what the loaders say, as far as a schema can."""

import json
import re
import tomllib
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from harness.cli.schema import schema_text
from harness.errors import FormatError
from harness.gate import policy
from harness.matchers.value import MATCHERS, malformed
from harness.scenario.load import load_file
from harness.scenario.schema import File
from harness.settings import Projects
from harness.source.document import parse, read
from harness.variants.document import VariantsFile, read_variants
from harness.world.field_types import Strict, fields_of
from tests.cli.fixtures import Invoke

ROOT = Path(__file__).parents[2]
KINDS = ["scenario", "variants", "gate"]
SCENARIO = "harness: 1\nmanifest: m.yaml\nscenarios: [{name: x, %s}]\n"


@cache
def schema(kind: str) -> dict[str, Any]:
    found = json.loads(schema_text(kind))
    assert isinstance(found, dict)
    return found


def is_valid(kind: str, value: Any) -> bool:
    return Draft202012Validator(schema(kind)).is_valid(value)


def yaml(text: str) -> Any:
    return parse(text, file="f", yaml="1.2").value


def load_scenario(file: Path) -> object:
    return load_file(file, Projects().of(file))


def load_policy(file: Path) -> object:
    return policy.read_policy(file, file.parent)


LOADERS: dict[str, Callable[[Path], object]] = {
    "scenario": load_scenario,
    "variants": read_variants,
    "gate": load_policy,
}


# --- files that are right


def files_of(pattern: str, first_key: str) -> list[Path]:
    files = (file for folder in ("scenarios", "tests") for file in sorted((ROOT / folder).rglob(pattern)))
    return [file for file in files if f"\n{first_key}:" in file.read_text(encoding="utf-8")]


SCENARIO_FILES = files_of("*.scenario.y*ml", "scenarios")
VARIANTS_FILES = files_of("*.yaml", "variants")


@pytest.mark.parametrize("file", SCENARIO_FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_scenario_files_of_this_repository_are_valid(file: Path) -> None:
    assert is_valid("scenario", read(file, yaml="1.2").value)


@pytest.mark.parametrize("file", VARIANTS_FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_variants_files_of_this_repository_are_valid(file: Path) -> None:
    assert is_valid("variants", read(file, yaml="1.2").value)


def test_there_are_such_files() -> None:
    assert len(SCENARIO_FILES) > 100
    assert VARIANTS_FILES


def files_in_documents() -> Iterator[tuple[str, str, Any]]:
    """Yield the whole files that the documents show: the document, the kind of the file, and its content."""
    for document_file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = document_file.read_text(encoding="utf-8")
        for language, block in re.findall(
            r"^```(yaml|toml)(?: title=[^\n]*)?\n(.*?)^```$", text, re.M | re.S
        ):
            if language == "toml":
                value = tomllib.loads(block).get("tool", {}).get("harness", {})
                kinds = {"gate": {"gate": value["gate"]}} if "gate" in value else {}
            else:
                value = yaml(block) if re.search("^(harness|gate):", block, re.M) else {}
                kinds = {"scenario": value} if "scenarios" in value else {}
                kinds |= {kind: value for kind in ("variants", "gate") if kind in value}
            yield from ((document_file.name, kind, content) for kind, content in kinds.items())


IN_DOCUMENTS = [*files_in_documents()]


@pytest.mark.parametrize(("name", "kind", "content"), IN_DOCUMENTS, ids=lambda part: str(part)[:12])
def test_the_files_in_documents_are_valid(name: str, kind: str, content: Any) -> None:
    assert is_valid(kind, content), name


def test_documents_show_files_of_each_kind() -> None:
    assert {kind for _, kind, _ in IN_DOCUMENTS} == set(KINDS)


RIGHT = {
    "scenario": [
        SCENARIO % "seed: 1",
        SCENARIO % "tools: {a: real, b: {return: 1}, c: [{error: auth}]}",
        SCENARIO % "turns: [{input: a}, {resume: {}}], expect: {path: [[b]], output: {$len: {$lte: 3}}}",
        "harness: 1\nmanifest: [m]\ndefaults: {timeout: 3}\nscenarios: [{name: x, llm: {a: [b, {json: 1}]}}]",
    ],
    "variants": [
        "harness: 1\nvariants: [{name: a, prompts: {p: x, q: {file: q.txt}}, models: {x: y}, env: {N: 3, T: true}}]",
        "harness: 1\nvariants: [{name: a, params: {stop: [x]}, edit: [{op: move, from: /a, path: /b}], only: ['*']}]",
        "harness: 1\nvariants: [{name: a, manifest: m.yaml}, {name: b}]\nmatrix: {one: [a, b], two: [b]}",
    ],
    "gate": [
        "gate: {min_pass_rate: 0.9, max_tokens: 1000, min_coverage: {nodes: 1}, no_drift: true, baseline: b.json}",
        "gate: {proven_no_worse: {cost: 0.1}, confidence: 0.9, by: [{tag: slow, max_p95_latency: 3}]}",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in RIGHT.items() for text in texts])
def test_what_the_loader_reads_is_valid(kind: str, text: str, tmp_path: Path) -> None:
    for name in ("q.txt", "m.yaml"):
        (tmp_path / name).touch()
    file = tmp_path / "file.yaml"
    file.write_text(text, encoding="utf-8")
    LOADERS[kind](file)
    assert is_valid(kind, yaml(text))


# --- files that are wrong

WRONG = {
    "scenario": [
        "manifest: m\nscenarios: [{name: x}]",
        "harness: 2\nmanifest: m\nscenarios: [{name: x}]",
        "harness: 1\nmanifest: m\nscenarios: [{}]",
        "harness: 1\nmanifest: m\ndefaults: {name: x}\nscenarios: [{name: x}]",
        SCENARIO % "llm: [{repaly: x}]",
        SCENARIO % "expct: {output: a}",
        SCENARIO % "timeout: soon",
        SCENARIO % "expect: {status: done}",
        SCENARIO % "expect: {output: {$contians: a}}",
        SCENARIO % "expect: {output: {$contains: a, $regex: b}}",
        SCENARIO % "expect: {output: {$len: many}}",
        SCENARIO % "expect: {state: {messages: [{content: {$regx: a}}]}}",
        SCENARIO % "expect: {state: {count: {$gt: [1]}}}",
        SCENARIO % "expect: {output: {$all: {$contains: a}}}",
        SCENARIO % "expect: {output: {$not: {$contains: a, $len: 3}}}",
        SCENARIO % "expect: {output: {$approx: {value: 1, ref: 2}}}",
        SCENARIO % "expect: {output: {$type: text}}",
        SCENARIO % "expect: {calls: [{tool: t, args: {city: {$icontain: rome}}}]}",
        SCENARIO % "expect: {calls: [{tool: t, args: [rome]}]}",
        SCENARIO % "expect: {visits: {a: {$gtee: 2}}}",
        SCENARIO % "expect: {warnings: [{$conatins: a}]}",
        SCENARIO % "expect: {error: {message: {$conatins: a}}}",
        SCENARIO % "llm: [{args: {a: {$regx: b}}, reply: c}]",
        SCENARIO % "turns: [{input: a, expect: {output: {$regx: b}}}]",
        "harness: 1\nmanifest: m.yaml\ndefaults: {expect: {output: {$regx: b}}}\nscenarios: [{name: x}]",
    ],
    "variants": [
        "variants: [{name: a}]",
        "harness: 2\nvariants: [{name: a}]",
        "harness: 1\nvariants: []",
        "harness: 1\nvariants: [{prompts: {a: b}}]",
        "harness: 1\nvariants: [{name: a, prompt: {a: b}}]",
        "harness: 1\nvariants: [{name: a, prompts: {a: 3}}]",
        "harness: 1\nvariants: [{name: a, prompts: {a: {path: b}}}]",
        "harness: 1\nvariants: [{name: a, models: [b]}]",
        "harness: 1\nvariants: [{name: a, env: {A: [b]}}]",
        "harness: 1\nvariants: [{name: a, edit: [{op: delete, path: /a}]}]",
        "harness: 1\nvariants: [{name: a, edit: [{op: remove, path: a}]}]",
        "harness: 1\nvariants: [{name: a}]\nmatrix: {one: a}",
    ],
    "gate": [
        "min_pass_rate: 1",
        "gate: {min_pas_rate: 1}",
        "gate: {min_pass_rate: 95}",
        "gate: {min_pass_rate: 95%}",
        "gate: {max_errors: 1.5}",
        "gate: {max_cost: -1}",
        "gate: {no_new_failures: 1}",
        "gate: {confidence: 95}",
        "gate: {min_coverage: {node: 1}}",
        "gate: {min_coverage: {}}",
        "gate: {by: [{min_fitness: 1}]}",
        "gate: {by: [{tag: a}]}",
        "gate: {by: [{tag: a, suite: b, min_fitness: 1}]}",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in WRONG.items() for text in texts])
def test_a_mistake_that_the_loader_refuses_is_invalid(kind: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError):
        LOADERS[kind](file)
    assert not is_valid(kind, yaml(text))


# --- matchers

ARGUMENTS: list[Any] = [
    None,
    True,
    False,
    -1,
    3,
    0.5,
    "value",
    "string",
    [],
    ["a", {"$regex": "b"}],
    [{"$regx": "b"}],
    {},
    {"a": 1},
    {"value": 1},
    {"value": 1, "abs": -1},
    {"$contains": "a"},
    {"$contians": "a"},
    {"$contains": "a", "$len": 3},
    {"a": {"$gt": []}},
]


def is_language(name: str, argument: Any) -> bool:
    """True if the argument is written in a language that a JSON Schema does not check."""
    return (name, type(argument)) == ("$schema", dict) or (name, argument) == ("$cel", "string")


@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, each) for name in MATCHERS for each in ARGUMENTS if not is_language(name, each)],
    ids=json.dumps,
)
def test_an_argument_is_valid_exactly_if_the_matcher_takes_it(name: str, argument: Any) -> None:
    value = {name: argument}
    file = {"harness": 1, "manifest": "m", "scenarios": [{"name": "x", "expect": {"output": value}}]}
    assert is_valid("scenario", file) == (not list(malformed(value)))


def test_each_matcher_is_offered_with_its_meaning() -> None:
    offered = schema("scenario")["$defs"]["ExpectedValue"]["properties"]
    assert {name: each["description"] for name, each in offered.items()} == {
        name: kind.meaning for name, kind in MATCHERS.items()
    }


@pytest.mark.parametrize(
    "keys",
    [
        "timeout: '${case.t}'",
        "expect: '${case.expect}'",
        "expect: {status: '${case.s}', path: '${case.p}', visits: {a: '${case.n}'}}",
        "expect: {output: {$len: '${case.n}'}, calls: ['${case.call}']}",
        "llm: [{reply: a, times: '${case.n}'}]",
        "tools: {a: '${case.stubs}', b: [{error: '${case.error}', args: {n: '${case.n}'}}]}",
    ],
)
def test_values_of_a_table_may_stand_anywhere_in_a_scenario(keys: str) -> None:
    assert is_valid("scenario", yaml(SCENARIO % keys))
    assert not is_valid("scenario", yaml(SCENARIO % "expect: {visits: {a: twice}}"))


# --- keys


def models_in(model: Any) -> Iterator[type[Strict]]:
    """Yield the models in a type, a model itself included."""
    if isinstance(model, type) and issubclass(model, Strict):
        yield model
        for field in model.model_fields.values():
            yield from models_in(field.annotation)
    for argument in typing.get_args(model):
        yield from models_in(argument)


MODELS: dict[str, type[BaseModel]] = {
    "scenario": File,
    "variants": VariantsFile,
    "gate": policy.PolicyFile,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_keys_are_those_of_the_loader_s_models(kind: str) -> None:
    known = {
        frozenset(node.get("properties", {})) for node in (schema(kind), *schema(kind)["$defs"].values())
    }
    models = set(models_in(MODELS[kind]))
    assert len(models) > 2
    assert [model.__name__ for model in models if frozenset(fields_of(model)) not in known] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_described(kind: str) -> None:
    Draft202012Validator.check_schema(schema(kind))
    nodes = (schema(kind), *schema(kind)["$defs"].values())
    keys = [(key, part) for node in nodes for key, part in node.get("properties", {}).items()]
    assert [key for key, part in keys if not part.get("description")] == []


# --- the command


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_of_a_kind_is_printed(kind: str, invoke: Invoke) -> None:
    assert invoke("schema", "--kind", kind).stdout == schema_text(kind)


def test_another_kind_is_refused(invoke: Invoke) -> None:
    refused = invoke("schema", "--kind", "manifest")
    assert refused.exit_code == 2
    assert "'scenario', 'variants', 'gate'" in refused.stderr
