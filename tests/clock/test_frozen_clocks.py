"""Code of a run that freezes the clock and leaves it so changes neither later runs nor the process."""

import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from harness.time.real import real
from tests.clock.test_time_of_runs import Run, read, run

__all__ = ["run"]

LIBRARY = """
import datetime, sys, time
frozen = []
real = {"datetime": datetime.datetime, "time": time.time, "monotonic": time.monotonic}
class Frozen(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return frozen[-1]
def fake():
    return frozen[-1].timestamp()
def fake_monotonic():
    return frozen[-1].timestamp()
fakes = {"datetime": Frozen, "time": fake, "monotonic": fake_monotonic}
def bind(old, new):
    for module in [m for m in list(sys.modules.values()) if m.__name__ != __name__]:
        for name, value in list(vars(module).items()):
            for key in old:
                if value is old[key]:
                    setattr(module, name, new[key])
def freeze(year):
    frozen.append(real["datetime"](year, 1, 1))
    if len(frozen) == 1:
        bind(real, fakes)
def release():
    frozen.pop()
    if not frozen:
        bind(fakes, real)
"""
HEAD = "import freezing_library, time\nfrom datetime import datetime"
NOW = "return {'now': datetime.now().isoformat(), 'time': time.time()}"


@pytest.fixture(autouse=True)
def _library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that freezes the clock as freezegun does: in all modules, once, while it counts."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "freezing_library.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "freezing_library", raising=False)


def test_a_freeze_that_is_never_released_ends_with_its_run(run: Run) -> None:
    frozen = read(run(f"freezing_library.freeze(2012)\n{NOW}", head=HEAD))
    assert frozen["now"] == "2012-01-01T00:00:00"
    assert read(run(NOW, name="next", head=HEAD)) == {"now": "2026-01-01T00:00:00", "time": 1767225600}
    assert datetime.__module__ == "datetime"


def test_a_later_run_can_freeze_the_clock_again(run: Run) -> None:
    run("freezing_library.freeze(2012)\nreturn {}", head=HEAD)
    body = "freezing_library.freeze(2013)\ninside = datetime.now().year\nfreezing_library.release()\n"
    both = read(run(f"{body}return {{'inside': inside, 'outside': datetime.now().year}}", head=HEAD))
    assert both == {"inside": 2013, "outside": 2026}


def test_a_freeze_at_import_ends_with_the_import_so_that_all_runs_are_alike(run: Run) -> None:
    for name in ("first", "second"):
        found = read(run(NOW, name=name, head=f"{HEAD}\nfreezing_library.freeze(2012)"))
        assert found["now"] == "2026-01-01T00:00:00"


@pytest.mark.parametrize("body", ["travel.start()", "travel.start(); travel.start()"])
def test_time_travel_that_is_never_ended_ends_with_its_run(run: Run, body: str) -> None:
    head = f"import time_machine\n{HEAD}\ntravel = time_machine.travel(0, tick=False)"
    assert read(run(f"{body}\n{NOW}", head=head))["time"] == 0
    assert read(run(NOW, name="next", head=HEAD))["time"] == 1767225600
    assert abs(time.time_ns() / 1e9 - real.time_ns() / 1e9) < 60


def test_a_clock_in_the_place_of_another_changes_only_its_own_run(run: Run) -> None:
    before = time.monotonic_ns
    run("time.time = time.monotonic_ns\nreturn {}", head=HEAD)
    assert time.monotonic_ns is before
    assert abs(time.time_ns() / 1e9 - real.time_ns() / 1e9) < 60


def test_a_clock_that_is_replaced_by_none_leaves_names_alone_that_are_bound_to_none(run: Run) -> None:
    run("import datetime as module\nmodule.datetime = None\nreturn {}", head=HEAD)
    assert sys.modules["freezing_library"].__doc__ is None
    assert read(run(NOW, name="next", head=HEAD)) == {"now": "2026-01-01T00:00:00", "time": 1767225600}
