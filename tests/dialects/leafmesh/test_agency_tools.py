"""The tools that the Python files of a mesh register. NOTES 1.9."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests.dialects.leafmesh.project import Project

TOOLS = """\
from leafmesh import global_tool, tool


@global_tool
async def weigh(pots: int, glazed: bool = False) -> dict:
    "Kilograms of some pots."
    return {"kg": pots * 2}
"""


def tool_result(project: Project, args: str = "{pots: 3}") -> Any:
    """Return the tool message that the model gets for a call of `weigh`."""
    asks = f"- {{tool_calls: [{{name: weigh, args: {args}}}]}}"
    outcome = project.run(f"tools: {{weigh: real}}\nllm:\n  desk:\n  {asks}\n  - done\n")
    assert outcome.observed.error is None, outcome.observed.error
    (call,) = [call for call in outcome.observed.calls if call["kind"] == "tool"]
    return call


def test_tools_py_is_imported_whatever_the_pattern_is(studio: Project) -> None:
    studio.write({"agency/tools.py": TOOLS})
    assert tool_result(studio)["ok"]


def test_a_registered_tool_that_nothing_answers_can_be_real(studio: Project) -> None:
    studio.write({"agency/tools.py": TOOLS})
    outcome = studio.run("llm: {desk: [{tool_calls: [{name: weigh, args: {pots: 3}}]}]}\n")
    assert "or write `tools: {weigh: real}`: the mesh registers it" in str(outcome.observed.error)


def test_a_tool_of_a_module_that_an_agents_file_imports_is_registered(studio: Project) -> None:
    studio.write({"agency/desk_agent.py": "import agency.kit.scales\n", "agency/kit/scales.py": TOOLS})
    assert tool_result(studio)["ok"]


def test_a_tool_of_a_module_that_nothing_imports_is_not_registered(studio: Project) -> None:
    studio.write({"agency/desk_agent.py": "", "agency/scales.py": TOOLS})
    outcome = studio.run(
        "tools: {weigh: real}\nllm: {desk: [{tool_calls: [{name: weigh, args: {pots: 3}}]}]}\n"
    )
    assert "`weigh: real` names no function, and the manifest has none" in str(outcome.observed.error)


def test_a_model_sees_the_parameters_and_the_docstring_of_a_tool(studio: Project) -> None:
    studio.write({"agency/tools.py": TOOLS})
    llm = """\
    llm:
      desk:
      - when: |
          request.tools == [{"name": "weigh", "description": "Kilograms of some pots.", "schema": {
            "type": "object", "required": ["pots"], "properties": {
              "pots": {"type": "integer"}, "glazed": {"type": "boolean", "default": false}}}}]
        reply: seen
    """
    assert studio.output(llm) == {"response": "seen"}


def test_an_exception_of_a_tool_is_returned_to_the_model(studio: Project) -> None:
    studio.write({"agency/tools.py": TOOLS})
    call = tool_result(studio, "{pots: 3, colour: red}")
    assert not call["ok"]
    assert "unexpected keyword argument 'colour'" in call["reason"]


@pytest.mark.parametrize("imports", [True, False])
def test_two_tools_of_one_name_are_refused(studio: Project, imports: bool) -> None:
    other = "from leafmesh import tool\n@tool(name='weigh')\ndef scales(pots: int) -> int: return 1\n"
    studio.write({"agency/tools.py": TOOLS, "agency/desk_agent.py": other})
    (problem,) = studio.problems(imports=imports)
    assert problem.code == "duplicate-name"
    assert "two tools 'weigh'" in problem.message


def test_a_file_that_is_imported_under_two_names_has_its_tools_once(studio: Project) -> None:
    studio.write({"agency/tools.py": TOOLS, "agency/desk_agent.py": "from tools import weigh\n"})
    assert tool_result(studio)["ok"]


def test_one_function_may_be_two_tools(studio: Project) -> None:
    studio.write({"agency/tools.py": f"{TOOLS}\n\ntool(name='scales')(weigh)\n"})
    assert tool_result(studio)["ok"]


@pytest.mark.parametrize("function", ["partial(weigh, glazed=True)", "Scales()", "quoted", "odd", "unknown"])
def test_any_callable_can_be_a_tool(studio: Project, function: str) -> None:
    more = """\
    from functools import partial

    class Scales:
        def __call__(self, pots):
            return {"kg": pots * 2}

    def quoted(pots: "Pots", *, glazed: "bool" = False):
        return {"kg": pots * 2}

    class Pots: ...

    def odd(pots: Pots = None, *others: Pots):
        return {"kg": 6}

    def unknown(pots: "Lost"):
        return {"kg": 6}
    """
    plain = TOOLS.replace("@global_tool\n", "")
    register = f"scales = {function}\nglobal_tool(name='weigh')(scales)\n"
    studio.write({"agency/tools.py": f"{plain}\n{textwrap.dedent(more)}\n{register}"})
    assert tool_result(studio)["ok"]


def test_an_argument_of_a_tool_that_is_not_known_is_a_warning(studio: Project) -> None:
    studio.write({"agency/tools.py": TOOLS.replace("@global_tool\n", "@global_tool(catagory='studio')\n")})
    (message,) = [warning.message for warning in studio.warnings() if warning.code == "tool-argument"]
    assert "'catagory'" in message


def test_a_tool_that_a_scenario_names_by_its_path_can_be_validated_with_imports(studio: Project) -> None:
    studio.write(
        {
            "agency/tools.py": TOOLS,
            "it.scenario.yaml": """\
            harness: 1
            manifest: configs/config.yaml
            scenarios: [{name: it, entry_point: go, tools: {weigh: {real: agency.tools.weigh}}, llm: {desk: [done]}}]
            """,
        }
    )
    result = CliRunner().invoke(cli, ["validate", "--imports", str(studio.folder / "it.scenario.yaml")])
    assert result.exit_code == 0, result.output
