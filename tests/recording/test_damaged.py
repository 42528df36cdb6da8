"""A recording that cannot be read ends its own scenario, with the location of the error; the others continue."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recording.safety import Project, parrots

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
DEEP = "[" * 5000

Damage = str | bytes | Callable[[str], str]
"""The new text of a file, or a function that makes it from the old text."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two recorded scenarios."""
    with parrots(tmp_path_factory.mktemp("recorded")) as project:
        project.parrot("one", "two")
        assert project.record().code == 0
    return project


@pytest.fixture
def project(recorded: Project, tmp_path: Path) -> Project:
    """The same in a separate folder; `one` is the damaged one."""
    shutil.copytree(recorded.folder, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path, recorded.env)


def replaced(file: str, old: str, new: str) -> tuple[str, Damage]:
    return file, lambda text: re.sub(old, new, text, count=1)


DAMAGES: dict[str, tuple[str, Damage]] = {
    "empty": ("http.yaml", ""),
    "only a comment": ("http.yaml", "# nothing\n"),
    "cut off in a text": ("http.yaml", lambda text: text[: text.index("chatcmpl") if "chatcmpl" in text else 900]),
    "cut off in meta": ("meta.yaml", lambda text: text[: text.index("duration_s") + 8]),
    "binary": ("http.yaml", b"\x7fELF\x02\x01\x00\xff\xfe"),
    "zero bytes": ("http.yaml", b"interactions:\n- \x00\x00\n"),
    "utf-16": ("http.yaml", "interactions: []\n".encode("utf-16")),
    "a tab": ("http.yaml", "interactions:\n\t- {}\n"),
    "not a mapping": ("http.yaml", "- 1\n- 2\n"),
    "a key misspelt": replaced("http.yaml", "interactions:", "interaction:"),
    "a key too many": replaced("http.yaml", "    method: POST", "    method: POST\n    metod: POST"),
    "a key twice": replaced("http.yaml", "    method: POST", "    method: POST\n    method: POST"),
    "no request": ("http.yaml", "interactions:\n- response: {status: {code: 200}, headers: {}}\nversion: 1\n"),
    "a status in words": replaced("http.yaml", "code: 200", "code: fine"),
    "a body that is a list": replaced("http.yaml", r"body:\n      string: .*\n(        .*\n)*", "body: [1, 2]\n"),
    "an object of Python": ("http.yaml", "interactions: !!python/object/apply:os.system ['touch owned']\n"),
    "another format": replaced("meta.yaml", "harness-cassette/1", "harness-cassette/9"),
    "no format": ("meta.yaml", "scenario: x\n"),
    "a duration in words": replaced("meta.yaml", r"duration_s: [\d.]+", "duration_s: long"),
    "a duration below 0": replaced("meta.yaml", r"duration_s: [\d.]+", "duration_s: -1"),
    "a duration without end": replaced("meta.yaml", r"duration_s: [\d.]+", "duration_s: .inf"),
    "a count that does not fit": replaced("meta.yaml", r"http:\n", "http:\n- turn: 1\n  duration_s: 0.5\n"),
    "a day that does not exist": replaced("meta.yaml", r'recorded: .*', 'recorded: "2026-02-31"'),
    "a bomb": ("http.yaml", BOMB),
    "a bomb in meta": ("meta.yaml", BOMB),
    "a well without ground": ("http.yaml", "interactions: " + DEEP),
    "itself": ("http.yaml", "interactions: &a [*a]\n"),
}  # fmt: skip


def damage(project: Project, file: str, how: Damage) -> None:
    path = project.folder / "cassettes/one" / file
    text = path.read_text(encoding="utf-8")
    made = how(text) if callable(how) else how
    assert made != text
    path.write_bytes(made if isinstance(made, bytes) else made.encode())


