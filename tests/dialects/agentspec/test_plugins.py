"""Component types of plugins, named by a scenario or installed. spec: "Ecosystem of plugins"."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harness.dialects.agentspec.agents import AgenticComponent
from harness.dialects.agentspec.data_flow import NodeResult
from harness.dialects.agentspec.flows import Flow, Node
from harness.dialects.agentspec.plugins import ComponentPlugin, installed_plugins, serialize
from harness.errors import ManifestError, Problem, Span
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from tests.dialects.agentspec.configurations import (
    AGENT,
    VERSION,
    entry,
)
from tests.dialects.agentspec.loader import Loader

PLUGIN = """
from harness.dialects.agentspec.flows import Node
from harness.dialects.agentspec.plugins import ComponentPlugin
from harness.dialects.agentspec.data_flow import NodeResult


class RepeatNode(Node):
    times: int


class Repeats(ComponentPlugin):
    name = "repeats"
    version = "1.0"
    components = {"RepeatNode": RepeatNode}

    async def run(self, node, inputs, ctx):
        return NodeResult({"text": inputs["text"] * node.times})
"""
REPEATING = (
    VERSION
    + """\
component_type: Flow
name: echo
start_node: {$component_ref: begin}
nodes: [{$component_ref: begin}, {$component_ref: repeat}, {$component_ref: end}]
control_flow_connections:
- {component_type: ControlFlowEdge, name: a, from_node: {$component_ref: begin}, to_node: {$component_ref: repeat}}
- {component_type: ControlFlowEdge, name: b, from_node: {$component_ref: repeat}, to_node: {$component_ref: end}}
$referenced_components:
  begin: {component_type: StartNode, name: begin, inputs: [{title: text, type: string}]}
  end: {component_type: EndNode, name: end, outputs: [{title: text, type: string}]}
  repeat:
    component_type: RepeatNode
    component_plugin_name: repeats
    component_plugin_version: "1.0"
    name: repeat
    times: 2
    inputs: [{title: text, type: string}]
    outputs: [{title: text, type: string}]
