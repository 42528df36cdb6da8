"""`isolation = "process"`: each scenario has its own process, and a crash of it is an error of that scenario."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests import forked
from tests.isolation.project import results, verdicts

PROCESS = 'isolation = "process"'
TOOLS = """
import ctypes, itertools, os, signal

CALLS = []

def fine():
    CALLS.append(1)
    return str(len(CALLS)) + os.environ["SEEN"]

def exits():
    os._exit(7)

def crashes():
    ctypes.string_at(0)

def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def holds_the_interpreter():
    sum(itertools.repeat(0))
"""


@pytest.fixture(autouse=True)
def _seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEN", "here")


def run(*args: str) -> Any:
    return CliRunner().invoke(cli, ["run", ".", *args], prog_name="harness")


def test_a_process_that_exits_or_crashes_is_an_error_of_its_scenario_only(project: Any) -> None:
    project(TOOLS, "fine", "exits", "crashes", "is_killed", "fine", settings=PROCESS)
    assert run().exit_code == 3
    assert verdicts() == ["passed", "error", "error", "error", "passed"]
    ends = [line["error"]["message"] for line in results() if line["error"]]
    assert ends == [
        f"the process that ran this scenario {how} in tool 'call' of node 'w'"
        for how in ("left with 7", "was ended by SIGSEGV", "was ended by SIGKILL (as when memory runs out)")
    ]


def test_variants_are_scored_in_separate_processes_too(project: Any) -> None:
    project(TOOLS, "fine", "exits", settings=PROCESS)
    Path("v.yaml").write_text("harness: 1\nvariants: [{name: other, env: {TONE: formal}}]\n")
    scored = CliRunner().invoke(cli, ["score", ".", "--variants", "v.yaml", "--report", "scored"])
    assert scored.exit_code == 3
    assert [line["verdict"] for line in results(Path("scored"))] == ["passed", "error", "passed", "error"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_results_and_digests_are_the_same_as_in_one_process(project: Any, jobs: str) -> None:
    names = ("fine", "fine", "fine")
    project(TOOLS, *names, settings=f"{PROCESS}\n", expect="{status: completed}")
    run("-j", jobs)
    isolated = results()
    assert all(line["digest"] for line in isolated)
    project(TOOLS.replace("CALLS.append(1)", "CALLS[:] = [1]"), *names, expect="{status: completed}")
    run()
    assert results() == isolated  # if modules keep no state from one scenario to the next


def test_a_tool_that_cannot_be_interrupted_is_killed_with_its_process(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.workers.pool.OVERTIME_S", 0.0)
    settings = f"{PROCESS}\nreal_timeout = 1"
    project(TOOLS, "holds_the_interpreter", settings=settings)
    run()
    (line,) = results()
    assert (line["verdict"], line["error"]["code"]) == ("error", "real-timeout")


def test_pytest_runs_each_scenario_in_a_separate_process_too(project: Any) -> None:
    project(TOOLS, "fine", "crashes", "fine", settings=PROCESS)
    done = forked.run(["pytest", "-q", "-p", "no:cacheprovider", "."], timeout=120)
    assert "1 failed, 2 passed" in done.stdout
    assert verdicts() == ["passed", "error", "passed"]


def test_an_unknown_isolation_is_refused(project: Any) -> None:
    project(TOOLS, "fine", settings='isolation = "thread"')
    result = run()
    assert result.exit_code == 2
    assert (
        'setting \'isolation\' in [tool.harness] in pyproject.toml: expected "none" or "process"'
        in result.stderr
    )


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_library_that_a_tool_imports_while_it_runs_fetches_no_data(
    project: Any, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    tools = "import os\ndef call():\n    return os.environ['LITELLM_LOCAL_MODEL_COST_MAP']\n"
    project(tools, "call", settings=f'isolation = "{isolation}"')
    assert run().exit_code == 0
