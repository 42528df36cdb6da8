"""The search for the Python files of a mesh. NOTES 1.9."""

from __future__ import annotations

import pytest

from tests.dialects.leafmesh.project import DESK, MESH, Project
from tests.dialects.places import text_at


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


BARE = MESH.partition("\n")[2]


@pytest.mark.parametrize(
    "file", ["agency/desk_agent.py", "agency/clerk_agent.py", "configs/agency/desk_agent.py"]
)
def test_the_documented_layout_needs_no_auto_discover(project: Project, file: str) -> None:
    project.write({"configs/config.yaml": BARE, file: DESK})
    assert project.output() == {"said": "hi"}
    assert project.warnings() == []


@pytest.mark.parametrize("file", ["agency/desk.py", "agency/old/desk_agent.py", "src/desk_agent.py"])
def test_only_the_documented_layout_is_found_without_auto_discover(project: Project, file: str) -> None:
    project.write({"configs/config.yaml": BARE, file: DESK})
    assert "nothing answers script desk" in str(project.run().observed.error)


def test_the_layout_is_that_of_a_folder_configs(project: Project) -> None:
    project.write({"meshes/config.yaml": BARE, "agency/desk_agent.py": DESK})
    project.mesh = project.folder / "meshes/config.yaml"
    assert project.load().vocabulary().names["script"] == ["desk"]  # type: ignore[misc]
    assert not project.load().import_folders


def test_without_auto_discover_on_purpose_nothing_is_found(project: Project) -> None:
    project.write({"configs/config.yaml": f"auto_discover: null\n{BARE}", "agency/desk_agent.py": DESK})
    assert "nothing answers script desk" in str(project.run().observed.error)


def test_a_project_that_has_only_tools_is_found_too(project: Project) -> None:
    tools = "from leafmesh import tool\n\n@tool\ndef weigh(pots: int) -> int:\n    return pots\n"
    project.write({"configs/config.yaml": BARE, "agency/tools.py": tools})
    assert list(project.load().vocabulary().names["tool"]) == ["weigh"]  # type: ignore[misc]


def test_subfolders_are_left_out_where_that_is_said(project: Project) -> None:
    mesh = MESH.replace("*_agent.py", "*.py").replace('"}', '", recursive: false}')
    project.write({"configs/config.yaml": mesh, "agency/one.py": DESK, "agency/old/one.py": DESK})
    assert project.output() == {"said": "hi"}


def test_a_folder_that_is_not_there_is_refused_with_the_nearest(project: Project) -> None:
    project.write({"agencies/desk_agent.py": DESK})
    (problem,) = project.problems()
    assert (problem.code, problem.message) == ("missing-file", "folder './agency' does not exist")
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