"""
)


class RepeatNode(Node):
    times: int


class Repeats(ComponentPlugin):
    name = "repeats"
    version = "1.0"
    components: ClassVar = {"RepeatNode": RepeatNode}

    async def run(self, node: Any, inputs: Any, ctx: Any) -> Any:
        return NodeResult({"text": inputs["text"] * node.times})


def test_a_component_of_a_missing_plugin(loader: Loader) -> None:
    problem = loader.problem(REPEATING)
    assert (problem.code, loader.place(problem)) == ("unknown-plugin", "RepeatNode")
    assert problem.message == "RepeatNode is a component of the plugin 'repeats', which is not installed"


@pytest.mark.parametrize("hook", [Repeats, Repeats()], ids=["class", "object"])
def test_a_plugin_adds_a_node_type(loader: Loader, hook: Any) -> None:
    assert "repeat" in {node.name for node in loader.graph(REPEATING, hooks=(hook,)).nodes}


def test_the_fields_of_a_plugin_are_checked(loader: Loader) -> None:
    problem = loader.problem(REPEATING.replace("times: 2", "times: two"), hooks=(Repeats,))
    assert problem.message == "'repeat': times: expected a whole number, found text 'two'"
    problem = loader.problem(REPEATING.replace("times: 2", "times: 2\n    more: 1"), hooks=(Repeats,))
    assert problem.message.startswith("'repeat': unknown key 'more'")


def test_fields_of_a_plugin_may_be_references(loader: Loader) -> None:
    text = REPEATING.replace("times: 2", "times: {$component_ref: two}") + entry("two", "2")
    loader.graph(text, hooks=(Repeats,))


def test_two_plugins_for_one_type(loader: Loader) -> None:
    problem = loader.problem(REPEATING, hooks=(Repeats(), Repeats()))
    assert (problem.code, problem.message) == (
        "plugin",
        "the plugins 'repeats' and 'repeats' both read RepeatNode",
    )


def test_a_plugin_names_its_component_types(loader: Loader) -> None:
    class Renamed(Repeats):
        components: ClassVar = {"acme.Repeat": RepeatNode}

    text = REPEATING.replace("component_type: RepeatNode", "component_type: acme.Repeat")
    configuration = loader.configuration(text, hooks=(Renamed,))
    assert isinstance(configuration.root, Flow)
    repeat = configuration.root.nodes[1]
    assert (repeat.component_type, str(repeat)) == ("acme.Repeat", "acme.Repeat 'repeat'")
    plugin = configuration.plugins.plugin_of(repeat)
    assert plugin is not None
    assert plugin.name == "repeats"
    assert configuration.plugins.plugin_of(configuration.root) is None
    written = serialize(configuration.root, configuration.plugins)
    assert {"component_type": "acme.Repeat", "component_plugin_name": "repeats"}.items() <= (
        written["$referenced_components"]["repeat-1"].items()
    )
    assert loader.configuration(json.dumps(written), json=True, hooks=(Renamed,)).root.name == "echo"


@dataclass(frozen=True)
class Faulty:
    """A plugin that returns something other than a component, or raises an error."""

    result: object

    def __call__(self, component_type: Any, document: Any) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (ValueError("no"), "the plugin 'repeats', for RepeatNode: ValueError: no"),
        (KeyError(), "the plugin 'repeats', for RepeatNode: KeyError"),
        (None, "the plugin 'repeats', for RepeatNode: expected a component, found nothing (null)"),
        ({}, "the plugin 'repeats', for RepeatNode: expected a component, found an empty mapping"),
    ],
)
def test_a_plugin_that_returns_no_component(loader: Loader, result: Any, message: Any) -> None:
    class Broken(Repeats):
        deserialize = staticmethod(Faulty(result))

    problem = loader.problem(REPEATING, hooks=(Broken,))
    assert (problem.code, loader.place(problem)) == ("plugin", "RepeatNode")
    assert problem.message == f"'repeat': {message}"


def test_a_plugin_may_refuse_a_component_without_a_location(loader: Loader) -> None:
    class Refusing(Repeats):
        deserialize = staticmethod(Faulty(ManifestError(Problem("bad-value", "too few"))))

    problem = loader.problem(REPEATING, hooks=(Refusing,))
    assert (problem.code, problem.message) == ("bad-value", "'repeat': too few")
    assert loader.place(problem) == "RepeatNode"


def test_an_agent_of_a_plugin_must_be_runnable(loader: Loader) -> None:
    class Oracle(AgenticComponent):
        pass

    class Oracles(Repeats):
        components: ClassVar = {"Oracle": Oracle}

    text = VERSION + "component_type: Oracle\nname: delphi\n"
    problem = loader.problem(text, hooks=(Oracles,))
    assert (problem.code, loader.place(problem)) == ("plugin", "Oracle")
    assert problem.message == "'delphi': the plugin 'repeats', for Oracle: it cannot be run"
    assert problem.hint == "derive it from Agent, RemoteAgent or Flow"


NO_PLUGINS = """
from harness.dialects.agentspec.flows import Node
from harness.dialects.agentspec.plugins import ComponentPlugin

class Unfinished(ComponentPlugin):
    name, version, components = "x", "1", {}

class Complete(Unfinished):
    async def run(self, node, inputs, ctx): ...

class Raising(Complete):
    def __init__(self):
        raise ValueError("no")

class Nameless(ComponentPlugin):
    version, components = "1", {}
    async def run(self, node, inputs, ctx): ...

class Versionless(Complete):
    version = 1.5

class Empty(ComponentPlugin):
    name, version = "x", "1"
    async def run(self, node, inputs, ctx): ...

class Modelless(Complete):
    components = {"ANode": dict}

