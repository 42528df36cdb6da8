"""The root of a project is found from the scenario's file, whatever the current folder."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tests.preloaded  # noqa: F401
from tests.cli.fixtures import Invoke, WriteFile
from tests.forked import run
from tests.manifests import COUNTER

SCENARIOS = "harness: 1\nmanifest: ../counter.yaml\nscenarios: [{name: one}, {name: two}]\n"
FILE = "shop/scenarios/deep/a.scenario.yaml"
REPORT = "reports/latest/summary.json"


@pytest.fixture(autouse=True)
def suite(write: WriteFile) -> None:
    """A scenario file, and a folder outside the project in which commands are started."""
    write("shop/scenarios/counter.yaml", COUNTER)
    write(FILE, SCENARIOS)
    write("elsewhere/pyproject.toml", "[tool.harness]\n")


@pytest.fixture
def run_pytest(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that runs pytest in this process."""
    monkeypatch.chdir(tmp_path)
    return partial(pytester.runpytest_inprocess, "-q", "-p", "no:cacheprovider")


def reports() -> list[str]:
    return sorted(path.as_posix() for path in Path().rglob("summary.json"))


@pytest.mark.parametrize(
    ("marks", "root"),
    [
        ({"shop/pyproject.toml": "[tool.harness]\n", "shop/scenarios/pyproject.toml": ""}, "shop"),
        ({"pyproject.toml": "", "shop/scenarios/pyproject.toml": ""}, "shop/scenarios"),
        ({"pyproject.toml": "[tool.harness]\n", "shop/.git/HEAD": ""}, "shop"),
        ({"shop/.git/HEAD": "", "shop/scenarios/pyproject.toml": ""}, "shop/scenarios"),
        ({}, "shop"),
    ],
    ids=[
        "the nearest [tool.harness]",
        "else the nearest pyproject.toml",
        "never above the repository",
        "which is the last to be asked",
        "else what is above `scenarios`",
    ],
)
def test_reports_and_recordings_are_at_the_project_root(
    invoke: Invoke, write: WriteFile, marks: dict[str, str], root: str
) -> None:
    from harness.settings import load_settings

    for name, text in marks.items():
        write(name, text)
    assert invoke("run", FILE).exit_code == 0
    assert reports() == [f"{root}/{REPORT}"]
    assert load_settings(Path(FILE).parent).cassettes == Path(root).resolve() / "cassettes"


def test_without_a_marker_the_root_is_the_folder_of_the_file(invoke: Invoke, write: WriteFile) -> None:
    write("counter.yaml", COUNTER)
    write("suite/a.scenario.yaml", SCENARIOS)
    write("suite/more/b.scenario.yaml", SCENARIOS.replace("..", "../.."))
    invoke("run", "suite/more/b.scenario.yaml")
    assert reports() == ["suite/more/" + REPORT]
    invoke("run", "suite")  # several files: their common folder
    assert reports() == ["suite/more/" + REPORT, "suite/" + REPORT]


