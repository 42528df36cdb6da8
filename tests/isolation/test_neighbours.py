"""What a run leaves in modules, threads, processes and at the exit harms no other run, and is named."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.report.summary import why_incomplete
from harness.scenario.leftovers import end_processes
from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.source.display import clip
from harness.world.network import network_is_closed
from tests.isolation.project import TIME_IS_UP, results, verdicts, write_project

IMPORTS = "import datetime, httpx, json, os, select, socket, subprocess, sys, threading, types\nimport own\n"
OWN = """
import threading

LOCK = threading.Lock()
RATE, COUNT, SEEN = 5, 0, {"items": [1]}

class Account:
    limit = 10
    def __init__(self): self.balance = 100
    def pay(self, amount): self.balance -= amount

ACCOUNT = Account()

def price(): return 2 * RATE

def count():
    global COUNT
    COUNT += 1
"""


def left(outcome: Outcome) -> list[str]:
    """Return the warnings of what a run has left."""
    return [text for text in outcome.observed.warnings if text.startswith(("this run left", "an import in"))]


PUT_BACK = {
    "datetime": ("datetime.datetime = None", "datetime.datetime"),
    "another class of datetime": ("datetime.timedelta = None", "datetime.timedelta"),
    "json": ("json.dumps = None", "json.dumps"),
    "a name that is deleted": ("del json.loads", "json.loads"),
    "a method": ("json.JSONEncoder.default = None", "json.JSONEncoder.default"),
    "httpx": ("setattr(httpx, 'get', None)", "httpx.get"),
    "a method of a client": ("httpx.Client.get = None", "httpx.Client.get"),
    "os": ("os.getcwd = None", "os.getcwd"),
    "socket": ("socket.socket = None", "socket.socket"),
    "a built-in function": ("__builtins__['sorted'] = None", "builtins.sorted"),
    "a new built-in name": ("__builtins__['leaked'] = 1", "builtins.leaked"),
    "a module": ("sys.modules['json'] = types.ModuleType('json')", "sys.modules: json"),
    "a function of the project": ("own.price = None", "own.price"),
    "a constant of the project": ("own.RATE = 99", "own.RATE"),
    "a new name in the project": ("own.leaked = 1", "own.leaked"),
    "an attribute of a class of the project": ("own.Account.limit = 99", "own.Account.limit"),
}
SILENTLY = {
    "a counter of the project": "own.count()",
    "a nested list of the project": "own.SEEN['items'].append(2)",
    "an object of the project": "own.ACCOUNT.pay(50)",
    "a lock of the project": "own.LOCK.acquire()",
    "an environment variable of C": "os.putenv('LEAKED', '1')",
}
LOOK = """
def look():
    assert json.dumps([datetime.timedelta(1).days, sorted("ba")]) == '[1, ["a", "b"]]'
    assert (own.price(), own.COUNT, own.SEEN) == (10, 0, {"items": [1]})
    assert (own.ACCOUNT.balance, own.Account.limit) == (100, 10)
    assert not hasattr(own, "leaked")
    assert own.LOCK.acquire(timeout=1)
    own.LOCK.release()
    assert subprocess.run("echo $LEAKED", shell=True, capture_output=True).stdout == b"\\n"
