"""The functions of agents in the Python files of a mesh. NOTES 1.9."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialects.leafmesh.project import DESK, MESH, Project


def test_a_function_may_be_made_elsewhere(project: Project) -> None:
    maker = "def answering(what):\n    return lambda first, input_data, context: {'said': what}\n"
    project.write(
        {
            "agency/desk_agent.py": "from agency.making import answering\ndesk = answering('made')\n",
            "agency/making.py": maker,
        }
    )
    assert project.output() == {"said": "made"}


def test_a_definition_replaces_an_imported_function(project: Project) -> None:
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
def test_other_objects_with_an_agents_name_are_ignored(project: Project, line: str) -> None:
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
