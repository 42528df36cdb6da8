"""Interrupted runs: Ctrl-C, and a closed output pipe."""

import json
import signal
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from harness.cli.interruption import raised_once
from harness.scenario.real_limit import progress
from tests.cli.fixtures import Invoke, WriteSuite
from tests.forked import Process
from tests.isolation.project import FLOW

MANY = ["{name: again and again, repeat: 100000, expect: {state: {count: 1}}}", "{name: afterwards}"]


@pytest.fixture
def start_run() -> Iterator[Callable[..., Process]]:
    """A function that starts a run of several minutes, and waits for its third line."""
    with ExitStack() as processes:

        def start(*args: str) -> Process:
            command = ["harness", "run", ".", *args]
            popen = Process(command, stdout=PIPE, stderr=PIPE)
            processes.enter_context(popen)
            processes.callback(popen.kill)
            assert popen.stdout is not None
            for _ in range(3):
                assert popen.stdout.readline()
            return popen

        yield start


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_its_results_and_exits_with_3(
    suite: WriteSuite, start_run: Any, name: Any
) -> None:
    suite(*MANY)
    process = start_run()
    process.send_signal(name)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "of 100001 runs" in stdout
    assert stderr.startswith("interrupted")
    written = Path("reports/latest/results.jsonl").read_text().splitlines()
    assert len(written) >= 3
    assert all(json.loads(line)["passed"] for line in written)
    assert json.loads(Path("reports/latest/summary.json").read_text())["total"]["runs"] == len(written)
    suites = ET.parse("reports/latest/junit.xml").getroot()
    assert [case.get("name") for case in suites.iter("testcase")] == ["again and again"]
    assert {"name": "complete", "value": "false"} in [each.attrib for each in suites.iter("property")]


@pytest.mark.parametrize("args", [[], ["--json", "-"]], ids=["text", "json"])
def test_a_closed_output_pipe_ends_the_run_silently(suite: WriteSuite, start_run: Any, args: Any) -> None:
    suite(*MANY)
    process = start_run(*args)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    assert process.wait(timeout=60) == 3
    assert "Traceback" not in told
    assert "BrokenPipe" not in told
    assert Path("reports/latest/summary.json").exists()


def test_an_interrupt_before_the_first_scenario_prints_only_interrupted(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_kind: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.cli.schema.schema_text", interrupted)
    result = invoke("schema")
    assert (result.exit_code, result.stderr) == (3, "interrupted\n")


WAITS = """\
harness: 1
manifest: calls.yaml
scenarios: [{name: waits, tools: {call: waiting.wait}}]
"""

TOOL = """\
import asyncio, threading

def wait():
    print("begun", flush=True)
    threading.Event().wait()
"""
IN_A_THREAD = f"{TOOL}\nblock = wait\nasync def wait():\n    await asyncio.to_thread(block)\n"


@pytest.mark.parametrize("tool", [TOOL, IN_A_THREAD], ids=["in the main thread", "in a thread"])
@pytest.mark.parametrize(
    ("command", "code"),
    [(["harness", "run", "."], 3), (["pytest", "-q", "-s"], 2)],
    ids=["harness", "pytest"],
)
def test_an_interrupt_abandons_a_tool_that_never_returns(
    command: list[str], code: int, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.scenario.yaml": WAITS, "calls.yaml": FLOW, "waiting.py": tool}.items():
        Path(name).write_text(text)
    with Process(command, stdout=PIPE, stderr=PIPE) as process, ExitStack() as ended:
        ended.callback(process.kill)
        assert process.stdout is not None
        while "begun" not in (line := process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    assert stderr.startswith("interrupted") or "KeyboardInterrupt" in stdout


IN_ITS_THREAD = """\
import asyncio, signal, threading

def block():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    threading.Event().wait()

async def wait():
    await asyncio.to_thread(block)
"""


def test_an_interrupt_that_another_thread_receives_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.scenario.yaml": WAITS, "calls.yaml": FLOW, "waiting.py": IN_ITS_THREAD}.items():
        Path(name).write_text(text)
    with Process(["harness", "run", "."], stdout=PIPE, stderr=PIPE) as process, ExitStack() as ended:
        ended.callback(process.kill)
        _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr.startswith("interrupted")) == (3, True)


def test_a_request_to_end_that_is_repeated_at_once_is_raised_once() -> None:
    with raised_once():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # `timeout` sends it to the process, then to its group
    progress.stopped = False
