"""The limit of real time: a run that exceeds it is an error with the place where it was, and the next run starts."""

import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.scenario.load import load_file
from harness.scenario.real_limit import RealTimeExceeded, progress, real_limit
from harness.scenario.run import run_scenario
from harness.time import alarms
from harness.time.alarms import Alarm
from harness.time.real import real
from tests import forked
from tests.isolation.project import TIME_IS_UP, results, verdicts, write_project

BLOCKS = {
    "waiting": "select.select([], [], [], 1000)",
    "sleeping in C": "ctypes.CDLL(None).sleep(1000)",
    "Python that loops": "exec('while True: pass')",
    "reading from a pipe": "os.read(os.pipe()[0], 1)",
    "a child process": "subprocess.run(['sleep', '1000'])",
    "a catastrophic pattern": "re.match('(a+)+$', 'a' * 60 + 'b')",
    "waiting for a thread": "threading.Event().wait()",
}
IMPORTS = TIME_IS_UP + "import asyncio, ctypes, os, re, select, signal, subprocess, threading, time\n"
"""The imports of the tools below."""

DIGITS = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
ENDLESS = f"'{''.join(f'{DIGITS}.exists({name}, ' for name in 'abcdefgh')}a > size(path) + 9{')' * 8}'"

FINE = "def fine():\n    pass\n"


def run(*args: str) -> Any:
    return CliRunner().invoke(cli, ["run", ".", *args], prog_name="harness")


