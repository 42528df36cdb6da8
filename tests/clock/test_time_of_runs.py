"""The code of a run reads virtual time, from the instant at which its scenario begins."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FormatError
from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import Settings, load_settings
from harness.source import imports
from harness.time.real import real

YAGRA = 'version: "1.0"\nstart_at: a\nend_at: [a]\nnodes: [{id: a, handler: a}]\nedges: []\n'
Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a handler, whose body is given, in a scenario with these keys."""
    monkeypatch.chdir(tmp_path)

    def outcome(
        body: str, settings: Settings | None = None, *, name: str = "it", head: str = "", **keys: Any
    ) -> Outcome:
        (tmp_path / "agent.yaml").write_text(YAGRA, encoding="utf-8")
        lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
        (tmp_path / f"read_{name}.py").write_text(f"{head}\nasync def a(state):\n{lines}", encoding="utf-8")
        scenario = {"name": name, "input": {}, "handlers": {"a": {"real": f"read_{name}.a"}}, **keys}
        file = {"harness": 1, "manifest": "agent.yaml", "scenarios": [scenario]}
        path = tmp_path / f"{name}.scenario.yaml"
        path.write_text(json.dumps(file), encoding="utf-8")
        imports._of_folder.clear()  # a module of this name may have another body now
        sys.modules.pop(f"read_{name}", None)
        (only,) = run_scenario(load_file(path).scenarios[0], settings or load_settings())
        return only

    return outcome


NOW = "import datetime\nreturn {'now': datetime.datetime.now().isoformat()}"


def read(outcome: Outcome) -> Any:
    assert outcome.observed.status == "completed", outcome.observed.error
    return outcome.observed.state


# ------------------------------------------------------------ where virtual time begins


def test_time_begins_in_2026_where_nothing_says_otherwise(run: Run) -> None:
    outcome = run(NOW)
    assert read(outcome)["now"] == "2026-01-01T00:00:00"
    assert outcome.now == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("written", "begins"),
    [
        ("2030-02-03", "2030-02-03T00:00:00"),
        ("2030-02-03T04:05:06Z", "2030-02-03T04:05:06"),
        ("2030-02-03T04:05:06+02:00", "2030-02-03T02:05:06"),
        ("2030-02-03 04:05", "2030-02-03T04:05:00"),
        ("2030-02-03T04:05:06.5", "2030-02-03T04:05:06.500000"),
    ],
)
def test_a_scenario_sets_the_beginning_in_utc(run: Run, written: str, begins: str) -> None:
    assert read(run(NOW, now=written))["now"] == begins


def test_a_project_sets_the_beginning_of_scenarios_that_do_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.harness]\nnow = "2031-01-01"\n', encoding="utf-8")
    assert read(run(NOW))["now"] == "2031-01-01T00:00:00"
    assert read(run(NOW, now="2032-01-01"))["now"] == "2032-01-01T00:00:00"


@pytest.mark.parametrize("wrong", ["soon", "2026-13-01", "1969-12-31", "9999-01-01", 5, None, [], ""])
def test_another_beginning_is_refused_at_its_place(run: Run, wrong: Any) -> None:
    with pytest.raises(FormatError) as refused:
        run(NOW, now=wrong)
    assert all(problem.span is not None for problem in refused.value.problems)


def test_another_beginning_of_a_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.harness]\nnow = "soon"\n', encoding="utf-8")
    with pytest.raises(FormatError, match="expected an instant such as 2026-03-01T09:00:00Z, found 'soon'"):
        load_settings(tmp_path)


# ------------------------------------------------------------ what code reads


def test_the_time_zone_of_a_run_is_utc_and_afterwards_that_of_the_process(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        zone = "import time\nreturn {'zone': time.strftime('%Z'), 'hour': time.localtime().tm_hour}"
        assert read(run(zone)) == {"zone": "UTC", "hour": 0}
        assert (os.environ["TZ"], time.tzname[0]) == ("Asia/Tokyo", "JST")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_code_that_removes_the_time_zone_does_not_end_the_run(run: Run) -> None:
    assert run("import os\nos.environ.pop('TZ')\nreturn {}").observed.status == "completed"


def test_the_real_time_is_back_after_a_run(run: Run) -> None:
    run(NOW)
    assert abs(time.time_ns() - real.time_ns()) < 60 * 10**9
    assert time.monotonic_ns() != 1000 * 10**9


FROZEN = """
import datetime, time
class Frozen(datetime.datetime):
    pass
datetime.datetime = Frozen
for name in ("time", "time_ns", "monotonic", "perf_counter", "sleep"):
    setattr(time, name, lambda *_: -5_000)
return {}
"""


def test_code_that_replaces_the_clocks_changes_neither_results_nor_the_next_run(run: Run) -> None:
    outcome = run(FROZEN)
    assert outcome.observed.status == "completed"
    assert 0 <= outcome.wall < 60
    assert read(run(NOW, name="next"))["now"] == "2026-01-01T00:00:00"


def test_a_blocking_sleep_is_the_latency_of_its_node(run: Run) -> None:
    outcome = run("import time\ntime.sleep(12.5)\nreturn {}")
    assert outcome.observed.latency["total"] == 12.5


def test_a_thread_with_the_number_of_one_that_has_ended_belongs_to_the_run(run: Run) -> None:
    # The first one is there when the run begins. The system gives its number to one of the next threads.
    ending = threading.Event()
    before = threading.Thread(target=ending.wait)
    before.start()
    body = f"""
others = {{each.name: each for each in threading.enumerate()}}
others["before the run"].ending.set()
others["before the run"].join()
found, threads = threading.Event(), []

def work():
    found.wait()
    if threading.get_ident() == {before.ident}:
        time.sleep(20)

while not threads or (threads[-1].ident != {before.ident} and len(threads) < 200):
    threads.append(threading.Thread(target=work))
    threads[-1].start()
number = threads[-1].ident
found.set()
for thread in threads:
    thread.join()
return {{"number": number}}
"""
    before.name, before.ending = "before the run", ending  # type: ignore[attr-defined]
    outcome = run(body, head="import threading, time")
    assert read(outcome) == {"number": before.ident}
    assert outcome.observed.latency["total"] == 20


def test_a_time_out_names_the_thread_that_was_at_work(run: Run) -> None:
    body = """
import asyncio, subprocess, sys, threading
def work():
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.2)"])
threading.Thread(target=work).start()
await asyncio.sleep(100)
"""
    outcome = run(body, timeout=3)
    assert outcome.observed.status == "timeout"
    (warning,) = [text for text in outcome.observed.warnings if "when the time" in text]
    assert "when the time of the run was up, a thread was at work at read_it.py:" in warning


def test_a_time_out_during_real_work_that_is_awaited_does_not_come_early(run: Run) -> None:
    body = """
import anyio.to_thread, subprocess, sys
await anyio.to_thread.run_sync(subprocess.run, [sys.executable, "-c", "import time; time.sleep(0.1)"])
return {}
"""
    outcome = run(body, timeout=3)
    assert (outcome.observed.status, outcome.observed.latency["total"]) == ("completed", 0)
