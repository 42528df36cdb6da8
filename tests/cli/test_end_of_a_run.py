"""The end of a run on the terminal: the paths of its results, the same in `harness run` and pytest."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite

RunPytest = Callable[..., list[str]]
"""A function that runs pytest in the current folder and returns the lines it prints."""

FAILS = "{name: it's wrong, expect: {state: {count: 2}}}"
PASSES = "{name: right, expect: {state: {count: 1}}}"
TRACE = """harness trace 'a.scenario.yaml::it'"'"'s wrong'"""


@pytest.fixture
def run_by_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunPytest:
    monkeypatch.chdir(tmp_path)  # leave the folder of `pytester`

    def run(*args: str) -> list[str]:
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", f"--rootdir={tmp_path}", *args).outlines

    return run


def _from(lines: list[str], first: str) -> list[str]:
    """Return the lines from this one to the page, without the one that differs each time."""
    at = lines.index(first)
    end = next((i for i in range(at, len(lines)) if lines[i].startswith("report: ")), len(lines) - 1)
    return [line for line in lines[at : end + 1] if not line.startswith("real time")]


def test_the_last_lines_name_the_page_to_open(invoke: Invoke, suite: WriteSuite) -> None:
    suite(PASSES)
    assert invoke("run", ".").output.splitlines()[-2:] == [
        "results: reports/latest",
        "report: reports/latest/report.html",
    ]
    assert Path("reports/latest/report.html").is_file()
    assert "report:" not in invoke("run", ".", "-q").output


def test_a_failure_names_the_page_even_with_quiet(invoke: Invoke, suite: WriteSuite) -> None:
    suite(FAILS)
    assert invoke("run", ".", "-q", "--report", "elsewhere").output.endswith(
        "report: elsewhere/report.html\n"
    )


@pytest.mark.parametrize(
    ("options", "folder"), [((), ""), (("--report", "reports/latest"), ""), (("--report", "b c"), " 'b c'")]
)
def test_a_failure_names_its_trace_once(
    options: tuple[str, ...], folder: str, invoke: Invoke, suite: WriteSuite
) -> None:
    suite(FAILS, PASSES)
    lines = invoke("run", ".", *options).output.splitlines()
    assert [line for line in lines if "harness trace" in line] == [f"  trace  {TRACE}{folder}"]
    shown = invoke("trace", "a.scenario.yaml::it's wrong", *options[1:])
    assert (shown.exit_code, shown.output.splitlines()[0]) == (0, "a.scenario.yaml::it's wrong")


def test_a_later_repeat_is_named_with_its_number(invoke: Invoke, suite: WriteSuite) -> None:
    suite(f"{FAILS[:-1]}, repeat: 2}}")
    lines = invoke("run", ".").output.splitlines()
    assert [line for line in lines if "harness trace" in line] == [
        f"  trace  {TRACE}",
        f"  trace  {TRACE} --repeat 1",
    ]


def test_without_traces_no_trace_is_named(invoke: Invoke, suite: WriteSuite, write: WriteFile) -> None:
    suite(FAILS)
    assert "harness trace" not in invoke("run", ".", "--traces", "none").output
    write("a.scenario.yaml", "harness: 1\nmanifest: nowhere.yaml\nscenarios: [{name: a}]\n")
    assert "harness trace" not in invoke("run", ".").output


def test_pytest_prints_the_same_lines(invoke: Invoke, suite: WriteSuite, run_by_pytest: RunPytest) -> None:
    suite(FAILS, PASSES)
    suite(PASSES, file="b.scenario.yaml")
    ran = invoke("run", ".").output.splitlines()
    told = run_by_pytest()
    table = "a.scenario.yaml  1/2 passed  fitness 0.500"
    assert _from(told, table) == _from(ran, table)
    assert f"  trace  {TRACE}" in told


def test_pytest_names_the_folder_of_its_report(suite: WriteSuite, run_by_pytest: RunPytest) -> None:
    suite(FAILS)
    told = run_by_pytest("--harness-report", "other")
    assert f"  trace  {TRACE} other" in told
    assert "report: other/report.html" in told
