"""A recording that is killed leaves the earlier cassettes, and the cassettes that it completed."""

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.recording.safety import Done, Model, Project, parrots
from tests.world.loopback import CannedReply, ReceivedRequest, answering

NAMES = [f"say-{number:02}" for number in range(20)]

# The command, in a process that dies at the tenth file operation.
DIES = """\
import os, signal

from harness.cli.main import main

left = 9

def dying(name):
    real = getattr(os, name)

    def called(*args, **kwargs):
        global left
        if "cassettes" in str(args[0]) or name == "fsync":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    setattr(os, name, called)

for name in ("mkdir", "open", "fsync", "replace", "unlink"):
    dying(name)
main()
"""


# The command, which leaves a scenario that waits sooner.
IMPATIENT = """\
from harness.cli import interruption, main

interruption.PATIENCE_S = 0.2
main.main()
"""


@contextmanager
def held(folder: Path, at: str) -> Iterator[tuple[Project, Event]]:
    """Yield a project whose model never answers `at`, and an event that is set when it is asked."""
    reached, released = Event(), Event()

    def before(text: str) -> None:
        if text == at:
            reached.set()
            released.wait(60)

    with parrots(folder, Model(before)) as project:
        project.parrot(*NAMES)
        try:
            yield project, reached
        finally:
            released.set()


def ended(process: subprocess.Popen[str]) -> Done:
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def recorded_names(project: Project) -> set[str]:
    return {path.partition("/")[0] for path in project.cassettes()}


def assert_only_whole_files(project: Project) -> None:
    assert [path for path in project.cassettes() if not path.endswith(("http.yaml", "meta.yaml"))] == []


def test_killed_while_a_model_thinks_the_finished_ones_replay_and_the_others_are_absent(
    tmp_path: Path,
) -> None:
    at = NAMES[7]
    with held(tmp_path, at) as (project, reached):
        process = project.start("harness", "record", ".", "-j", "1")
        assert reached.wait(60)
        process.kill()
        assert ended(process).code == -signal.SIGKILL
    finished = NAMES[: NAMES.index(at)]
    assert recorded_names(project) == set(finished)
    assert_only_whole_files(project)
    done = project.replay()
    assert done.code == 3
    assert project.verdicts() == {name: "passed" if name in finished else "error" for name in NAMES}


def test_killed_while_it_writes_each_cassette_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    """Kill it in the second of three cassettes. `cassette/test_interrupted.py` tests every step within one."""
    names, manners = NAMES[:3], ["Be nice.", "Be rude."]
    with parrots(tmp_path) as project:
        project.parrot(*names, manner=manners[0])
        assert project.record().code == 0
        project.parrot(*names, manner=manners[1])
        dies = project.write("dies.py", DIES)
        assert project.run(dies, "record", ".", "--rewrite", "-j", "1").code == -signal.SIGKILL
    passed = []
    for manner in manners:
        project.parrot(*names, manner=manner)
        project.replay()
        passed.append({name for name, verdict in project.verdicts().items() if verdict == "passed"})
    old, new = passed
    assert (old | new, old & new) == (set(names), set())
    with parrots(tmp_path) as project:
        assert project.record().code == 0
    assert_only_whole_files(project)  # what was begun has gone


def test_an_interrupted_recording_reports_its_results_and_keeps_the_other_files(tmp_path: Path) -> None:
    with parrots(tmp_path) as project:
        project.parrot(NAMES[3])
        assert project.record().code == 0
    before = project.cassettes()
    with held(tmp_path, NAMES[3]) as (project, reached):
        process = project.start(
            project.write("impatient.py", IMPATIENT), "record", ".", "--rewrite", "-j", "1"
        )
        assert reached.wait(60)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.code == 3
    assert "interrupted" in done.err
    assert "Traceback" not in done.all
    assert recorded_names(project) == set(NAMES[:4])
    assert before.items() <= project.cassettes().items()
    assert set(project.results()) == set(NAMES[:3])
    assert_only_whole_files(project)


# ---------------------------------------------------------------- recordings that fail


def broken(how: str) -> Callable[[ReceivedRequest], CannedReply]:
    def answer(asked: ReceivedRequest) -> CannedReply:
        if how == "refuses":
            return CannedReply(json={"error": {"message": "no such model"}}, status=400)
        return CannedReply(text="<html>a proxy</html>")

    return answer


@pytest.mark.parametrize("how", ["down", "refuses", "no reply"])
def test_a_recording_that_fails_leaves_the_old_cassette(tmp_path: Path, how: str) -> None:
    with parrots(tmp_path) as project:
        project.parrot("one")
        assert project.record().code == 0
    before, digests = project.cassettes(), project.digests()
    with answering(broken(how)) as url:
        project.env["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1" if how == "down" else f"{url}/v1"
        done = project.record(".", "--rewrite")
        assert done.code in (1, 3)
        assert "the cassette is not written" in done.out
    assert project.cassettes() == before
    assert project.replay().code == 0
    assert project.digests() == digests


def test_a_recording_whose_checks_fail_is_kept(tmp_path: Path) -> None:
    with parrots(tmp_path) as project:
        project.parrot("one", expect="{output: two}")
        done = project.record()
    assert done.code == 1
    assert recorded_names(project) == {"one"}
    project.parrot("one", expect="{output: one}")
    assert project.replay().code == 0


# ---------------------------------------------------------------- a folder that cannot be written


def full(path: Any, flags: int, *args: Any, open: Any = os.open, **options: Any) -> int:
    """Return an `os.open` for a full disk."""
    if str(path).endswith(".new"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    return int(open(path, flags, *args, **options))


@pytest.mark.parametrize("what", ["a file", "no room"])
def test_an_unwritable_cassette_is_an_error_of_its_scenario(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parrots(tmp_path) as project:
        project.parrot("one", "two")
        if what == "a file":
            project.write("cassettes", "not a folder")
        with monkeypatch.context() as patch:
            if what == "no room":
                patch.setattr(os, "open", full)
            done = project.record(".", "-j", "1")
    assert done.code == 3
    assert "Traceback" not in done.all
    assert "harness broke" not in done.all
    assert set(project.verdicts().values()) == {"error"}
    for name in ("one", "two"):
        message = project.results()[name]["error"]["message"]
        assert f"the cassette '{name}' cannot be written" in message
        assert str(tmp_path) not in message
    assert what == "a file" or project.cassettes() == {}


def test_a_folder_without_permission(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may write everywhere")
    with parrots(tmp_path) as project:
        project.parrot("one")
        (tmp_path / "cassettes").mkdir(mode=0o500)
        done = project.record()
    assert done.code == 3
    assert "Permission denied" in done.out
