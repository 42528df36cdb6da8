"""The Python files of a mesh: which are found, what they define, and what they may import. NOTES 1.9, 8."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests.dialects.leafmesh.project import MESH, Project
from tests.dialects.places import text_at

DESK = "def desk(first, input_data, context):\n    return {'said': input_data['message']}\n"
LLM = MESH.replace("agent_type: programmatic", "agent_type: llm, tools: [weigh]")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture(autouse=True)
def _nothing_leaks() -> Iterator[None]:
    path = list(sys.path)
    yield
    assert not any(name.partition(".")[0] == "leafmesh" for name in sys.modules)
    assert sys.path == path


# ---------------------------------------------------------------- which files


@pytest.mark.parametrize(
    ("directory", "file"),
    [
        ("./agency", "agency/desk_agent.py"),
        ("agency", "agency/wings/night/desk_agent.py"),
        ("../agency", "agency/desk_agent.py"),
        ("./agency", "configs/agency/desk_agent.py"),
        ("../src/agents", "src/agents/desk_agent.py"),
        ("..", "desk_agent.py"),
        (".", "configs/desk_agent.py"),
        ("../my-agents", "my-agents/desk-1_agent.py"),
    ],
)
def test_a_function_is_found_by_the_name_of_its_agent(project: Project, directory: str, file: str) -> None:
    project.write({"configs/config.yaml": MESH.replace("./agency", directory), file: DESK})
    assert project.output() == {"said": "hi"}


def test_a_folder_beside_the_mesh_file_goes_before_one_beside_its_folder(project: Project) -> None:
    project.write({"agency/desk_agent.py": DESK.replace("hi", "above"), "configs/agency/x_agent.py": DESK})
    assert project.output() == {"said": "hi"}


def test_subfolders_are_left_out_where_that_is_said(project: Project) -> None:
    mesh = MESH.replace("*_agent.py", "*.py").replace('"}', '", recursive: false}')
    project.write({"configs/config.yaml": mesh, "agency/one.py": DESK, "agency/old/one.py": DESK})
    assert project.output() == {"said": "hi"}


def test_a_folder_that_is_not_there_is_refused_with_the_nearest(project: Project) -> None:
    project.write({"agencies/desk_agent.py": DESK})
    (problem,) = project.problems()
    assert (problem.code, problem.message) == ("missing-file", "folder './agency' is not there")
    assert "agencies" in problem.hint
    assert text_at(problem) == "./agency"


def test_a_folder_outside_of_the_project_is_refused(project: Project) -> None:
    (project.folder.parent / "outside").mkdir()
    project.write({"configs/config.yaml": MESH.replace("./agency", "../../outside")})
    (problem,) = project.problems()
    assert (problem.code, text_at(problem)) == ("path-outside", "../../outside")


def test_a_pattern_that_no_file_matches_is_a_warning(project: Project) -> None:
    project.write(
        {"configs/config.yaml": MESH.replace("*_agent.py", "*_agnt.py"), "agency/desk_agent.py": DESK}
    )
    (warning,) = project.warnings()
    assert (warning.code, text_at(warning)) == ("no-agent-files", '"*_agnt.py"')


def test_without_auto_discover_nothing_is_imported(project: Project) -> None:
    project.write({"configs/config.yaml": MESH.partition("\n")[2], "agency/desk_agent.py": DESK})
    assert project.run("scripts: {desk: {return: {a: 1}}}").observed.output == {"a": 1}


# ---------------------------------------------------------------- which functions


def test_a_function_may_be_made_elsewhere(project: Project) -> None:
    maker = "def answering(what):\n    return lambda first, input_data, context: {'said': what}\n"
    project.write(
        {
            "agency/desk_agent.py": "from agency.making import answering\ndesk = answering('made')\n",
            "agency/making.py": maker,
        }
    )
    assert project.output() == {"said": "made"}


def test_what_a_file_only_imports_makes_way_for_what_another_defines(project: Project) -> None:
    project.write(
        {
            "agency/a_agent.py": "from agency.other import desk\n",
            "agency/other.py": DESK.replace("'said'", "'other'"),
        }
    )
    assert project.output() == {"other": "hi"}
    twin = Project(project.folder.parent / "twin")
    twin.write({"agency/a_agent.py": "from agency.b_agent import desk\n", "agency/b_agent.py": DESK})
    assert twin.output() == {"said": "hi"}


@pytest.mark.parametrize(
    "line", ["from re import search as desk", "from datetime import date as desk", "desk = 3"]
)
def test_something_else_of_an_agents_name_is_no_function_of_it(project: Project, line: str) -> None:
    project.write({"agency/desk_agent.py": f"{line}\n"})
    error = project.run().observed.error
    assert error is not None
    assert error["type"] == "UnscriptedCall"


@pytest.mark.parametrize("imports", [True, False])
def test_two_files_with_the_function_of_one_agent_are_refused(project: Project, imports: bool) -> None:
    project.write({"agency/a_agent.py": DESK, "agency/b_agent.py": f"\n{DESK}"})
    (problem,) = project.problems(imports=imports)
    assert problem.code == "duplicate-name"
    assert problem.span is not None
    assert (Path(problem.span.file).name, problem.span.line) == ("b_agent.py", 2)
    assert "agency/a_agent.py:1" in problem.message


@pytest.mark.parametrize("imports", [True, False])
def test_a_function_that_is_nearly_called_like_an_agent_is_a_warning(project: Project, imports: bool) -> None:
    project.write({"agency/desk_agent.py": DESK.replace("desk", "desks")})
    (warning,) = project.warnings(imports=imports)
    assert (warning.code, warning.hint) == ("unknown-agent", "did you mean 'desk'?")


@pytest.mark.parametrize("parameters", ["input_data", "first, input_data", "a, b, c, d", "a, b, c, *, d"])
def test_a_function_that_does_not_take_three_arguments_is_a_warning(
    project: Project, parameters: str
) -> None:
    project.write({"agency/desk_agent.py": f"def desk({parameters}): return {{}}\n"})
    (warning,) = project.warnings(imports=False)
    assert warning.code == "agent-arguments"


@pytest.mark.parametrize(
    "parameters", ["*given", "a, b, c, d=1", "a, /, b, *rest, d=1", "a, b=1, c=2, **named"]
)
def test_a_function_may_take_more_than_three(project: Project, parameters: str) -> None:
    project.write({"agency/desk_agent.py": f"def desk({parameters}): return {{'ok': True}}\n"})
    assert not project.warnings(imports=False)
    assert project.output() == {"ok": True}


def test_a_function_of_a_human_agent_is_a_warning(project: Project) -> None:
    mesh = MESH.replace("programmatic", "human")
    project.write({"configs/config.yaml": mesh, "agency/desk_agent.py": DESK})
    assert [warning.code for warning in project.warnings(imports=False)] == ["unused-function"]


def test_a_decorator_that_loses_pre_compose_is_a_warning(project: Project) -> None:
    project.write(
        {
            "agency/desk_agent.py": """\
            import leafmesh as lm

            def bare(function):
                return lambda *given: function(*given)

            @bare
            @lm.pre_compose(input_processor=lambda input_data, context: "tidy")
            def desk(first, input_data, context):
                return {}
            """
        }
    )
    (warning,) = project.warnings()
    assert warning.code == "lost-decorator"


@pytest.mark.parametrize(
    "name", ["chain", "compose", "pre_compose", "chain_with_results", "conditional_chain"]
)
def test_a_decorator_without_its_functions_is_refused(project: Project, name: str) -> None:
    project.write({"agency/desk_agent.py": f"from leafmesh import {name} as deco\n@deco\n{DESK}"})
    (problem,) = project.problems(imports=False)
    assert (problem.code, problem.message) == ("bad-decorator", f"@{name} takes functions, in parentheses")
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (2, 2)


# ---------------------------------------------------------------- imports


@pytest.mark.parametrize(
    "line",
    [
        "from agency.helpers import word",
        "from .helpers import word",
        "from helpers import word",
        "from agency import helpers; word = helpers.word",
        "import agency.helpers as h; word = h.word",
        "from shared import word",
    ],
)
@pytest.mark.parametrize("with_init", [True, False])
def test_helpers_are_imported_as_from_the_folder_of_the_project(
    project: Project, line: str, with_init: bool
) -> None:
    files = {
        "agency/helpers.py": "from leafmesh import chain\nword = 'helped'\n",
        "shared.py": "word = 'helped'\n",
    }
    files |= {"agency/__init__.py": ""} if with_init else {}
    project.write(
        {**files, "agency/desk_agent.py": f"{line}\ndef desk(a, b, c):\n    return {{'said': word}}\n"}
    )
    assert project.output() == {"said": "helped"}


def test_a_helper_may_be_imported_while_the_function_runs(project: Project) -> None:
    project.write(
        {
            "agency/desk_agent.py": """\
            import asyncio

            async def desk(first, input_data, context):
                await asyncio.sleep(3)
                from agency.helpers import word
                from helpers import word as again
                from leafmesh import LeafMeshError
                import sys
                assert "leafmesh" in sys.modules
                return {"said": word, "again": again}
            """,
            "agency/helpers.py": "word = 'late'\n",
        }
    )
    assert project.output() == {"said": "late", "again": "late"}


def test_two_projects_with_modules_of_the_same_names_do_not_meet(tmp_path: Path) -> None:
    def one(word: str) -> Project:
        made = Project(tmp_path / word)
        lazily = (
            "def desk(a, b, c):\n    from agency.helpers import word\n    return {'said': word, 'now': now}\n"
        )
        made.write(
            {
                "agency/desk_agent.py": f"from agency.first import now\n{lazily}",
                "agency/first.py": f"now = {word!r}\n",
                "agency/helpers.py": f"word = {word!r}\n",
            }
        )
        made.load()
        return made

    left, right = one("left"), one("right")
    assert left.output() == {"said": "left", "now": "left"}
    assert right.output() == {"said": "right", "now": "right"}
    assert left.output() == {"said": "left", "now": "left"}


@pytest.mark.parametrize("name", ["json", "pytest"])
def test_a_folder_called_like_an_installed_module_is_found_before_it(project: Project, name: str) -> None:
    project.write({"configs/config.yaml": MESH.replace("agency", name), f"{name}/desk_agent.py": DESK})
    assert project.output() == {"said": "hi"}
    import json

    assert json.loads("1") == 1


def test_the_package_leafmesh_is_never_imported(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project(tmp_path / "site").write({"leafmesh/__init__.py": "raise AssertionError('imported')\n"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    project.write({"agency/desk_agent.py": f"from leafmesh import chain\n@chain()\n{DESK}"})
    assert project.output() == {"said": "hi"}


def test_the_package_leafmesh_stays_loaded_for_others(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Package:
        chain = None

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "leafmesh", Package)
        patch.setitem(sys.modules, "leafmesh.tools", Package)
        project.write({"agency/desk_agent.py": f"from leafmesh import chain\n@chain()\n{DESK}"})
        assert project.output() == {"said": "hi"}
        assert sys.modules["leafmesh"] is Package  # type: ignore[comparison-overlap]
        assert sys.modules["leafmesh.tools"] is Package  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("\nfrom lost import thing\n", "No module named 'lost'", 2),
        ("def desk(:\n", "SyntaxError", 1),
        ("\n\nnumber = 1 / 0\n", "ZeroDivisionError", 3),
        ("import sys\nsys.exit(2)\n", "SystemExit", 2),
        (
            "from leafmesh import LeafMesh\nLeafMesh.from_yaml('x').mesh_call('go')\n",
            "LeafMesh.mesh_call is a part",
            2,
        ),
        (
            "from leafmesh import chain\n@chain('polish')\ndef desk(): pass\n",
            "@chain takes functions, not 'polish'",
            2,
        ),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_its_line(
    project: Project, text: str, message: str, line: int
) -> None:
    project.write({"agency/desk_agent.py": text})
    (problem,) = project.problems()
    assert (problem.code, text_at(problem)) == ("import", "./agency")
    assert message in problem.message
    assert f"agency/desk_agent.py:{line})" in problem.message


def test_a_file_that_no_module_can_be_called_like_is_refused(project: Project) -> None:
    project.write({"agency/night.desk_agent.py": DESK})
    (problem,) = project.problems(imports=False)
    assert (problem.code, text_at(problem)) == ("import", "./agency")
    assert "'agency/night.desk_agent.py' cannot be imported" in problem.message


def test_only_files_of_python_are_imported(project: Project) -> None:
    mesh = MESH.replace("*_agent.py", "*")
    project.write({"configs/config.yaml": mesh, "agency/README.md": "# Desk", "agency/desk.py": DESK})
    assert project.output() == {"said": "hi"}


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


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_that_yields_fails(project: Project, kind: str) -> None:
    project.write({"agency/desk_agent.py": f"{kind} desk(a, b, c):\n    yield 1\n"})
    error = project.run().observed.error
    assert error is not None
    assert (error["type"], error["message"]) == (
        "TypeError",
        "the function of agent 'desk' yields: it must return its output",
    )


def test_the_problems_of_all_files_are_told_at_once(project: Project) -> None:
    project.write(
        {"agency/a_agent.py": "1 / 0\n", "agency/b_agent.py": "lost\n", "agency/desk_agent.py": DESK}
    )
    assert len(project.problems()) == 2


@pytest.mark.parametrize("imports", [True, False])
@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("from leafmesh import chain, chian", "did you mean 'chain'?"),
        ("from leafmesh.decorators import chain", "import from 'leafmesh' itself"),
        ("import leafmesh.decorators", "import from 'leafmesh' itself"),
    ],
)
def test_what_the_stand_in_does_not_have_is_refused_where_it_is_imported(
    project: Project, line: str, hint: str, imports: bool
) -> None:
    project.write({"agency/desk_agent.py": f"import os\n{line}\n{DESK}"})
    (problem,) = project.problems(imports=imports)
    assert (problem.code, problem.hint) == ("import", hint)
    assert problem.span is not None
    assert problem.span.line == 2


def test_a_file_may_try_to_import_what_may_not_be_there(project: Project) -> None:
    line = "try:\n    from leafmesh import stream\nexcept ImportError:\n    stream = None\n"
    project.write({"agency/desk_agent.py": f"{line}{DESK}"})
    assert project.output() == {"said": "hi"}


def test_nothing_is_executed_without_imports(project: Project) -> None:
    ran = project.folder / "ran"
    line = f"open({str(ran)!r}, 'w').close()\nraise SystemExit\n"
    project.write({"agency/desk_agent.py": f"{line}{DESK}", "agency/tools.py": line})
    assert project.load(imports=False).nodes
    assert not ran.exists()


def test_modules_are_imported_once_in_a_process(project: Project) -> None:
    counting = "runs = []\ndef desk(a, b, c):\n    runs.append(1)\n    return {'runs': len(runs)}\n"
    project.write({"agency/desk_agent.py": counting})
    assert [project.output(), project.output()] == [{"runs": 1}, {"runs": 2}]


def test_what_a_module_sets_in_the_environment_is_set_for_every_run(project: Project) -> None:
    setting = "import os\nos.environ['PRICE_LIST'] = 'spring'\n"
    reading = "def desk(first, input_data, context):\n    return {'list': os.environ.get('PRICE_LIST')}\n"
    project.write({"agency/desk_agent.py": setting + reading})
    assert [project.output(), project.output()] == [{"list": "spring"}, {"list": "spring"}]


# ---------------------------------------------------------------- the SDK


def test_the_files_of_a_whole_project_can_be_imported(project: Project) -> None:
    project.write(
        {
            "main.py": """\
            import asyncio
            from leafmesh import LeafMesh

            sdk = LeafMesh.from_yaml("configs/config.yaml")

            async def my_human_handler(context, session_id, timeout):
                return {"human_decision": "approved"}

            sdk.register_human_handler("client", my_human_handler)

            async def main():
                await sdk.start()
                await sdk.mesh_call("go", input_data={"message": "Hello"})

            if __name__ == "__main__":
                asyncio.run(main())
            """,
            "agency/desk_agent.py": """\
            import importlib.util
            from leafmesh import AgentConfig, LeafMeshError, LeafMeshLogger, MeshTimeoutError, pre_compose, zapier
            from main import sdk

            logger = LeafMeshLogger(__name__)
            assert importlib.util.find_spec("leafmesh") is not None

            class DeskError(LeafMeshError): ...

            @sdk.intelligence()
            @pre_compose(context_processor=zapier(connection="sheets", action="find_row"))
            async def desk(first, input_data: dict, context: "AgentConfig"):
                logger.info("%s came in", "something", session_id=context["session_id"])
                logger.agent_call("desk")
                try:
                    raise DeskError("closed")
                except MeshTimeoutError:
                    return {"caught": "timeout"}
                except LeafMeshError as error:
                    return {"caught": str(error)}
            """,
        }
    )
    assert project.output() == {"caught": "closed"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("LeafMesh().rerun_agent(agent_name='desk', session_id='s')", "LeafMesh.rerun_agent"),
        ("AgentConfig(name='x')", "leafmesh.AgentConfig"),
        ("n8n(webhook_url='http://x')(input_data, context)", "n8n(…) as a processor of @pre_compose"),
    ],
)
def test_a_part_of_the_sdk_that_does_not_run_here_says_so(project: Project, text: str, what: str) -> None:
    project.write(
        {
            "agency/desk_agent.py": f"""\
            from leafmesh import AgentConfig, LeafMesh, n8n

            async def desk(first, input_data, context):
                return {text}
            """
        }
    )
    error = project.run().observed.error
    assert error is not None
    assert error["type"] == "NotInStandIn"
    assert error["message"].startswith(f"{what} is a part of the LeafMesh SDK that does not run here")


# ---------------------------------------------------------------- tools

TOOLS = """\
from leafmesh import global_tool, tool