"""


@pytest.fixture
def run(project: Any) -> Any:
    """Return the outcomes of `look`, a tool with this body, and `look`."""

    def go(body: str, top: str = "") -> list[Outcome]:
        Path("own.py").write_text(OWN)
        file = project(f"{IMPORTS}{top}{LOOK}\ndef harms():\n    {body}\n", "look", "harms", "look")
        return [outcome for one in load_file(file).scenarios for outcome in run_scenario(one)]

    return go


@pytest.mark.parametrize("name", PUT_BACK)
def test_an_attribute_that_a_run_replaced_is_put_back_and_named(run: Any, name: str) -> None:
    body, named = PUT_BACK[name]
    before = functions_here()
    first, harmful, last = run(body)
    assert [first.verdict, last.verdict] == ["passed", "passed"]
    offer = '`isolation = "process"` keeps it from other runs'
    assert left(harmful) == [f"this run left {named} replaced, which was put back: {offer}"]
    assert left(first) == left(last) == []
    assert functions_here() == before


def functions_here() -> tuple[Any, ...]:
    return (
        json.dumps,
        json.loads,
        json.JSONEncoder.default,
        httpx.get,
        httpx.Client.get,
        os.getcwd,
        socket.socket,
    )


@pytest.mark.parametrize("name", SILENTLY)
def test_the_state_of_the_modules_of_a_project_is_as_after_their_import(run: Any, name: str) -> None:
    outcomes = run(SILENTLY[name])
    assert [(one.verdict, left(one)) for one in outcomes] == [("passed", [])] * 3


def test_a_module_that_registers_itself_while_a_run_imports_it_stays_registered(project: Any) -> None:
    Path("registry.py").write_text("TOOLS = []\n")
    Path("plugin_of_own.py").write_text("import registry\nregistry.TOOLS.append('plugin')\n")
    tools = (
        "import registry\ndef call():\n    import plugin_of_own\n    assert registry.TOOLS == ['plugin']\n"
    )
    file = project(tools, "call", "call")
    sys.path.insert(0, os.getcwd())
    try:
        assert [run_scenario(one)[0].verdict for one in load_file(file).scenarios] == ["passed", "passed"]
    finally:
        sys.path.remove(os.getcwd())


def test_what_the_harness_puts_in_place_when_it_is_first_used_stays(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json, "loads", json.loads)  # for after the test
    outcomes = run("from harness.source.display import clip; json.loads = clip")
    assert vars(json)["loads"] is clip
    assert [(one.verdict, left(one)) for one in outcomes] == [("passed", [])] * 3


def test_the_end_of_a_session_inside_of_another_closes_nothing(pytester: pytest.Pytester) -> None:
    write_project(pytester.path, FINE, ["fine"], "", "")
    pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)
    assert not network_is_closed()


THREADS = {
    "a thread": "threading.Thread(target=go).start()",
    "a daemon thread": "threading.Thread(target=go, daemon=True).start()",
    "a timer": "threading.Timer(1000, go).start()",
    "a thread without an object": "import _thread; _thread.start_new_thread(go, ()); begun.wait()",
}
GO = """
begun = threading.Event()
def go():
    begun.set()
    while True:
        select.select([], [], [], 0.001)
"""


@pytest.mark.parametrize("name", THREADS)
def test_a_thread_that_is_left_at_work_is_ended_and_named(run: Any, name: str) -> None:
    before = threading.enumerate()
    _, harmful, last = run(THREADS[name], GO)
    (warning,) = left(harmful)
    assert warning.startswith("this run left a thread at work in tools.py:")
    assert (last.verdict, left(last)) == ("passed", [])
    for thread in threading.enumerate():
        if thread not in before:
            thread.join(10)
    assert set(threading.enumerate()) <= set(before)


def test_what_a_thread_sends_after_its_run_is_refused(run: Any) -> None:
    stubborn = """
errors = []
def go():
    try:
        while True: select.select([], [], [], 0.001)
    except BaseException:  # it is told to end
        run_has_ended.wait()
    for send in (lambda: socket.create_connection(("127.0.0.1", 9)), lambda: httpx.get("http://shop.test")):
        try: send()
        except Exception as error: errors.append(str(error))