@pytest.fixture(autouse=True)
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import libraries in a first run, so that no limit of a test includes it."""
    file = write_project(tmp_path_factory.mktemp("first"), FINE, ["fine"], "", "")
    run_scenario(load_file(file).scenarios[0])


# The alarm may hit a callback of the garbage collector, such as that of hypothesis in the process of the tests.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*gc_callback:pytest.PytestUnraisableExceptionWarning"
)
def test_a_run_that_exceeds_real_timeout_is_an_error(project: Any) -> None:
    project(
        f"{IMPORTS}\ndef blocks():\n    select.select([], [], [], 1000)\n",
        "blocks",
        settings="real_timeout = 0.3",
    )
    assert run().exit_code == 3
    (error,) = [line["error"] for line in results()]
    assert (error["type"], error["code"]) == ("RealTimeExceeded", "real-timeout")
    assert error["message"].startswith("the run took more than 0.3 real seconds (real_timeout)")


@pytest.mark.parametrize("name", BLOCKS)
def test_a_tool_that_blocks_is_interrupted_and_named(project: Any, name: str) -> None:
    tools = f"{IMPORTS}{FINE}\ndef blocks():\n    time_is_up(); {BLOCKS[name]}\n"
    project(tools, "fine", "blocks", "fine")
    assert run().exit_code == 3
    assert verdicts() == ["passed", "error", "passed"]
    error = results()[1]["error"]
    assert (error["type"], error["code"], error["node"]) == ("RealTimeExceeded", "real-timeout", "w")
    assert error["message"] == (
        "the run took more than 60 real seconds (real_timeout) in tool 'call' of node 'w'"
    )
    assert error["where"].startswith("tools.py:7:")


def test_the_first_line_of_user_code_after_the_alarm_is_named(project: Any) -> None:
    """The alarm rings while library code runs."""
    tools = f"{IMPORTS}import sched\n\ndef blocks():\n    select.select([], [], [], 1000)\n\n"
    tools += "in_turn = sched.scheduler()\n"
    tools += (
        "in_turn.enter(0, 1, time_is_up, [0])\nin_turn.enter(0, 2, signal.raise_signal, [signal.SIGALRM])\n"
    )
    tools += "in_turn.enter(0, 3, blocks)\nrun = in_turn.run\n"
    project(tools, "run")
    run()
    assert results()[0]["error"]["where"] == "tools.py:6:1"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while True:\n        await asyncio.sleep(0)", ""),
        ("await asyncio.to_thread(gate.wait)", "; threads that it left behind still run"),
    ],
    ids=["a task that never ends", "a thread"],
)
def test_an_asynchronous_tool_that_never_ends_is_abandoned(project: Any, body: str, said: str) -> None:
    tools = f"{IMPORTS}{FINE}\ngate = threading.Event()\nasync def waits():\n    time_is_up()\n    {body}\n"
    tools += "\ndef opens():\n    gate.set()\n"
    project(tools, "waits", "opens")
    run()
    assert verdicts() == ["error", "passed"]
    assert results()[0]["error"]["message"].endswith(f"tool 'call' of node 'w'{said}")


@pytest.mark.parametrize("then", ["select.select([], [], [], 1000)", "pass"], ids=["blocks again", "goes on"])
def test_a_tool_that_catches_the_interruption_is_still_an_error(project: Any, then: str) -> None:
    tools = (
        f"{IMPORTS}{FINE}\ndef stubborn():\n    try:\n        time_is_up(); select.select([], [], [], 1000)\n"
    )
    tools += f"    except BaseException:\n        {then}\n"
    project(tools, "stubborn", "fine")
    run()
    assert verdicts() == ["error", "passed"]


def test_a_check_that_never_ends_is_interrupted_and_named(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def time_is_up(begun: str) -> None:
        if begun == "check 'slow'":
            alarms._timer._next().postpone(0.05)

    monkeypatch.setattr(progress, "listener", time_is_up)
    project(FINE, "fine", expect=f"{{checks: [{{name: slow, that: {ENDLESS}}}]}}")
    assert run().exit_code == 3
    assert results()[0]["error"]["message"].endswith("(real_timeout) in check 'slow'")


def test_a_limit_that_is_not_reached_does_not_change_results(project: Any) -> None:
    project(FINE, "fine", settings="real_timeout = 60")
    run()
    (limited,) = results()
    project(FINE, "fine", settings="real_timeout = 1e9")
    run()
    assert results() == [limited]


@pytest.mark.parametrize("value", ["0", "-1", '"soon"', "true", "inf"])
def test_an_invalid_limit_is_refused(project: Any, value: str) -> None:
    project(FINE, "fine", settings=f"real_timeout = {value}")
    result = run()
    assert result.exit_code == 2
    assert (
        "setting 'real_timeout' in [tool.harness] in pyproject.toml: expected a number of seconds above 0"
        in (result.stderr)
    )


# ---------------------------------------------------------------- alarms


@pytest.fixture
def rung() -> Iterator[list[str]]:
    """Return the list of alarms that rang; another handler of SIGALRM, `theirs`, is installed first."""
    names: list[str] = []
    before = signal.signal(signal.SIGALRM, lambda *_: names.append("theirs"))
    yield names
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_alarms_share_the_timer_with_its_previous_owner(
    rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    began = real.monotonic()
    clock = SimpleNamespace(monotonic=lambda: began)
    monkeypatch.setattr(alarms, "real", clock)
    signal.setitimer(signal.ITIMER_REAL, 5000)
    first, second = Alarm(2000, lambda _: rung.append("first")), Alarm(8000, lambda _: rung.append("second"))
    first.start()
    second.start()
    for passed in range(1000, 10_000, 1000):
        clock.monotonic = partial(float, began + passed)
        signal.raise_signal(signal.SIGALRM)
        rung.append(str(passed))
    second.stop()
    first.stop()
    assert " ".join(rung) == "1000 first 2000 3000 4000 theirs 5000 6000 7000 second 8000 9000"


def test_an_alarm_rings_on_time_and_again_if_its_signal_is_missed(rung: list[str]) -> None:
    alarm = Alarm(0.01, lambda _: rung.append("ours"))
    alarm.start()
    assert signal.getitimer(signal.ITIMER_REAL)[1] > 0
    while not rung:
        pass
    alarm.stop()
    assert rung == ["ours"]


def test_the_previous_timer_is_restored_with_its_remaining_time(rung: list[str]) -> None:
    signal.setitimer(signal.ITIMER_REAL, 5000, 7)
    alarm = Alarm(50, lambda _: None)
    alarm.start()
    alarm.stop()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    assert 4000 < remaining <= 5000
    assert interval == 7


def test_an_alarm_never_rings_in_another_thread() -> None:
    def start_and_stop() -> None:
        alarm = Alarm(1e-6, lambda _: None)
        alarm.start()
        alarm.stop()

    thread = threading.Thread(target=start_and_stop)
    thread.start()
    thread.join()


# ---------------------------------------------------------------- pytest


def test_pytest_continues_and_does_not_wait_for_a_thread_left_behind(project: Any) -> None:
    tools = f"{IMPORTS}{FINE}\ndef blocks():\n    time_is_up(); select.select([], [], [], 1000)\n"
    tools += "\nasync def thread():\n    time_is_up()\n    await asyncio.to_thread(select.select, [], [], [], 1000)\n"
    project(tools, "blocks", "thread", "fine")
    done = forked.run(["pytest", "-q", "-p", "no:cacheprovider", "."], timeout=120)
    assert done.returncode == 1
    assert verdicts() == ["error", "error", "passed"]
    assert Path("reports/latest/summary.json").exists()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_run_is_not_left_in_a_finalizer_where_the_exception_would_be_lost() -> None:
    class Slow:
        def __del__(self) -> None:
            end = real.monotonic() + 0.12
            while real.monotonic() < end:
                pass

    def free_and_go_on() -> None:
        Slow()
        while True:
            pass

    with pytest.raises(RealTimeExceeded), real_limit(0.05, progress.doing):
        free_and_go_on()
