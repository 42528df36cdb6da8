"""`pytest --record-mode`, with and without pytest-recording, which defines the same options."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.recording.safety import ASKING, Done, Model, Project, Terminal, parrots

ALONE = ("-p", "no:recording")
BESIDE: tuple[str, ...] = ()
QUIET = ("-p", "no:cacheprovider", "-q")


# A test that pytest-recording records, in the same session; its cassette is vcrpy's.
VCR_TEST = """\
import os
import urllib.request

import pytest


@pytest.mark.vcr
def test_it():
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, b'{"messages": [{"content": "vcr"}]}')
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    assert b"vcr" in opener.open(request).read()
"""


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def project(tmp_path: Path, model: Model) -> Iterator[Project]:
    with parrots(tmp_path, model) as project:
        project.parrot("one", "two")
        yield project


@pytest.fixture
def run(project: Project) -> Callable[..., Done]:
    """Return a function that runs pytest on the project."""
    return partial(project.run, "pytest")


both = pytest.mark.parametrize("options", [ALONE, BESIDE], ids=["alone", "beside pytest-recording"])


@both
def test_mode_once_records_missing_cassettes_and_later_runs_replay_them(
    run: Any, project: Project, model: Model, options: tuple[str, ...]
) -> None:
    missing = run(".", *QUIET, *options)
    assert missing.code == 1
    assert "cassette 'one' is not recorded" in missing.out
    recorded = run(".", "--record-mode=once", *QUIET, *options)
    assert recorded.code == 0, recorded.all
    digests = project.digests()
    replayed = run(".", *QUIET, *options, OPENAI_API_KEY=None, OPENAI_BASE_URL=None)
    assert replayed.code == 0, replayed.all
    assert model.heard == ["one", "two"]
    assert project.digests() == digests


@both
def test_disable_recording_calls_the_model_and_writes_no_cassettes(
    run: Any, project: Project, model: Model, options: tuple[str, ...]
) -> None:
    for _ in range(2):
        done = run(".", "--disable-recording", *QUIET, *options)
        assert done.code == 0, done.all
    assert model.heard == ["one", "two"] * 2
    assert project.cassettes() == {}


@both
def test_an_unknown_mode_is_a_usage_error(run: Any, project: Project, options: tuple[str, ...]) -> None:
    done = run(".", "--record-mode=twice", *QUIET, *options)
    assert done.code == 4
    assert "new_episodes" in done.err


@both
def test_the_help_lists_each_option_once(run: Any, project: Project, options: tuple[str, ...]) -> None:
    done = run("--help", *options)
    assert done.code == 0
    assert done.out.count("--record-mode=") == 1
    assert done.out.count("--disable-recording") == 1


def test_a_test_of_pytest_recording_and_a_scenario_share_a_session(
    run: Any, project: Project, model: Model
) -> None:
    project.write("test_vcr.py", VCR_TEST)
    recorded = run(".", "--record-mode=once", *QUIET)
    assert recorded.code == 0, recorded.all
    assert sorted(model.heard) == ["one", "two", "vcr"]
    assert "test_vcr/test_it.yaml" in project.cassettes()
    replayed = run(".", *QUIET)
    assert replayed.code == 0, replayed.all
    assert len(model.heard) == 3


def test_cassettes_of_pytest_recording_are_not_pruned(run: Any, project: Project) -> None:
    project.write("test_vcr.py", VCR_TEST)
    assert run(".", "--record-mode=once", *QUIET).code == 0
    listed = project.harness("cassettes", "--prune")
    assert listed.code == 0, listed.all
    assert "test_vcr/test_it.yaml" in project.cassettes()


def test_option_x_stops_recording_at_the_first_failure(run: Any, project: Project, model: Model) -> None:
    project.parrot("one", "two", expect="{output: other}")
    done = run(".", "-x", "--record-mode=rewrite", *QUIET)
    assert done.code == 1
    assert model.heard == ["one"]
    assert {path.partition("/")[0] for path in project.cassettes()} == {"one"}


def test_scenarios_that_share_a_cassette_are_an_error_unless_one_is_selected(
    run: Any, project: Project, model: Model
) -> None:
    text = (project.folder / "p.scenario.yaml").read_text()
    project.write("p.scenario.yaml", text.replace("cassette: two", "cassette: one"))
    assert run(".", "--record-mode=once", *QUIET).code == 4
    done = run(".", "--record-mode=once", "-k", "two", *QUIET)
    assert done.code == 0, done.all
    assert model.heard == ["two"]


def test_the_folder_of_cassettes_is_an_option_and_a_setting(run: Any, project: Project) -> None:
    assert run(".", "--record-mode=once", "--harness-cassettes=tapes", *QUIET).code == 0
    assert (project.folder / "tapes/one/http.yaml").is_file()
    assert project.cassettes() == {}
    project.write("pytest.ini", "[pytest]\nharness_cassettes = tapes\n")
    assert run(".", *QUIET).code == 0


def test_a_damaged_cassette_fails_only_its_own_scenario(run: Any, project: Project) -> None:
    assert project.record().code == 0
    project.write("cassettes/one/http.yaml", "interactions:\n- 5\n")
    done = run(".", *QUIET)
    assert done.code == 1
    assert "1 failed, 1 passed" in done.out
    assert "cassettes/one/http.yaml:2:3" in done.out
    assert "Traceback" not in done.all


# ---------------------------------------------------------------- human input


@pytest.fixture
def asking(project: Project) -> Project:
    (project.folder / "p.scenario.yaml").unlink()
    project.write("asking.yaml", ASKING)
    scenario = "{name: colour, cassette: colour, expect: {state: {messages: [{content: blue}]}}}"
    project.write("a.scenario.yaml", f"harness: 1\nmanifest: asking.yaml\nscenarios: [{scenario}]\n")
    return project


@pytest.mark.parametrize("capture", ["fd", "sys", "no"])
def test_a_question_reaches_the_terminal_whatever_the_capture_mode(
    run: Any, asking: Project, capture: str
) -> None:
    args = ("--record-mode=rewrite", f"--capture={capture}", *QUIET)
    with Terminal(asking, "pytest", ".", *args) as terminal:
        terminal.type_after("Which colour?", "blue")
        told, code = terminal.end()
    assert code == 0, told
    assert run(".", *QUIET).code == 0


def test_a_replay_asks_no_question(asking: Project) -> None:
    with Terminal(asking, "pytest", ".", *QUIET) as terminal:
        told, code = terminal.end()
    assert code == 1, told
    assert "Which colour?" not in told.partition("FAILURES")[0]


def test_ctrl_c_at_a_question_ends_the_session(asking: Project) -> None:
    with Terminal(asking, "pytest", ".", "--record-mode=rewrite", *QUIET) as terminal:
        terminal.type_after("Which colour?", "\x03", end="")
        told, code = terminal.end()
    assert code == 2, told
    assert asking.cassettes() == {}