def test_the_command_and_pytest_write_to_one_folder_from_any_folder(
    invoke: Invoke, write: WriteFile, run_pytest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("shop/pyproject.toml", "[tool.harness]\nreport = 'out'\n")
    monkeypatch.chdir("elsewhere")
    done = invoke("run", "../shop/scenarios")
    assert any(line.endswith("/shop/out") for line in done.stdout.splitlines())
    monkeypatch.chdir("..")
    assert reports() == ["shop/out/summary.json"]
    Path("shop/out/summary.json").unlink()
    monkeypatch.chdir("elsewhere")
    run_pytest("../shop/scenarios").assert_outcomes(passed=2)
    assert json.loads(Path("../shop/out/summary.json").read_text())["total"]["passed"] == 2
    assert not list(Path().rglob("summary.json"))


def test_each_scenario_has_the_settings_of_its_project(invoke: Invoke, write: WriteFile) -> None:
    for name, folder in (("one", "lib"), ("two", "tools")):
        invoke("init", name)
        write(f"{name}/{folder}/shop_tools.py", Path(name, "agents/shop_tools.py").read_text())
        Path(name, "agents/shop_tools.py").unlink()
        write(f"{name}/pyproject.toml", f"[tool.harness]\npythonpath = ['{folder}']\n")
    done = invoke("run", "one", "two", "--report", "both")
    assert "4 passed" in done.stdout, done.output
    assert reports() == ["both/summary.json"]


def test_an_unknown_setting_is_an_error(invoke: Invoke, write: WriteFile) -> None:
    write("shop/pyproject.toml", "[tool.harness]\nreprot = 'out'\n")
    done = invoke("run", "shop")
    assert (done.exit_code, reports()) == (2, [])
    assert "unknown setting 'reprot'" in done.stderr


def summary(folder: str = "shop/reports/latest") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "summary.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["-k", "one", "shop"], "1 of 2 scenarios selected (-k 'one')"),
        ([f"{FILE}::two"], "1 of 2 scenarios selected (FILE::NAME)"),
        (["shop"], None),
        (["-k", "scenario", "shop"], None),
    ],
)
def test_a_partial_run_is_marked(invoke: Invoke, args: list[str], reason: str | None) -> None:
    done = invoke("run", *args)
    assert (summary()["complete"], summary()["reason"]) == (reason is None, reason)
    assert ("not whole" in done.stdout) is (reason is not None)
    assert ("Not a whole run" in Path("shop/reports/latest/summary.md").read_text()) is (reason is not None)


def test_a_run_that_stopped_at_the_first_failure_is_marked(invoke: Invoke, write: WriteFile) -> None:
    write(FILE, SCENARIOS.replace("{name: one}", "{name: one, expect: {path: [other]}}"))
    invoke("run", "-x", "shop")
    assert summary()["reason"] == "stopped at the first that did not pass (-x) after 1 of 2 runs"


def test_the_last_complete_run_is_kept_until_the_next_one(invoke: Invoke) -> None:
    kept = "shop/reports/latest/last-whole"
    invoke("run", "shop")
    assert not Path(kept).exists()
    for _ in range(2):
        invoke("run", "shop", "-k", "two")
        assert (summary()["total"]["passed"], summary(kept)["total"]["passed"]) == (1, 2)
        assert len(Path(kept, "results.jsonl").read_text().splitlines()) == 2
    invoke("run", "shop")
    assert summary()["complete"]
    assert not Path(kept).exists()


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["-k", "one", "shop"], "1 of 2 scenarios selected (-k 'one')"),
        ([f"{FILE}::two"], "1 of 2 scenarios selected (FILE::NAME)"),
        (["shop"], None),
    ],
    ids=["-k", "FILE::NAME", "whole"],
)
def test_a_partial_run_of_pytest_is_marked(run_pytest: Any, args: list[str], reason: str | None) -> None:
    done = run_pytest(*args)
    assert (summary()["complete"], summary()["reason"]) == (reason is None, reason)
    assert ("not whole" in done.stdout.str()) is (reason is not None)


def test_a_partial_run_of_pytest_with_workers_is_marked_from_any_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir("elsewhere")
    done = run(["pytest", "-q", "-p", "no:cacheprovider", "-n", "1", "-k", "one", "../shop"])
    assert summary("../shop/reports/latest")["reason"] == "1 of 2 scenarios selected (-k 'one')", done.stdout
    assert "not whole" in done.stdout


def test_pytest_marks_runs_with_lf_with_x_and_with_invalid_files(write: WriteFile, run_pytest: Any) -> None:
    write(FILE, SCENARIOS.replace("{name: one}", "{name: one, expect: {path: [other]}}"))
    cache = ["-p", "cacheprovider", "-o", "cache_dir=.cache"]
    run_pytest("shop", "-x", *cache)
    assert summary()["reason"] == "stopped by -x after 1 of 2 scenarios"
    run_pytest("shop", "--lf", *cache)
    assert summary()["reason"] == "1 scenario selected (--lf)"
    write("shop/scenarios/b.scenario.yaml", "harness: 2\n")
    run_pytest("shop", "--continue-on-collection-errors")
    assert summary()["reason"] == "b.scenario.yaml could not be read"
