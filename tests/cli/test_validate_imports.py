"""Python names in manifests: problems that `harness validate` finds without and with `--imports`."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, WriteFile


def test_import_paths_of_tools_and_handlers_are_looked_up(
    invoke: Invoke, write: WriteFile, counter: str
) -> None:
    write("counter.yaml", counter)
    write("own_tools.py", "def weigh(): ...\n")
    write(
        "a.scenario.yaml",
        "harness: 1\nmanifest: counter.yaml\nscenarios:\n"
        "  - {name: any, tools: {a: own_tools.weigh, b: own_tools.weihg}, handlers: {c: no_module.x}}\n",
    )
    result = invoke("validate", "a.scenario.yaml")
    assert result.exit_code == 2
    assert "a.scenario.yaml:4:48: error: cannot import 'own_tools.weihg'" in result.stdout
    assert "did you mean 'weigh'?" in result.stdout
    assert "error: cannot import 'no_module.x': there is no module 'no_module'" in result.stdout
    assert "'own_tools.weigh'" not in result.stdout


IMPORTING = """\
manifest_version: 1
tools: [{id: weigh, version: "1", import_path: loud_tools.weigh}]
hooks: [{import_path: loud_tools.Hook}]
sub_agents: [{id: other, version: "1", import_path: loud_tools.agent}]
"""


def test_nothing_is_imported_without_the_option(
    invoke: Invoke, write: WriteFile, tmp_path: Path, counter: str
) -> None:
    write("counter.yaml", IMPORTING + counter.partition("\n")[2])
    write(
        "loud_tools.py",
        "from pathlib import Path\nPath('imported').touch()\nfrom langchain_core.tools import tool\n"
        "@tool\ndef weigh(x: int) -> int:\n    '''Weigh.'''\n    return x\n"
        "def agent(text): ...\nclass Hook:\n    def before_graph_invoke(self, ctx): ...\n",
    )
    write(
        "a.scenario.yaml",
        "harness: 1\nmanifest: counter.yaml\nscenarios: [{name: a, tools: {weigh: loud_tools.weigh}}]\n",
    )
    assert invoke("validate", ".").exit_code == 0
    assert not (tmp_path / "imported").exists()
    assert invoke("validate", ".", "--imports").exit_code == 0
    assert (tmp_path / "imported").exists()


@pytest.mark.parametrize("flags", [(), ("--imports",)])
def test_an_invalid_import_path_is_found_with_and_without_importing(
    invoke: Invoke, write: WriteFile, counter: str, flags: Any
) -> None:
    write("counter.yaml", IMPORTING.replace("weigh}", "weihg}") + counter.partition("\n")[2])
    write(
        "loud_tools.py", "def weigh(): ...\ndef agent(): ...\nclass Hook:\n    def on_error(self, ctx): ...\n"
    )
    result = invoke("validate", "counter.yaml", *flags)
    assert result.exit_code == 2
    told = (
        "counter.yaml:2:48: error: cannot import 'loud_tools.weihg': the module 'loud_tools' has no 'weihg'"
    )
    assert told in result.stdout
    assert "did you mean 'weigh'?" in result.stdout


def test_a_configuration_of_a_plugin_that_is_not_imported_is_not_checked(
    invoke: Invoke, write: WriteFile
) -> None:
    write("agent.yaml", "agentspec_version: 25.4.1\ncomponent_type: MoonAgent\nname: moon\n")
    write("moon_plugin.py", "class Plugin: ...\n")
    write(
        "a.scenario.yaml",
        "harness: 1\nmanifest: agent.yaml\ndialect: agentspec\n"
        "scenarios: [{name: a, hooks: [moon_plugin.Plugin]}]\n",
    )
    result = invoke("validate", "a.scenario.yaml")
    assert result.exit_code == 0
    assert "warning: the configuration was not checked: its plugin moon_plugin.Plugin" in result.stdout


@pytest.mark.parametrize("flags", [(), ("--imports",)])
def test_a_class_is_not_a_tool(invoke: Invoke, write: WriteFile, counter: str, flags: Any) -> None:
    write("counter.yaml", IMPORTING + counter.partition("\n")[2])
    write(
        "loud_tools.py",
        "from langchain_core.tools import BaseTool\n"
        "class weigh(BaseTool):\n"
        "    name: str = 'weigh'\n    description: str = 'Weigh.'\n    def _run(self): ...\n"
        "def agent(): ...\nclass Hook:\n    def on_error(self, ctx): ...\n",
    )
    result = invoke("validate", "counter.yaml", *flags)
    assert result.exit_code == 2
    assert "counter.yaml:2:48: error: 'loud_tools.weigh' is a class, not a tool [not-a-tool]" in result.stdout
    assert "name an instance of it" in result.stdout