run_has_ended = threading.Event()
sys.stubborn = errors, run_has_ended
"""
    before = set(threading.enumerate())
    run("threading.Thread(target=go, daemon=True).start()", stubborn)
    errors, run_has_ended = sys.stubborn  # type: ignore[attr-defined]
    run_has_ended.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert ["the network is closed" in error for error in errors] == [True, True]
    del sys.stubborn  # type: ignore[attr-defined]


def test_a_process_that_is_left_at_work_is_named(run: Any) -> None:
    _, harmful, _ = run("os.posix_spawnp('sleep', ['sleep', '1000'], os.environ)")
    try:
        (warning,) = left(harmful)
        assert warning == "this run left a process at work, which ends with the command: sleep 1000"
    finally:
        end_processes()


# ---------------------------------------------------------------- the end of a command

HARNESS, PYTEST = ("harness", "run", "."), ("pytest", "-q", "-p", "no:cacheprovider", ".")
ENDLESS = f"{TIME_IS_UP}import itertools\ndef endless():\n    sum(itertools.repeat(0))\n"
CRASH = "import ctypes\ndef crash():\n    ctypes.string_at(0)\n"
FINE = "def fine():\n    pass\n"


def command(*args: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    begin = [str(Path(sys.executable).parent / args[0]), *args[1:]]
    return subprocess.run(begin, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("args", [HARNESS, PYTEST], ids=["harness", "pytest"])
def test_a_loop_in_c_ends_the_command_with_its_report(project: Any, args: tuple[str, ...]) -> None:
    project(FINE + ENDLESS, "fine", "endless", "fine", settings="real_timeout = 8")
    done = command(*args)
    assert done.returncode == 3
    assert verdicts() == ["passed", "error"]
    error = results()[1]["error"]
    assert (error["code"], error["message"].endswith("in tool 'call' of node 'w'")) == ("real-timeout", True)
    why = why_incomplete(json.loads(Path("reports/latest/summary.json").read_text()))
    assert why == "the command was ended in calls.scenario.yaml::1 endless"
    assert "calls.scenario.yaml::1 endless: the run took more than 8 real seconds" in done.stderr
    assert '`isolation = "process"` would have ended this run alone' in done.stderr


def test_a_crash_of_the_command_leaves_a_report_that_names_the_run(project: Any) -> None:
    project(FINE + CRASH, "fine", "crash", "fine")
    done = command(*HARNESS)
    assert done.returncode < 0
    assert verdicts() == ["passed", "error"]
    assert "calls.scenario.yaml::1 crash: the process that ran this scenario ended" in done.stderr


def test_an_exit_in_c_leaves_a_report_and_no_exit_code_of_success(project: Any) -> None:
    tools = FINE + "import ctypes\n" + "def leaves():\n    ctypes.CDLL(None).exit(0)\n"
    project(tools, "fine", "leaves", "fine")
    done = command(*HARNESS)
    assert done.returncode == 3
    assert "calls.scenario.yaml::1 leaves: the process that ran this scenario ended" in done.stderr


@pytest.mark.parametrize(
    "closes", ["os.closerange(3, 300)", "[suppressed(os.close, n) for n in range(3, 300)]"]
)
def test_a_run_that_closes_all_descriptors_does_not_end_the_others(project: Any, closes: str) -> None:
    own = "def suppressed(call, *args):\n    try: call(*args)\n    except OSError: pass\n"
    project(f"{FINE}import os\n{own}def closes():\n    {closes}\n", "fine", "closes", "fine")
    assert command(*HARNESS).returncode == 3
    assert verdicts() == ["passed", "error", "passed"]


def test_a_manifest_that_a_run_changes_is_told(project: Any) -> None:
    tools = f"{FINE}def writes():\n    open('calls.yaml', 'a').write('# more\\n')\n"
    project(tools, "fine", "writes")
    told = command(*HARNESS).stdout
    assert "calls.yaml changed while the scenarios ran: some ran another version" in told


def test_handlers_of_the_exit_reach_no_network_and_do_not_keep_the_command(project: Any) -> None:
    tools = "import atexit, socket\ndef leaves():\n    atexit.register(socket.create_connection, ('127.0.0.1', 9))\n"
    project(tools, "leaves")
    done = command(*HARNESS)
    assert done.returncode == 0
    assert "NetworkClosed: the network is closed" in done.stderr


def test_a_thread_that_nothing_ends_does_not_keep_the_command(project: Any) -> None:
    soon = "exec('from harness.scenario import leftovers; leftovers._LEAVE_S = 0.1')\nimport threading\n"
    start = "threading.Thread(target=lock.acquire, name='stuck').start()"
    project(f"{soon}def leaves():\n    lock = threading.Lock()\n    lock.acquire()\n    {start}\n", "leaves")
    done = command(*HARNESS)
    assert done.returncode == 0
    assert "code that runs have left keeps this process from ending in thread 'stuck': cut off" in done.stderr
