"""Scenarios that a changed file affects, and the reasons, in the tutorial, which has all dialects."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from harness.scenario.load import discover, load_file
from harness.scenario.model import Scenario
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects

TUTORIAL = Path(__file__).parents[2] / "scenarios/tutorial"
Why = Callable[..., dict[str, set[str]]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy of the tutorial as a project, with an unreferenced data file and modules that tools import."""
    root = tmp_path_factory.mktemp("project").resolve() / "tutorial"
    shutil.copytree(TUTORIAL, root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "pyproject.toml").write_text("[tool.harness]\n")
    (root / "data").mkdir()
    (root / "data/prices.csv").write_text("")
    tools = root / "support_tools.py"
    tools.write_text(f"from shop.rates import today\nimport gone\n{tools.read_text()}")
    (root / "shop").mkdir()
    (root / "shop/__init__.py").write_text("")
    (root / "shop/rates.py").write_text("from . import days\n\ntoday = 1\n")
    (root / "shop/days.py").write_text("")
    (root / "shop/unused.py").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        yield root


@pytest.fixture(scope="module")
def scenarios(project: Path) -> Sequence[Scenario]:
    return [scenario for file in discover([project]) for scenario in load_file(file).scenarios]


@pytest.fixture
def why(project: Path, scenarios: Sequence[Scenario]) -> Why:
    """Return a function: changed files to the reasons why scenarios are selected, by scenario file."""

    def found(*changed: str) -> dict[str, set[str]]:
        changes = Changes("HEAD", frozenset(project / name for name in changed))
        reasons = InputFinder(Projects(), changes).reasons(scenarios)
        told: dict[str, set[str]] = {}
        for scenario, reason in zip(scenarios, reasons, strict=True):
            if reason:
                told.setdefault(scenario.file.name.partition(".")[0], set()).add(reason)
        return told

    return found


USE_TOOLS = ["parcels", "refunds", "returns"]


@pytest.mark.parametrize(
    ("changed", "suites"),
    [
        ("triage.scenario.yaml", ["triage"]),
        ("agents/triage.yaml", ["desk", "triage"]),  # the front desk runs it as a sub-agent
        ("agents/adviser.yaml", ["parcels"]),
        ("agents/prompts/returns.yaml", ["returns"]),
        ("agents/complaints/scripts/revise.py", ["complaints"]),
        ("agents/workshop/agency/workshop_agents.py", ["workshop"]),
        ("agents/workshop/agency/new_agents.py", ["workshop"]),  # its folder is searched for agents
        ("support_tools.py", USE_TOOLS),
    ],
)
def test_a_changed_file_affects_the_scenarios_that_read_it(why: Why, changed: str, suites: list[str]) -> None:
    assert why(changed) == {suite: {f"{changed} changed"} for suite in suites}


@pytest.mark.parametrize(
    ("changed", "by"),
    [
        ("shop/rates.py", "support_tools.py"),
        ("shop/__init__.py", "support_tools.py"),
        ("shop/days.py", "shop/rates.py"),
        ("gone.py", "support_tools.py"),  # it was removed
    ],
)
def test_a_changed_module_affects_the_scenarios_whose_tools_import_it(
    why: Why, changed: str, by: str
) -> None:
    found = why(changed)
    assert sorted(found) == USE_TOOLS
    assert {reason for reasons in found.values() for reason in reasons} == {
        f"{changed} changed, which {by} imports"
    }


@pytest.mark.parametrize("changed", ["pyproject.toml", "conftest.py", "pytest.ini"])
def test_a_changed_project_file_affects_all_scenarios(
    why: Why, scenarios: Sequence[Scenario], changed: str
) -> None:
    assert len(why(changed)) == len({scenario.file for scenario in scenarios})


@pytest.mark.parametrize(
    "changed",
    [
        "README.md",
        "LICENSE",
        ".github/workflows/ci.yml",
        "shop/unused.py",
        "other.scenario.yaml",
        "reports/latest/x.csv",
    ],
)
def test_a_file_that_no_scenario_reads_affects_none(why: Why, changed: str) -> None:
    assert why(changed) == {}


def test_unreferenced_data_affects_all_scenarios_that_run_code(why: Why) -> None:
    found = why("data/prices.csv")
    assert sorted(found) == ["complaints", *USE_TOOLS, "workshop"]
    assert found["returns"] == {"data/prices.csv changed, and code of this scenario may read it"}


