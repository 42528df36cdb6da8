"""Imports in the Python files of a mesh, and their side effects. NOTES 1.9, 8."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.dialects.leafmesh.project import DESK, MESH, Project
from tests.dialects.places import text_at


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


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_that_yields_fails(project: Project, kind: str) -> None:
    project.write({"agency/desk_agent.py": f"{kind} desk(a, b, c):\n    yield 1\n"})
    error = project.run().observed.error
    assert error is not None
    assert (error["type"], error["message"]) == (
        "TypeError",
        "the function of agent 'desk' yields: it must return its output",
    )


def test_the_problems_of_all_files_are_reported_at_once(project: Project) -> None:
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
def test_unknown_names_of_the_stand_in_are_refused_at_their_import(
    project: Project, line: str, hint: str, imports: bool
) -> None:
    project.write({"agency/desk_agent.py": f"import os\n{line}\n{DESK}"})
    (problem,) = project.problems(imports=imports)
    assert (problem.code, problem.hint) == ("import", hint)
    assert problem.span is not None
    assert problem.span.line == 2


def test_a_file_may_try_to_import_a_missing_module(project: Project) -> None:
    line = "try:\n    from leafmesh import stream\nexcept ImportError:\n    stream = None\n"
    project.write({"agency/desk_agent.py": f"{line}{DESK}"})
    assert project.output() == {"said": "hi"}


def test_nothing_is_executed_without_imports(project: Project) -> None:
    ran = project.folder / "ran"
    line = f"open({str(ran)!r}, 'w').close()\nraise SystemExit\n"
    project.write({"agency/desk_agent.py": f"{line}{DESK}", "agency/tools.py": line})
    assert project.load(imports=False).nodes
    assert not ran.exists()


def test_modules_are_imported_once_and_each_run_finds_them_as_they_were_then(project: Project) -> None:
    imports = project.folder / "imports"
    counting = f"with open({str(imports)!r}, 'a') as file:\n    file.write('x')\nruns = []\n"
    desk = "def desk(a, b, c):\n    runs.append(1)\n    return {'runs': len(runs)}\n"
    project.write({"agency/desk_agent.py": counting + desk})
    assert [project.output(), project.output()] == [{"runs": 1}, {"runs": 1}]
    assert imports.read_text() == "x"


def test_what_a_module_sets_in_the_environment_is_set_for_every_run(project: Project) -> None:
    setting = "import os\nos.environ['PRICE_LIST'] = 'spring'\n"
    reading = "def desk(first, input_data, context):\n    return {'list': os.environ.get('PRICE_LIST')}\n"
    project.write({"agency/desk_agent.py": setting + reading})
    assert [project.output(), project.output()] == [{"list": "spring"}, {"list": "spring"}]
