"""`harness init` and `harness schema`."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cli.fixtures import Invoke, RunCommand, WriteFile

EXAMPLE = [
    "agents/shop.yaml",
    "agents/shop_tools.py",
    "scenarios/scenario.schema.json",
    "scenarios/shop.scenario.yaml",
]


def test_the_example_passes(harness: RunCommand, invoke: Invoke) -> None:
    written = invoke("init", "demo")
    assert written.exit_code == 0
    assert "harness run demo/scenarios" in written.stdout
    done = harness("run", "demo/scenarios")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert invoke("validate", "demo").stdout == "1 manifest, 1 scenario file: no problems\n"
    prompts = invoke("prompts", "demo/agents/shop.yaml").stdout
    assert [line.split()[0] for line in prompts.splitlines() if line[:1].strip()] == ["classify", "order"]


@pytest.mark.parametrize(
    ("dialect", "manifest"),
    [("agentspec", "shop.yaml"), ("yagra", "shop.yaml"), ("loki", "shop/graph.yaml")],
)
def test_the_example_of_another_dialect_passes(dialect: str, manifest: str, invoke: Invoke) -> None:
    written = invoke("init", "demo", "--dialect", dialect)
    assert written.exit_code == 0
    assert f"harness show demo/agents/{manifest}" in written.stdout
    done = invoke("run", "demo/scenarios")
    assert done.exit_code == 0, done.output
    assert "2 passed" in done.stdout
    assert json.loads(Path("demo/reports/latest/summary.json").read_text())["warnings"] == []
    assert invoke("validate", "demo").stdout == "1 manifest, 1 scenario file: no problems\n"
    schema = json.loads(Path("demo/scenarios/scenario.schema.json").read_text(encoding="utf-8"))
    scenarios = yaml.safe_load(Path("demo/scenarios/shop.scenario.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(scenarios)


def test_the_example_of_a_mesh_passes(harness: RunCommand, invoke: Invoke) -> None:
    written = invoke("init", "demo", "--dialect", "leafmesh")
    assert written.exit_code == 0
    assert "harness show demo/configs/config.yaml" in written.stdout
    done = harness("run", "demo/scenarios")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    assert invoke("validate", "demo").stdout == "1 manifest, 1 scenario file: no problems\n"
    assert "waits at most 60 s for parcels AND payments" in invoke("show", "demo/configs/config.yaml").stdout
    schema = json.loads(Path("demo/scenarios/scenario.schema.json").read_text(encoding="utf-8"))
    scenarios = yaml.safe_load(Path("demo/scenarios/shop.scenario.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(scenarios)


def test_the_example_of_a_langgraph_app_passes(harness: RunCommand, invoke: Invoke) -> None:
    written = invoke("init", "demo", "--dialect", "langgraph")
    assert written.exit_code == 0
    assert "harness show demo/langgraph.json" in written.stdout
    assert json.loads(Path("demo/langgraph.json").read_text()) == {
        "dependencies": ["."],
        "graphs": {"shop": "./shop/graph.py:graph"},
    }
    done = harness("run", "demo/scenarios")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    assert json.loads(Path("demo/reports/latest/summary.json").read_text())["warnings"] == []
    for options in ((), ("--imports",)):
        checked = harness("validate", "demo", *options)
        assert checked.stdout == "1 manifest, 1 scenario file: no problems\n"
    assert "tools_condition ─▶ tools" in harness("show", "demo/langgraph.json").stdout
    schema = json.loads(Path("demo/scenarios/scenario.schema.json").read_text(encoding="utf-8"))
    scenarios = yaml.safe_load(Path("demo/scenarios/shop.scenario.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(scenarios)


def test_a_dialect_without_an_example_is_refused(invoke: Invoke) -> None:
    refused = invoke("init", "--dialect", "lokki")
    assert refused.exit_code == 2
    assert "'langgraph', 'sherma', 'agentspec', 'yagra', 'loki', 'leafmesh'" in refused.stderr


def test_the_example_goes_into_the_current_folder_by_default(invoke: Invoke) -> None:
    assert invoke("init").exit_code == 0
    assert sorted(path.as_posix() for path in Path().rglob("*.*")) == sorted(
        [*EXAMPLE, ".gitignore", "pyproject.toml"]
    )


def test_without_a_project_init_creates_one(invoke: Invoke) -> None:
    shown = invoke("init", "demo").stdout
    assert "wrote demo/pyproject.toml\nwrote demo/.gitignore\n" in shown
    assert Path("demo/pyproject.toml").read_text().startswith("[tool.harness]\n")
    assert Path("demo/.gitignore").read_text() == "reports/\n__pycache__/\n.pytest_cache/\n"


def test_an_existing_project_is_used_and_its_gitignore_is_extended(invoke: Invoke, write: WriteFile) -> None:
    write("pyproject.toml", "")
    write(".gitignore", ".venv/\n/reports/*\n.pytest_cache")
    shown = invoke("init", "demo").stdout
    assert "added __pycache__/ to .gitignore\n" in shown
    assert Path(".gitignore").read_text() == ".venv/\n/reports/*\n.pytest_cache\n__pycache__/\n"
    assert not list(Path("demo").glob("*.*"))


def test_a_complete_gitignore_is_unchanged(invoke: Invoke, write: WriteFile) -> None:
    write("pyproject.toml", "")
    write(".gitignore", "__pycache__/\nreports\n.pytest_cache/\n")
    assert ".gitignore" not in invoke("init", "demo").stdout


def test_the_example_is_valid_against_its_schema(invoke: Invoke) -> None:
    invoke("init")
    schema = json.loads(Path("scenarios/scenario.schema.json").read_text(encoding="utf-8"))
    text = Path("scenarios/shop.scenario.yaml").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(text))
    assert text.startswith("# yaml-language-server: $schema=scenario.schema.json\n")


@pytest.mark.parametrize("name", EXAMPLE)
def test_nothing_is_overwritten(invoke: Invoke, write: WriteFile, name: Any) -> None:
    write(name, "mine")
    result = invoke("init")
    assert result.exit_code == 2
    assert f"already there: {name}" in result.stderr
    assert [path.as_posix() for path in Path().rglob("*.*")] == [name]
    assert Path(name).read_text() == "mine"


@pytest.mark.parametrize(("folder", "file"), [("taken", "taken"), ("taken/below", "taken"), (".", "agents")])
def test_a_file_in_place_of_a_folder_is_an_error_that_names_it(
    folder: str, file: str, invoke: Invoke, write: WriteFile
) -> None:
    write(file, "mine")
    result = invoke("init", folder)
    assert (result.exit_code, result.output) == (
        2,
        f"error: {file} is a file, where the example needs a folder [file-exists]\n"
        "    nothing was written; name another folder\n",
    )
    assert [path.as_posix() for path in Path().rglob("*")] == [file]


def test_the_schema_is_printed_or_written(invoke: Invoke) -> None:
    printed = invoke("schema").stdout
    assert json.loads(printed)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert invoke("schema", "-o", "s.json").output == ""
    assert Path("s.json").read_text(encoding="utf-8") == printed


def test_the_help_of_schema_says_how_editors_find_it(invoke: Invoke) -> None:
    assert "# yaml-language-server: $schema=" in invoke("schema", "--help").output