def plain(): ...
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plain", "'faulty.plain' is not a ComponentPlugin"),
        ("Node", "'faulty.Node' is not a ComponentPlugin"),
        (
            "Unfinished",
            "'faulty.Unfinished' cannot be instantiated: TypeError: Can't instantiate abstract class",
        ),
        ("Raising", "'faulty.Raising' cannot be instantiated: ValueError: no"),
        ("Nameless", "'faulty.Nameless' needs a 'name': expected text, found nothing (null)"),
        ("Versionless", "'faulty.Versionless' needs a 'version': expected text, found the number 1.5"),
        ("Empty", "'faulty.Empty' needs 'components': expected a mapping from types to Component classes"),
        ("Modelless", "'faulty.Modelless' needs 'components': expected a mapping"),
    ],
)
def test_objects_that_are_no_plugins(loader: Loader, name: Any, message: Any) -> None:
    (loader.folder / "faulty.py").write_text(NO_PLUGINS)
    named_at = Span("a.scenario.yaml", 3, 1)
    problem = loader.problem(
        REPEATING, hooks=(f"faulty.{name}",), folders=(loader.folder,), named_at=named_at
    )
    assert (problem.code, problem.span) == ("plugin", named_at)
    assert problem.message.startswith(f"`hooks`: {message}")


def test_a_plugin_that_cannot_be_imported(loader: Loader) -> None:
    named_at = Span("a.scenario.yaml", 3, 1)
    problem = loader.problem(
        REPEATING, hooks=("repeats.Repeats",), folders=(loader.folder,), named_at=named_at
    )
    assert (problem.code, problem.span) == ("import", named_at)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that installs a package with an entry point for a plugin."""

    def install_(package: Any, text: Any, entry_point: Any) -> None:
        site = tmp_path / "site"
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[harness.agentspec_plugins]\n{package} = {entry_point}\n")
        (site / f"{package}.py").write_text(text)
        monkeypatch.syspath_prepend(site)
        installed_plugins.cache_clear()

    yield install_
    installed_plugins.cache_clear()


def test_an_installed_plugin(loader: Loader, install: Any) -> None:
    install("installed_repeats", PLUGIN, "installed_repeats:Repeats")
    assert "repeat" in {node.name for node in loader.graph(REPEATING).nodes}


@pytest.mark.parametrize(
    ("text", "attribute", "why"),
    [
        ("import nowhere_to_be_found", "X", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("raise SystemExit(3)", "X", "SystemExit: 3"),
        ("X = 5", "X", "'broken_plugin:X' is not a ComponentPlugin"),
        ("", "X", "AttributeError: module 'broken_plugin' has no attribute 'X'"),
    ],
)
def test_an_installed_plugin_that_cannot_be_used(
    loader: Loader, install: Any, monkeypatch: pytest.MonkeyPatch, text: Any, attribute: Any, why: Any
) -> None:
    monkeypatch.delitem(sys.modules, "broken_plugin", raising=False)
    install("broken_plugin", text, f"broken_plugin:{attribute}")
    message = f"the installed plugin 'broken_plugin' (broken_plugin:{attribute}) cannot be used: {why}"
    [warning] = loader.graph(VERSION + AGENT).warnings
    assert (warning.code, warning.severity, warning.message) == ("plugin", "warning", message)
    problem = loader.problem(REPEATING)
    assert (problem.code, problem.hint) == ("unknown-plugin", message)


def test_a_scenario_names_a_plugin_that_runs_its_nodes(loader: Loader, tmp_path: Path) -> None:
    (tmp_path / "repeating.py").write_text(PLUGIN)
    (tmp_path / "echo.yaml").write_text(REPEATING)
    (tmp_path / "echo.scenario.yaml").write_text(
        "harness: 1\nmanifest: echo.yaml\ndialect: agentspec\nscenarios:\n"
        "- {name: twice, hooks: [repeating.Repeats], input: {text: ha},"
        " expect: {path: [begin, repeat, end], output: {$exact: {text: haha}}}}\n"
    )
    [scenario] = load_file(tmp_path / "echo.scenario.yaml").scenarios
    [outcome] = run_scenario(scenario)
    assert outcome.verdict == "passed", outcome.observed.error