@pytest.mark.parametrize(
    "line",
    [
        "import importlib",
        "from importlib import import_module",
        "import subprocess",
        "import sys; sys.path.append('x')",
        "x = __import__('y')",
        "def broken(",
    ],
)
def test_any_python_file_affects_a_module_with_dynamic_imports(why: Why, project: Path, line: str) -> None:
    file = project / "shop/days.py"
    file.write_text(line)
    try:
        assert why("shop/unused.py")["returns"] == {
            "shop/unused.py changed, and shop/days.py may import it, which is only known at run time"
        }
    finally:
        file.write_text("")


def test_any_file_affects_a_manifest_that_cannot_be_loaded(why: Why, project: Path) -> None:
    prompts = project / "agents/prompts/returns.yaml"
    text = prompts.read_text()
    prompts.unlink()
    try:
        assert why("agents/prompts/returns.yaml")["returns"] == {"agents/prompts/returns.yaml changed"}
        (reason,) = why("data/prices.csv", "shop/unused.py")["returns"]
        assert "data/prices.csv changed" in reason
    finally:
        prompts.write_text(text)


def test_a_cassette_affects_the_scenarios_that_replay_it(project: Path, why: Why) -> None:
    file = project / "recorded.scenario.yaml"
    file.write_text(
        "harness: 1\nmanifest: agents/triage.yaml\nscenarios:\n"
        "  - {name: played, cassette: desk/one}\n  - {name: other, cassette: desk/two}\n"
    )
    try:
        scenarios = load_file(file).scenarios
        changes = Changes("HEAD", frozenset({project / "cassettes/desk/one/http.yaml"}))
        assert InputFinder(Projects(), changes).reasons(scenarios) == [
            "cassettes/desk/one/http.yaml changed",
            "",
        ]
        assert why("cassettes/desk/one/http.yaml") == {}
    finally:
        file.unlink()


def test_the_cassette_of_a_row_affects_that_row(project: Path) -> None:
    file = project / "recorded.scenario.yaml"
    file.write_text(
        "harness: 1\nmanifest: agents/triage.yaml\nscenarios:\n"
        "  - {name: row, cassette: desk, cases: [{name: one}, {name: two}], input: '${case.name}'}\n"
    )
    try:
        scenarios = load_file(file).scenarios
        changes = Changes("HEAD", frozenset({project / "cassettes/desk/cases/two/http.yaml"}))
        assert InputFinder(Projects(), changes).reasons(scenarios) == [
            "",
            "cassettes/desk/cases/two/http.yaml changed",
        ]
    finally:
        file.unlink()


def test_a_table_of_cases_affects_the_scenarios_of_its_rows(project: Path) -> None:
    (project / "data/my rows.csv").write_text("name,word\none,hi\ntwo,ho\n")
    file = project / "table.scenario.yaml"
    file.write_text(
        "harness: 1\nmanifest: agents/triage.yaml\nscenarios:\n"
        "  - {name: of a table, cases: data/my rows.csv, input: '${case.word}'}\n"
    )
    try:
        scenarios = load_file(file).scenarios
        changes = Changes("HEAD", frozenset({project / "data/my rows.csv"}))
        assert InputFinder(Projects(), changes).reasons(scenarios) == ["data/my rows.csv changed"] * 2
    finally:
        file.unlink()


def test_the_prompt_of_a_judge_affects_the_scenarios_that_use_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "judges").mkdir()
    (project / "judges/own.txt").write_text('{"grade": 1}')
    file = project / "judged.scenario.yaml"
    file.write_text(
        "harness: 1\nmanifest: agents/triage.yaml\nscenarios:\n"
        "  - {name: a, expect: {judge: {metric: tone, model: m, prompt: {file: judges/own.txt}}}}\n"
    )
    try:
        scenarios = load_file(file).scenarios
        changes = Changes("HEAD", frozenset({project / "judges/own.txt"}))
        assert InputFinder(Projects(), changes).reasons(scenarios) == ["judges/own.txt changed"]
        monkeypatch.setenv("HARNESS_JUDGE_PROMPTS", str(project / "judges"))
        changes = Changes("HEAD", frozenset({project / "judges/tone.txt"}))
        assert InputFinder(Projects(), changes).reasons(scenarios) == ["judges/tone.txt changed"]
    finally:
        file.unlink()
