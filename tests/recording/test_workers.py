"""Several processes record concurrently, each cassette by one process at a time."""

import signal
from pathlib import Path
from threading import Event

from tests import forked
from tests.recording.safety import Model, parrots

TWELVE = [f"say-{number:02}" for number in range(12)]
PYTEST = ("-p", "no:cacheprovider", "-q")


def test_workers_of_pytest_write_a_whole_cassette_each(tmp_path: Path) -> None:
    model = Model()
    with parrots(tmp_path, model) as project:
        project.parrot(*TWELVE)
        done = project.run("pytest", "p.scenario.yaml", *forked.workers(2), "--record-mode=once", *PYTEST)
    assert done.code == 0, done.all
    assert "12 passed" in done.out
    assert sorted(model.heard) == TWELVE
    assert set(project.cassettes()) == {
        f"{name}/{file}" for name in TWELVE for file in ("http.yaml", "meta.yaml")
    }
    digests = project.digests()
    assert project.replay().code == 0
    assert project.digests() == digests
    listed = project.harness("cassettes")
    assert listed.code == 0, listed.all


def test_two_scenarios_cannot_record_one_cassette(tmp_path: Path) -> None:
    model = Model()
    with parrots(tmp_path, model) as project:
        project.parrot("one", "two")
        text = (tmp_path / "p.scenario.yaml").read_text()
        project.write("p.scenario.yaml", text.replace("cassette: two", "cassette: one"))
        by_pytest = project.run("pytest", "p.scenario.yaml", "--record-mode=once", *PYTEST)
        by_command = project.record()
    assert (by_pytest.code, by_command.code) == (4, 2)
    for said in (by_pytest.all, by_command.all):
        assert "'one' and 'two' cannot both record cassette 'one'" in said
        assert "Traceback" not in said
    assert model.heard == []
    assert project.cassettes() == {}


def test_one_cassette_may_be_replayed_by_two(tmp_path: Path) -> None:
    with parrots(tmp_path) as project:
        project.parrot("one")
        assert project.record().code == 0
    text = (tmp_path / "p.scenario.yaml").read_text()
    project.write("q.scenario.yaml", text)
    assert project.replay().code == 0
    assert project.harness("cassettes").code == 0


def test_a_cassette_that_another_process_records_is_waited_for_and_then_replayed(tmp_path: Path) -> None:
    reached, released = Event(), Event()

    def before(text: str) -> None:
        if text == "one":
            reached.set()
            released.wait(60)

    model = Model(before)
    with parrots(tmp_path, model) as project:
        project.parrot("one", "two")
        first = project.start("harness", "record", ".", "--report", "first")
        assert reached.wait(60)
        second = project.start("harness", "record", ".", "--report", "second", "-k", "one")
        released.set()
        for each in (first, second):
            each.communicate(timeout=60)
            assert each.returncode == 0
        assert sorted(model.heard) == ["one", "two"]
    assert project.replay().code == 0


def test_a_killed_process_holds_nothing_up(tmp_path: Path) -> None:
    reached, released = Event(), Event()

    def before(_: str) -> None:
        if not reached.is_set():
            reached.set()
            released.wait(60)

    with parrots(tmp_path, Model(before)) as project:
        project.parrot("one")
        first = project.start("harness", "record", ".")
        assert reached.wait(60)
        first.kill()
        first.communicate(timeout=60)
        assert first.returncode == -signal.SIGKILL
        released.set()
        assert project.record().code == 0
    assert project.replay().code == 0