@global_tool
async def weigh(pots: int, glazed: bool = False) -> dict:
    "Kilograms of some pots."
    return {"kg": pots * 2}
"""


def tool_result(project: Project, args: str = "{pots: 3}") -> Any:
    """What the model sees of a call of the tool `weigh`."""
    asks = f"- {{tool_calls: [{{name: weigh, args: {args}}}]}}"
    outcome = project.run(f"tools: {{weigh: real}}\nllm:\n  desk:\n  {asks}\n  - done\n")
    assert outcome.observed.error is None, outcome.observed.error
    (call,) = [call for call in outcome.observed.calls if call["kind"] == "tool"]
    return call


@pytest.fixture
def studio(tmp_path: Path) -> Project:
    return Project(tmp_path / "studio", LLM)


def test_tools_py_is_imported_whatever_the_pattern_is(studio: Project) -> None:
    studio.write({"agency/tools.py": TOOLS})
    assert tool_result(studio)["ok"]


def test_a_tool_of_a_module_that_an_agents_file_imports_is_registered(studio: Project) -> None:
    studio.write({"agency/desk_agent.py": "import agency.kit.scales\n", "agency/kit/scales.py": TOOLS})
    assert tool_result(studio)["ok"]


def test_a_tool_of_a_module_that_nothing_imports_is_not(studio: Project) -> None:
    studio.write({"agency/desk_agent.py": "", "agency/scales.py": TOOLS})
    assert (
        "unknown-name" in {problem.code for problem in studio.warnings(imports=False)}
        or not studio.warnings()
    )


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


def test_what_a_tool_raises_goes_back_to_the_model(studio: Project) -> None:
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
def test_whatever_can_be_called_may_be_a_tool(studio: Project, function: str) -> None:
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
