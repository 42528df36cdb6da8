"""A run that takes too much real time is an error that says where it was, and the next run begins."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from harness.time.alarms import Alarm
from tests.isolation.project import results, verdicts, write_project

LIMIT = "real_timeout = 0.5"
"""On a busy machine a run needs a part of it to get to its tool."""

BLOCKS = {
    "sleeping": "time.sleep(1000)",
    "sleeping in C": "ctypes.CDLL(None).sleep(1000)",
    "Python that loops": "exec('while True: pass')",
    "reading from a pipe": "os.read(os.pipe()[0], 1)",
    "a child process": "subprocess.run(['sleep', '1000'])",
    "a catastrophic pattern": "re.match('(a+)+$', 'a' * 60 + 'b')",
    "waiting for a thread": "threading.Event().wait()",
}
IMPORTS = "import asyncio, ctypes, os, re, subprocess, threading, time\n"
"""What the tools below need."""

DIGITS = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
ENDLESS = f"'{''.join(f'{DIGITS}.exists({name}, ' for name in 'abcdefgh')}a > 9{')' * 8}'"

FINE = "def fine():\n    pass\n"


def run(*args: str) -> Any:
    return CliRunner().invoke(cli, ["run", ".", *args], prog_name="harness")


@pytest.fixture(autouse=True)
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first run of a process imports libraries."""
    file = write_project(tmp_path_factory.mktemp("first"), FINE, ["fine"], "", "")
    run_scenario(load_file(file).scenarios[0])


@pytest.mark.parametrize("name", BLOCKS)
def test_a_tool_that_blocks_is_left_and_named(project: Any, name: str) -> None:
    project(f"{IMPORTS}{FINE}\ndef blocks():\n    {BLOCKS[name]}\n", "fine", "blocks", "fine", settings=LIMIT)
    assert run().exit_code == 3
    assert verdicts() == ["passed", "error", "passed"]
    error = results()[1]["error"]
    assert (error["type"], error["code"], error["node"]) == ("RealTimeExceeded", "real-timeout", "w")
    assert error["message"] == (
        "the run took more than 0.5 real seconds (real_timeout) in tool 'call' of node 'w'"
    )
    assert error["where"].startswith("tools.py:6:")


def test_a_line_that_is_reached_when_the_time_is_up_already_is_named(project: Any) -> None:
    """`signal.pause` lasts until the alarm rings, and nothing of the user's code runs meanwhile."""
    tools = (
        "import sched, signal, time\n\ndef blocks():\n    time.sleep(1000)\n\nin_turn = sched.scheduler()\n"
    )
    tools += "in_turn.enter(0, 1, signal.pause)\nin_turn.enter(0, 2, blocks)\nrun = in_turn.run\n"
    project(tools, "run", settings=LIMIT)
    run()
    assert results()[0]["error"]["where"] == "tools.py:4:1"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while True:\n        await asyncio.sleep(0)", ""),
        ("await asyncio.to_thread(gate.wait)", "; threads that it left behind still run"),
    ],
    ids=["a task that never ends", "a thread"],
)
def test_an_asynchronous_tool_that_never_ends_is_left(project: Any, body: str, said: str) -> None:
    tools = f"{IMPORTS}{FINE}\ngate = threading.Event()\nasync def waits():\n    {body}\n"
    tools += "\ndef opens():\n    gate.set()\n"
    project(tools, "waits", "opens", settings=LIMIT)
    run()
    assert verdicts() == ["error", "passed"]
    assert results()[0]["error"]["message"].endswith(f"tool 'call' of node 'w'{said}")


def test_a_tool_that_catches_the_interruption_gets_another(project: Any) -> None:
    tools = f"{IMPORTS}{FINE}\ndef stubborn():\n    try:\n        time.sleep(1000)\n"
    tools += "    except BaseException:\n        time.sleep(1000)\n"
    project(tools, "stubborn", "fine", settings=LIMIT)
    run()
    assert verdicts() == ["error", "passed"]


def test_a_tool_that_catches_it_and_goes_on_is_past_the_limit_all_the_same(project: Any) -> None:
    tools = f"{IMPORTS}{FINE}\ndef late():\n    try:\n        time.sleep(1000)\n"
    tools += "    except BaseException:\n        pass\n"
    project(tools, "late", "fine", settings=LIMIT)
    run()
    assert verdicts() == ["error", "passed"]


def test_a_check_that_never_ends_is_left_and_named(project: Any) -> None:
    project(
        FINE,
        "fine",
        settings=LIMIT,
        expect="{checks: [{name: slow, that: ENDLESS}]}".replace("ENDLESS", ENDLESS),
    )
    assert run().exit_code == 3
    assert results()[0]["error"]["message"].endswith("(real_timeout) in check 'slow'")


def test_below_the_limit_nothing_changes(project: Any) -> None:
    project(FINE, "fine", settings="real_timeout = 60")
    run()
    (limited,) = results()
    project(FINE, "fine", settings="real_timeout = 1e9")
    run()
    assert results() == [limited]


@pytest.mark.parametrize("value", ["0", "-1", '"soon"', "true", "inf"])
def test_a_limit_that_is_none_is_refused(project: Any, value: str) -> None:
    project(FINE, "fine", settings=f"real_timeout = {value}")
    result = run()
    assert result.exit_code == 2
    assert (
        "setting 'real_timeout' in [tool.harness] in pyproject.toml: expected a number of seconds above 0"
        in (result.stderr)
    )


# ---------------------------------------------------------------- alarms


def test_alarms_share_the_timer_with_whoever_had_set_it() -> None:
    rung: list[str] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append("theirs"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    first, second = Alarm(0.02, lambda _: rung.append("first")), Alarm(0.08, lambda _: rung.append("second"))
    try:
        first.start()
        second.start()
        give_up = time.monotonic() + 10
        while len(rung) < 3 and time.monotonic() < give_up:
            pass
        assert rung == ["first", "theirs", "second"]
    finally:
        second.stop()
        first.stop()
        assert signal.getsignal(signal.SIGALRM) is not before
        signal.signal(signal.SIGALRM, before)


def test_the_timer_is_given_back_with_what_is_left_of_it() -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        signal.setitimer(signal.ITIMER_REAL, 100, 7)
        alarm = Alarm(50, lambda _: None)
        alarm.start()
        alarm.stop()
        remaining, interval = signal.setitimer(signal.ITIMER_REAL, 0)
        assert 90 < remaining <= 100
        assert interval == 7
    finally:
        signal.signal(signal.SIGALRM, before)


def test_in_another_thread_an_alarm_never_rings() -> None:
    def start_and_stop() -> None:
        alarm = Alarm(1e-6, lambda _: None)
        alarm.start()
        alarm.stop()

    thread = threading.Thread(target=start_and_stop)
    thread.start()
    thread.join()


# ---------------------------------------------------------------- pytest


def test_pytest_goes_on_and_a_thread_left_behind_does_not_hold_it_up(project: Any) -> None:
    tools = f"{IMPORTS}{FINE}\ndef blocks():\n    time.sleep(1000)\n"
    tools += "\nasync def thread():\n    await asyncio.to_thread(time.sleep, 1000)\n"
    project(tools, "blocks", "thread", "fine", settings="real_timeout = 5")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert verdicts() == ["error", "error", "passed"]
    assert Path("reports/latest/summary.json").exists()