def assert_only_one_is_in_error(project: Project, file: str) -> None:
    done = project.replay()
    assert done.code == 3
    assert "Traceback" not in done.all
    assert project.verdicts() == {"one": "error", "two": "passed"}
    error = project.results()["one"]["error"]
    assert (error["type"], error["code"]) == ("CassetteBroken", "cassette-broken")
    assert re.match(rf"cassettes/one/{re.escape(file)}:\d+:\d+: \S", error["message"])
    assert error["where"].startswith(f"cassettes/one/{file}:")
    assert len(error["message"]) < 1000
    listed = project.harness("cassettes")
    assert listed.code == 1
    assert f"cassettes/one/{file}:" in listed.all
    assert "Traceback" not in listed.all
    assert re.search(r"two .* ok", listed.out)


@pytest.mark.parametrize("kind", DAMAGES)
def test_the_error_for_a_damaged_file_has_the_location(project: Project, kind: str) -> None:
    file, how = DAMAGES[kind]
    damage(project, file, how)
    assert_only_one_is_in_error(project, file)
    assert not (project.folder / "owned").exists()


def test_a_file_that_is_too_large_is_not_read(project: Project) -> None:
    with (project.folder / "cassettes/one/http.yaml").open("r+b") as file:
        file.truncate(101 * 1024 * 1024)
    assert_only_one_is_in_error(project, "http.yaml")
    assert "larger than 100 MiB" in project.results()["one"]["error"]["message"]


@pytest.mark.parametrize("file", ["http.yaml", "meta.yaml"])
def test_a_folder_in_place_of_a_file(project: Project, file: str) -> None:
    path = project.folder / "cassettes/one" / file
    path.unlink()
    path.mkdir()
    assert_only_one_is_in_error(project, file)


def test_a_file_in_place_of_the_folder(project: Project) -> None:
    shutil.rmtree(project.folder / "cassettes/one")
    project.write("cassettes/one", "interactions: []\n")
    assert project.replay().code == 3
    assert project.verdicts() == {"one": "error", "two": "passed"}
    assert project.harness("cassettes").code == 1


def test_a_link_that_leads_out(project: Project) -> None:
    path = project.folder / "cassettes/one/http.yaml"
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert_only_one_is_in_error(project, "http.yaml")
    assert "root:" not in project.replay().all


def test_a_damaged_cassette_is_recorded_anew(project: Project) -> None:
    damage(project, *DAMAGES["cut off in a text"])
    with parrots(project.folder) as recorder:
        assert recorder.record(".", "--rewrite").code == 0
    assert project.replay().code == 0


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all"])
def test_modes_that_keep_recordings_do_not_overwrite_damaged_files(project: Project, mode: str) -> None:
    damage(project, *DAMAGES["cut off in a text"])
    before = project.cassettes()
    with parrots(project.folder) as recorder:
        assert recorder.record(".", "--mode", mode, "-k", "::one").code == 3
    assert project.cassettes() == before


# ---------------------------------------------------------------- made by hand, or by vcrpy alone

HAND_MADE = """\
interactions:
- request:
    body: |
      {"model": "parrot-1", "stream": false, "messages": [
        {"role": "system", "content": "Be nice.Repeat what you hear."}, {"role": "user", "content": "one"}]}
    headers: {}
    method: POST
    uri: https://api.openai.com/v1/chat/completions
  response:
    body:
      string: |
        {"id": "x", "object": "chat.completion", "created": 1, "model": "parrot-1", "choices": [
          {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "by hand"}}]}
    headers: {content-type: [application/json]}
    status: {code: 200, message: OK}
version: 1
"""


def test_a_cassette_of_vcrpy_alone_plays_and_takes_no_time(project: Project) -> None:
    shutil.rmtree(project.folder / "cassettes/one")
    project.write("cassettes/one/http.yaml", HAND_MADE)
    done = project.replay()
    assert done.code == 0, done.all
    result = project.results()["one"]
    assert (result["output"], result["latency"]["total"]) == ("by hand", 0.0)
    listed = project.harness("cassettes", "--json")
    assert listed.code == 0, listed.all
    assert '"age_days": null' in listed.out
