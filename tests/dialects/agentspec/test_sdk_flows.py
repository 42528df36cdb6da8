"""Documents of the official SDK are read by the harness, and the other way round."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from harness.dialects.agentspec.compile import configuration_of, select_component
from harness.dialects.agentspec.component import Component, ComponentWithIO, inner_first
from harness.dialects.agentspec.dialect import TABLE, TYPE, VERSION
from harness.dialects.agentspec.document import LATER_FIELDS, LATER_TYPES, TYPES, VERSIONS, later
from harness.dialects.agentspec.flows import Node
from harness.dialects.agentspec.plugins import Plugins, serialize
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.types import same_type, type_of
from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from harness.source.document import read
from harness.source.models import keys_of

pytest.importorskip("pyagentspec", reason="pyagentspec, the official SDK of Agent Spec, is not installed")

from pyagentspec._component_registry import BUILTIN_CLASS_MAP
from pyagentspec._utils import BetaComponentDeserializationPlugin, BetaComponentSerializationPlugin
from pyagentspec.component import Component as SdkComponent
from pyagentspec.component import ComponentWithIO as SdkComponentWithIO
from pyagentspec.flows.node import Node as SdkNode
from pyagentspec.property import Property as SdkProperty
from pyagentspec.serialization import AgentSpecDeserializer, AgentSpecSerializer
from pyagentspec.versioning import AgentSpecVersionEnum

from tests.dialects.agentspec.sdk_cases import CASES, Case

TEXT = {"title": "t", "type": "string"}
_MODEL = {TYPE: "VllmConfig", "id": "m", "name": "m", "model_id": "m", "url": "http://x.test"}

MINIMUM = None  # the oldest version that has all a component needs
FORMS = [("json", MINIMUM), ("yaml", MINIMUM), ("json", "25.4.2"), ("yaml", "25.4.2")]

LATER_VERSIONS = [item.value for item in AgentSpecVersionEnum if item.value in VERSIONS[1:]]

CONFIGS = sorted((Path(__file__).parents[3] / "scenarios/agentspec/configs").glob("*.*"))


@pytest.fixture(autouse=True)
def _told_in_vain() -> Iterator[None]:
    """Ignore the SDK's warnings of new features, and of documents without a version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        yield


# ------------------------------------------------------------------ from the SDK to the harness


def documents(case: Case, form: str, version: str | None) -> list[str]:
    """Return the documents that the SDK writes for a case, and one with the values that it leaves out."""
    serializer = AgentSpecSerializer(plugins=[BetaComponentSerializationPlugin()])
    write = serializer.to_json if form == "json" else serializer.to_yaml
    texts = write(
        case.component,
        agentspec_version=AgentSpecVersionEnum(version) if version else None,
        disaggregated_components=list(case.apart),
        export_disaggregated_components=bool(case.apart),
    )
    supplied = [json.dumps({TABLE: case.supplied})] if case.supplied else []
    return [*([texts] if isinstance(texts, str) else texts), *supplied]


def written(folder: Path, form: str, texts: Sequence[str]) -> LoadRequest:
    folder.mkdir(exist_ok=True)
    files = tuple(folder / f"{at}.{form}" for at in range(len(texts)))
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    return LoadRequest(files)


def loaded(request: LoadRequest) -> Component:
    configuration = configuration_of(request)
    component = select_component(configuration, request)
    assert configuration.problems.errors == []
    return component


