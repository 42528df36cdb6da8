"""`harness run -j`: results, errors and interruption of worker processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.workers import fork_server
from tests.cli.fixtures import Invoke, RunCommand, WriteFile, WriteSuite
from tests.forked import Process
from tests.isolation.project import FLOW

PASSES = "{name: counts to one, repeat: 3, expect: {state: {count: 1}}}"
FAILS = "{name: counts to two, expect: {state: {count: 2}}}"
CANNOT_BE_JUDGED = "{name: nobody answers, manifest: asking.yaml, env: {MODEL: tiny}, input: hello}"
SKIPPED = "{name: later, skip: not yet}"

TOOLS = """\
import os, threading

def fine():
    print("a tool prints")

def crash():
    os._exit(7)

def wait():
    print("begun", flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def calls(write: WriteFile) -> Any:
    """A function that writes a suite with one scenario per tool."""

    def write_suite(*tools: str) -> None:
        write("calls.yaml", FLOW)
        write("tools.py", TOOLS)
        listed = [f"{{name: {n} {tool}, tools: {{call: tools.{tool}}}}}" for n, tool in enumerate(tools)]
        text = "".join(f"\n  - {scenario}" for scenario in listed)
        write("calls.scenario.yaml", f"harness: 1\nmanifest: calls.yaml\nscenarios:{text}\n")

    return write_suite


def results() -> list[dict[str, Any]]:
    text = Path("reports/latest/results.jsonl").read_text(encoding="utf-8")
    return [{**json.loads(line), "wall": 0} for line in text.splitlines()]


def summary() -> dict[str, Any]:
    return dict(json.loads(Path("reports/latest/summary.json").read_text(encoding="utf-8"))["total"], wall=0)


@pytest.mark.parametrize(("jobs", "more"), [("2", ()), ("auto", ("-x",))])
def test_results_and_their_order_are_the_same_as_in_one_process(
    invoke: Invoke, suite: WriteSuite, jobs: str, more: tuple[str, ...]
) -> None:
    suite(PASSES, SKIPPED, *(f"{{name: number {n}}}" for n in range(9)), CANNOT_BE_JUDGED, FAILS)
    suite(FAILS, PASSES, file="b.scenario.yaml")
    serial = invoke("run", ".", *more)
    expected, total = results(), summary()
    parallel = invoke("run", ".", "-j", jobs, *more)
    assert results() == expected
    assert summary() == total
    assert parallel.exit_code == serial.exit_code


def test_json_lines_on_standard_output_are_ordered_and_without_tool_output(
    harness: RunCommand, calls: Any
) -> None:
    calls(*["fine"] * 6)
    done = harness("run", ".", "-j", "2", "--json", "-")
    assert done.stdout == Path("reports/latest/results.jsonl").read_text()
    assert [json.loads(line)["scenario"][0] for line in done.stdout.splitlines()] == list("012345")
    assert "a tool prints" in done.stderr


def test_scenarios_and_results_of_any_size_are_transferred(invoke: Invoke, suite: WriteSuite) -> None:
    suite(*(f"{{name: number {n}, expect: {{state: {{count: {'x' * 400_000}}}}}}}" for n in range(6)))
    assert invoke("run", ".", "-j", "2", "-q").exit_code == 1
    assert [line["verdict"] for line in results()] == ["failed"] * 6


def test_without_workers_a_tool_that_exits_fails_only_its_scenario(invoke: Invoke, calls: Any) -> None:
    calls("fine", "crash", "fine")
    told = invoke("run", ".").output
    assert "2 passed · 1 failed" in told
    assert "it called os._exit(7), which would have ended the process of all scenarios" in told
    assert "tools.py:7 in crash\n      os._exit(7)\n" in told


def test_a_worker_that_dies_is_an_error_of_its_scenario_only(invoke: Invoke, calls: Any) -> None:
    calls("fine", "crash", "fine", "crash", "fine", "fine")
    result = invoke("run", ".", "-j", "2")
    assert result.exit_code == 3
    assert [line["verdict"] for line in results()] == [
        "passed",
        "error",
        "passed",
        "error",
        "passed",
        "passed",
    ]
    error = results()[1]["error"]
    assert (error["type"], error["code"]) == ("WorkerDied", "worker-died")
    assert error["message"] == "the process that ran this scenario left with 7 in tool 'call' of node 'w'"


def test_only_the_fork_server_of_workers_ignores_ctrl_c(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def handler() -> Any:
        return signal.getsignal(signal.SIGINT)

    inherited, before = [], handler()
    monkeypatch.setattr("multiprocessing.forkserver.ensure_running", lambda: inherited.append(handler()))
    fork_server.start()
    assert (inherited, handler()) == ([signal.SIG_IGN], before)


@pytest.mark.parametrize(
    "command",
    [
        ["run", "gone.scenario.yaml"],
        ["score", "gone.scenario.yaml", "--variants", "gone.yaml"],
        ["evolve", "gone.yaml", "gone.scenario.yaml"],
    ],
    ids=["run", "score", "evolve"],
)
@pytest.mark.parametrize(
    ("more", "starts"), [(["-j", "2"], True), ([], False), (["-j", "2", "--record-mode", "once"], False)]
)
def test_workers_start_importing_before_files_are_read(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, command: list[str], more: list[str], starts: bool
) -> None:
    started: list[str] = []
    monkeypatch.setattr(fork_server, "start", lambda: started.append("once"))
    assert invoke(*command, *more).exit_code == 2
    assert bool(started) == starts


def test_a_worker_that_cannot_start_ends_the_run_with_the_reason(calls: Any, write: WriteFile) -> None:
    calls("fine", "fine", "fine")
    script = write("script.py", "from harness.cli.main import main\nmain()\n")  # each worker runs it again
    command = [sys.executable, str(script), "run", ".", "-j", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "harness broke: no worker process can start: the first left with" in done.stderr
    assert "needs `if __name__ == '__main__':`" in done.stderr


def test_ctrl_c_keeps_results_and_abandons_a_waiting_tool(calls: Any) -> None:
    calls("fine", "wait", "fine")
    command = ["harness", "run", ".", "-j", "2"]
    with Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        shown = ""
        while "begun" not in shown or shown.count("passed") < 2:
            shown += (line := process.stdout.readline())
            assert line
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    assert stderr.startswith("interrupted")
    assert [line["scenario"] for line in results()] == ["0 fine", "2 fine"]


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "1.5"])
def test_an_invalid_number_of_jobs_is_refused(invoke: Invoke, suite: WriteSuite, jobs: str) -> None:
    suite(PASSES)
    result = invoke("run", ".", f"--jobs={jobs}")
    assert result.exit_code == 2
    assert f"'{jobs}' is neither a number of processes nor 'auto'" in result.stderr
