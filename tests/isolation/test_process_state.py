"""State of the process that a run changes is restored before the next run."""

import os
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.scenario.process_state import PROCESS_STATE
from harness.scenario.run import run_scenario
from tests.isolation.project import write_project

CHANGES = {
    "environment variables": ("os.environ.get('LEAK')", "os.environ.update(LEAK='1')"),
    "a variable that is removed": ("'PATH' in os.environ", "os.environ.pop('PATH')"),
    "time zone": ("time.tzname", "(os.environ.update(TZ='Asia/Tokyo'), time.tzset())"),
    "working directory": ("os.getcwd()", "os.chdir('/')"),
    "sys.path": ("sys.path[:]", "sys.path.insert(0, '/leak')"),
    "sys.path, replaced": ("sys.path", "setattr(sys, 'path', ['/leak', *sys.path])"),
    "sys.argv": ("sys.argv[:]", "sys.argv.append('leak')"),
    "standard output": ("sys.stdout", "setattr(sys, 'stdout', io.StringIO())"),
    "random": ("random.getstate()", "random.seed(7)"),
    "umask": ("umask()", "os.umask(0o077)"),
    "signal handlers": ("signal.getsignal(signal.SIGUSR1)", "signal.signal(signal.SIGUSR1, print)"),
    "warning filters": ("warnings.filters[:]", "warnings.simplefilter('ignore')"),
    "the level of a logger": ("logging.getLogger('leak').level", "logging.getLogger('leak').setLevel(10)"),
    "the handlers of the root logger": (
        "logging.root.handlers[:]",
        "logging.root.addHandler(logging.StreamHandler())",
    ),
    "the handlers of a new logger": (
        "logging.getLogger('brand.new').handlers[:]",
        "logging.getLogger('brand.new').addHandler(logging.StreamHandler())",
    ),
    "a disabled logger": (
        "logging.getLogger('leak').disabled",
        "setattr(logging.getLogger('leak'), 'disabled', True)",
    ),
    "logging as a whole": ("logging.root.manager.disable", "logging.disable(logging.CRITICAL)"),
    "decimal context": ("decimal.getcontext().prec", "decimal.getcontext().__setattr__('prec', 3)"),
    "locale": ("locale.setlocale(locale.LC_ALL)", "locale.setlocale(locale.LC_ALL, 'C.UTF-8')"),
    "time-out of sockets": ("socket.getdefaulttimeout()", "socket.setdefaulttimeout(1)"),
    "recursion limit": ("sys.getrecursionlimit()", "sys.setrecursionlimit(5000)"),
    "garbage collection": ("gc.isenabled()", "gc.disable()"),
    "thresholds of garbage collection": ("gc.get_threshold()", "gc.set_threshold(1)"),
    "callbacks of garbage collection": ("gc.callbacks[:]", "gc.callbacks.append(print)"),
    "the class of loggers": (
        "logging.getLoggerClass()",
        "logging.setLoggerClass(type('L', (logging.Logger,), {}))",
    ),
    "default decimal context": (
        "decimal.DefaultContext.prec",
        "decimal.DefaultContext.__setattr__('prec', 3)",
    ),
    "limits of resources": (
        "resource.getrlimit(resource.RLIMIT_CORE)[1], resource.getrlimit(resource.RLIMIT_FSIZE)",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))",
    ),
    "blocked signals": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, ())",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})",
    ),
    "timers": ("signal.getitimer(signal.ITIMER_PROF)", "signal.setitimer(signal.ITIMER_PROF, 1000)"),
    "trace function of threads": ("threading.gettrace()", "threading.settrace(lambda *_: None)"),
    "event loop policy": (
        "asyncio.get_event_loop_policy()",
        "asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())",
    ),
    "finders of modules": ("sys.meta_path[:]", "sys.meta_path.clear()"),
    "a finder of the project": (
        "sys.meta_path[:]",
        "sys.meta_path.insert(0, type('F', (), {'find_spec': lambda *_: None}))",
    ),
    "excepthook of threads": ("threading.excepthook", "setattr(threading, 'excepthook', print)"),
}

IMPORTS = """
import asyncio, decimal, gc, io, locale, logging, os, random, resource, signal, socket, sys, threading, time, warnings

def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
"""


@pytest.mark.parametrize("name", CHANGES)
def test_state_that_a_tool_changes_is_restored(project: Any, name: str) -> None:
    read, change = CHANGES[name]
    file = project(f"{IMPORTS}\ndef call():\n    {change}\n", "call")
    here: dict[str, Any] = {}
    exec(IMPORTS, here)
    before = eval(read, here)
    (outcome,) = run_scenario(load_file(file).scenarios[0])
    assert outcome.passed
    assert eval(read, here) == before


def test_state_is_restored_after_a_failed_run(project: Any) -> None:
    tools = "import os\ndef call():\n    os.environ['LEAK'] = '1'\n    raise ValueError('no')\n"
    (outcome,) = run_scenario(load_file(project(tools, "call")).scenarios[0])
    assert outcome.observed.status == "failed"
    assert "LEAK" not in os.environ


def test_variables_that_a_module_sets_at_import_are_set_in_every_run_that_uses_it(
    project: Any, tmp_path: Any
) -> None:
    tools = "import os\nos.environ['SET_AT_IMPORT'] = '1'\n"
    tools += "def call():\n    assert os.environ['SET_AT_IMPORT'] == '1'\n"
    file = project(tools, "call", "call")
    for scenario in load_file(file).scenarios:
        assert run_scenario(scenario)[0].passed
        assert "SET_AT_IMPORT" not in os.environ
    (tmp_path / "other").mkdir()
    other = write_project(
        tmp_path / "other",
        "import os\ndef call():\n    assert 'SET_AT_IMPORT' not in os.environ\n",
        ["call"],
        "",
        "",
    )
    assert run_scenario(load_file(other).scenarios[0])[0].passed


def test_names_in_the_table_of_process_state_are_unique() -> None:
    assert len({row.name for row in PROCESS_STATE}) == len(PROCESS_STATE)