@pytest.mark.parametrize("name", CASES)
def test_json_and_yaml_of_every_version_are_read_as_the_same_configuration(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    found = []
    for form, version in FORMS:
        request = written(tmp_path / f"{form}-{version}", form, documents(case, form, version))
        found.append(serialize(loaded(request), Plugins(())))
    assert all(other == found[0] for other in found[1:])


@pytest.mark.parametrize("name", CASES)
def test_configurations_written_by_the_sdk_run(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    request = written(tmp_path, "json", documents(case, "json", MINIMUM))
    assert load_graph(request).warnings == ()
    suite = tmp_path / "case.scenario.yaml"
    manifest = [file.name for file in request.paths]
    suite.write_text(
        f"harness: 1\nmanifest: {manifest}\nscenarios:\n{dedent(case.scenarios)}", encoding="utf-8"
    )
    for scenario in load_file(suite).scenarios:
        for outcome in run_scenario(scenario):
            told = [f"{check.name}: {check.message}" for check in outcome.checks if not check.passed]
            assert outcome.passed, "\n".join([scenario.name, str(outcome.observed.error), *told])


@cache
def _components_at(version: str | None) -> Sequence[dict[str, Any]]:
    """Return every component of every case as the SDK writes it."""

    def inside(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            if TYPE in value:
                yield value
            for item in value.values():
                yield from inside(item)
        elif isinstance(value, list):
            for item in value:
                yield from inside(item)

    return [
        component
        for build in CASES.values()
        for text in documents(build(), "json", version)
        for component in inside(json.loads(text))
    ]


def test_the_cases_cover_every_component_type() -> None:
    assert {component[TYPE] for component in _components_at(MINIMUM)} == TYPES.keys() - LATER_TYPES.keys()


@pytest.mark.parametrize("version", LATER_VERSIONS)
def test_fields_of_later_versions_are_known_with_their_defaults(version: str) -> None:
    """`LATER_FIELDS` has each field that the SDK writes in a version, and its value is neutral."""
    in_version = [field for field in LATER_FIELDS if not later(field.since, version)]
    for component in _components_at(version):
        model = TYPES[component[TYPE]]
        fields = [field for field in in_version if issubclass(model, field.kinds)]
        assert len({field.name for field in fields}) == len(fields)
        known = {*keys_of(model), TYPE, TABLE, VERSION, *(field.name for field in fields)}
        assert {key for key in component if not key.startswith("component_plugin_")} <= known, component[TYPE]
        for field in fields:
            if field.neutral_values is not None and field.name in component:
                assert component[field.name] in field.neutral_values, (component[TYPE], field.name)


LATER_CONTENT = {
    "one string": ({"component_type": "LlmNode", "outputs": [TEXT]}, False),
    "one number": ({"component_type": "LlmNode", "outputs": [{"title": "n", "type": "number"}]}, True),
    "text or null": ({"component_type": "LlmNode", "outputs": [{**TEXT, "type": ["string", "null"]}]}, True),
    "two strings": ({"component_type": "LlmNode", "outputs": [TEXT, {**TEXT, "title": "u"}]}, True),
    **{
        f"{component_type} with {data}": ({"component_type": component_type, "data": data}, later)
        for component_type in ("ApiNode", "RemoteTool")
        for data, later in (({}, False), ({"a": 1}, False), ([], True), ("a", True))
    },
}


@pytest.mark.parametrize(("component", "later"), LATER_CONTENT.values(), ids=LATER_CONTENT)
def test_what_a_component_needs_of_a_later_version_is_what_the_sdk_says(
    component: dict[str, Any], later: bool, tmp_path: Path
) -> None:
    """`LATER_VALUES` has the values for which the SDK requires a later version."""
    fields: dict[str, dict[str, Any]] = {
        "LlmNode": {"prompt_template": "x", "llm_config": _MODEL},
        "ApiNode": {"url": "http://x.test", "http_method": "GET"},
        "RemoteTool": {"url": "http://x.test", "http_method": "GET"},
    }
    document = {"id": "it", "name": "it", **fields[component[TYPE]], **component}
    read_by_sdk({**document, VERSION: "25.4.2"})
    with pytest.raises(ValueError, match="minimum allowed version") if later else nullcontext():
        read_by_sdk({**document, VERSION: "25.4.1"})

    request = written(tmp_path, "json", [json.dumps({**document, VERSION: "25.4.1"})])
    warnings = configuration_of(request).problems.warnings
    assert [(warning.code, warning.hint) for warning in warnings] == [
        ("later-version", "say agentspec_version: 25.4.2")
    ] * later


def test_component_types_of_later_versions_are_known() -> None:
    concrete = {name for name, model in BUILTIN_CLASS_MAP.items() if not model._is_abstract}
    assert concrete <= TYPES.keys()
    for name in concrete & LATER_TYPES.keys() - {"LlmConfig", "MCPToolBox", "MCPToolSpec"}:
        since = BUILTIN_CLASS_MAP[name].model_fields["min_agentspec_version"].default.value
        assert LATER_TYPES[name] == since, name


# ------------------------------------------------------------------ from the harness to the SDK


def sdk_parts(root: SdkComponent) -> dict[str, SdkComponent]:
    """Return a component of the SDK and all components in it, by id."""
    found: dict[str, SdkComponent] = {}

    def visit(part: object) -> None:
        if isinstance(part, list | tuple):
            for each in part:
                visit(each)
        elif isinstance(part, SdkComponent) and part.id not in found:
            found[part.id] = part
            for field in type(part).model_fields:
                visit(getattr(part, field))

    visit(root)
    return found


@cache
def config_of(file: Path) -> tuple[dict[str, Any], Component]:
    """Return a configuration as written, and its component as the harness reads it."""
    return read(file, yaml="1.1").value, loaded(LoadRequest((file,)))


def read_by_sdk(document: dict[str, Any]) -> SdkComponent:
    return AgentSpecDeserializer(plugins=[BetaComponentDeserializationPlugin()]).from_dict(document)


def assert_same_properties(ours: Mapping[str, Property], theirs: Sequence[SdkProperty] | None) -> None:
    """Assert equal properties in any order, since the SDK does not fix the order of placeholders."""
    schemas = {item.title: item.json_schema for item in theirs or ()}
    assert ours.keys() == schemas.keys()
    for title, item in ours.items():
        assert same_type(item.type, type_of(schemas[title]))
        assert item.has_default == ("default" in schemas[title])
        assert item.schema.get("default") == schemas[title].get("default")


def assert_same_interface(ours: ComponentWithIO, theirs: SdkComponent) -> None:
    assert isinstance(theirs, SdkComponentWithIO)
    assert ours.component_type == str(theirs.component_type)
    assert_same_properties(ours.inputs, theirs.inputs)
    assert_same_properties(ours.outputs, theirs.outputs)
    if isinstance(ours, Node):
        assert isinstance(theirs, SdkNode)
        assert sorted(ours.branches) == sorted(theirs.branches)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_both_infer_the_same_inputs_outputs_and_branches(config: Path) -> None:
    document, component = config_of(config)
    ours = [part for part in inner_first(component) if isinstance(part, ComponentWithIO)]
    theirs = sdk_parts(read_by_sdk(document))
    assert {part.id for part in ours} == {
        id_ for id_, part in theirs.items() if isinstance(part, SdkComponentWithIO)
    }
    for part in ours:
        assert_same_interface(part, theirs[part.id])


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_configurations_written_by_the_harness_are_read_by_both(config: Path, tmp_path: Path) -> None:
    document, component = config_of(config)
    version = document.get(VERSION, VERSIONS[-1])
    first = serialize(component, Plugins(()), version=version)

    theirs = sdk_parts(read_by_sdk(first))
    again = loaded(written(tmp_path, "json", [json.dumps(first)]))

    for part in inner_first(component):
        if isinstance(part, ComponentWithIO):
            assert_same_interface(part, theirs[part.id])
    assert serialize(again, Plugins(()), version=version) == first
