"""A cassette on disk: its name, its recordings, and locking."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CassetteBroken, CassetteError
from harness.interception.messages import Request, Response
from harness.recording.folder import (
    CassetteFolder,
    cassette_names,
)
from harness.recording.interactions import Exchange, Interaction, Recording, RecordingMetadata
from tests.recording.cassette.sample import (
    ABOUT,
    CHAT,
    EXCHANGE,
    RECORDING,
    files,
    interaction,
    loaded,
    told,
)


@pytest.mark.parametrize(
    "name", ["weather", "weather/rain", "a b", "Wetter-für_2", "recording", "recording-x", "a.b"]
)
def test_names(tmp_path: Path, name: Any) -> None:
    folder = CassetteFolder(tmp_path, name)
    assert folder.save({1: RECORDING})
    assert (tmp_path / name / "http.yaml").is_file()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is empty"),
        ("/etc", "relative path"),
        ("a//b", "relative path"),
        ("a/", "relative path"),
        ("..", "begins with a dot"),
        ("a/../../b", "begins with a dot"),
        (".git", "begins with a dot"),
        ("a\\b", "not allowed in file names on every system"),
        ("C:x", "not allowed in file names on every system"),
        ("a\nb", "it contains an invisible character"),
        ("a\x1b[31m", "it contains an invisible character"),
        ("\ud800", "it contains an invisible character"),
        ("a ", "space"),
        ("a.", "dot"),
        ("nul", "device"),
        ("COM1.txt", "device"),
        ("recording-2", "that cassettes use"),
        ("a/Recording-2/b", "that cassettes use"),
        ("a/take-2/b", "that cassettes use"),
        ("a/http.yaml", "that cassettes use"),
        ("x" * 201, "longer than 200"),
    ],
)
def test_names_that_no_cassette_can_have(tmp_path: Path, name: Any, why: Any) -> None:
    with pytest.raises(CassetteError) as refused:
        CassetteFolder(tmp_path, name)
    assert "cannot be the name of a cassette" in str(refused.value)
    assert why in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_link_does_not_lead_out_of_the_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "cassettes", tmp_path / "outside"
    CassetteFolder(outside, "a").save({1: RECORDING, 2: RECORDING})
    root.mkdir()
    (root / "linked").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    for name in ("linked", "linked/a", "loop"):
        with pytest.raises(CassetteError, match="is not below"):
            CassetteFolder(root, name)
    (root / "b").mkdir()
    (root / "b/http.yaml").symlink_to(outside / "a/http.yaml")
    (root / "b/recording-2").symlink_to(outside / "a/recording-2")
    for recording in (1, 2):
        with pytest.raises(CassetteBroken, match="a link leads out of the cassettes"):
            CassetteFolder(root, "b").load(recording)
    before = files(outside)
    with pytest.raises(CassetteError, match="in the way"):
        CassetteFolder(root, "b").save({1: RECORDING, 2: Recording()})
    assert files(outside) == before


def test_a_link_planted_where_a_file_is_written_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "cassettes/a"
    folder.mkdir(parents=True)
    for name in ("http.yaml.new", "meta.yaml", "cassette.journal.new"):
        (folder / name).symlink_to(outside)
    assert CassetteFolder(tmp_path / "cassettes", "a").save({1: RECORDING})
    assert outside.read_text() == "mine"


def test_saved_recordings_are_loaded(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    assert (folder.numbers(), folder.load()) == ([], None)
    other = Recording((interaction("three"),))
    assert folder.save({1: RECORDING, 3: other})
    assert folder.numbers() == [1, 3]
    assert told(folder.load()) == told(RECORDING)
    assert told(folder.load(3)) == told(other)
    assert folder.load(2) is None


def test_older_cassettes_call_recordings_takes_until_they_are_written(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    third = Recording((interaction("three"),))
    folder.save({1: RECORDING, 2: RECORDING, 3: third})
    written = files(tmp_path)
    for number in (2, 3):
        (tmp_path / f"a/recording-{number}").rename(tmp_path / f"a/take-{number}")
    (tmp_path / "a/take-3/notes.txt").write_text("mine")
    assert folder.numbers() == [1, 2, 3]
    assert cassette_names(tmp_path) == ["a"]
    assert folder.folder_of(3) == tmp_path / "a/take-3"
    assert folder.folder_of(4) == tmp_path / "a/recording-4"
    loaded = {number: recording for number in folder.numbers() if (recording := folder.load(number))}
    assert told(loaded[2]) == told(RECORDING)
    assert told(loaded[3]) == told(third)
    assert folder.save(loaded)
    assert files(tmp_path) == {**written, "a/take-3/notes.txt": b"mine"}
    assert folder.numbers() == [1, 2, 3]


def test_of_both_folder_names_the_newer_is_read_and_kept(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    older, newer = Recording((interaction("older"),)), Recording((interaction("newer"),))
    folder.save({2: older})
    (tmp_path / "a/recording-2").rename(tmp_path / "a/take-2")
    CassetteFolder(tmp_path, "b").save({2: newer})
    (tmp_path / "b/recording-2").rename(tmp_path / "a/recording-2")
    found = folder.load(2)
    assert found is not None
    assert told(found) == told(newer)
    folder.save({2: found})
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["recording-2"]


def test_a_recording_in_which_nothing_was_asked_is_recorded_too(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    assert folder.save({1: Recording(metadata=ABOUT)})
    assert sorted(files(tmp_path)) == ["a/meta.yaml"]
    assert folder.load() == Recording(metadata=ABOUT)


def test_the_same_again_touches_nothing(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: RECORDING, 2: RECORDING})
    before = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in tmp_path.rglob("*")}
    assert folder.save({1: loaded(tmp_path), 2: loaded(tmp_path, 2)}) is False
    assert {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in tmp_path.rglob("*")} == before


def test_durations_and_dates_are_in_meta_yaml_alone(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: Recording((interaction("one"),), {"w": (EXCHANGE,)}, (), ABOUT)})
    before = files(tmp_path)
    later = Exchange(EXCHANGE.sent, EXCHANGE.received, 1, 9.0)
    dated = Request(
        "POST",
        CHAT,
        {"content-type": "application/json", "date": "now", "x-stainless-retry-count": "1"},
        interaction("one").request.body,
    )
    response = Response(
        200, "OK", (("date", "now"), ("content-type", "application/json")), b'{"said": "one"}'
    )
    assert folder.save(
        {
            1: Recording(
                (Interaction(dated, response, 1, 7.0, (1.0,)),),
                {"w": (later,)},
                (),
                RecordingMetadata(recorded="2027-01-01"),
            )
        }
    )
    after = files(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"a/meta.yaml"}


def test_files_and_recordings_that_are_no_longer_needed_go_and_others_stay(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: RECORDING, 2: RECORDING, 3: RECORDING})
    (tmp_path / "a/README.md").write_text("mine")
    (tmp_path / "a/recording-3/notes.txt").write_text("mine")
    (tmp_path / "a/recording-12x").mkdir()
    CassetteFolder(tmp_path, "a/b").save({1: RECORDING})
    assert folder.save({1: Recording((interaction(),))})
    assert {"a/README.md", "a/http.yaml", "a/meta.yaml", "a/recording-3/notes.txt"} < set(files(tmp_path))
    assert not {"a/mcp.yaml", "a/recording-2/http.yaml", "a/recording-3/meta.yaml"} & set(files(tmp_path))
    assert not (tmp_path / "a/recording-2").exists()
    assert CassetteFolder(tmp_path, "a/b").numbers()


def test_the_names_of_all_cassettes(tmp_path: Path) -> None:
    assert cassette_names(tmp_path / "nowhere") == []
    for name, recordings in [
        ("b", {1: RECORDING, 2: RECORDING}),
        ("a/c", {2: RECORDING}),
        ("a", {1: Recording()}),
    ]:
        CassetteFolder(tmp_path, name).save(recordings)
    for name in (".hidden", "con", "readme"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ("README.md" if name == "readme" else "http.yaml")).touch()
    (tmp_path / "http.yaml").touch()
    (tmp_path / "linked").symlink_to("b")
    assert cassette_names(tmp_path) == ["a", "a/c", "b"]


def test_a_cassette_is_removed_without_other_files(tmp_path: Path) -> None:
    for name in ("a/b", "a/c", "d"):
        CassetteFolder(tmp_path, name).save({1: RECORDING, 2: RECORDING})
    (tmp_path / "d/README.md").write_text("mine")
    for name in ("a/b", "d", "nothing"):
        CassetteFolder(tmp_path, name).remove()
    assert cassette_names(tmp_path) == ["a/c"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "d"]
    assert files(tmp_path / "d") == {"README.md": b"mine"}
    CassetteFolder(tmp_path, "a/c").remove()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d"]


def test_recordings_are_counted_from_1(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    for use in (lambda: folder.load(0), lambda: folder.save({0: RECORDING})):
        with pytest.raises(ValueError, match="counted from 1"):
            use()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "a/http.yaml").mkdir(parents=True)
    (tmp_path / "b").write_text("a file")
    with pytest.raises(CassetteError, match=r"http\.yaml is in the way"):
        CassetteFolder(tmp_path, "a").save({1: RECORDING})
    with pytest.raises(CassetteError, match="the cassette 'b' cannot be written: "):
        CassetteFolder(tmp_path, "b").save({1: RECORDING})
    (tmp_path / "c").mkdir()
    (tmp_path / "c/recording-2").write_text("a file")
    with pytest.raises(CassetteError, match="the cassette 'c' cannot be written: "):
        CassetteFolder(tmp_path, "c").save({1: RECORDING, 2: RECORDING})
    assert files(tmp_path / "c") == {"recording-2": b"a file"}
    assert CassetteFolder(tmp_path, "b").load() is None


def test_json_that_is_too_deep_is_not_written(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(CassetteError, match="nested more than 100 levels deep"):
        CassetteFolder(tmp_path, "a").save({1: Recording((), {"w": (Exchange(deep),)})})


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Use a separate folder for temporary files."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


HOLD = """
import sys
from pathlib import Path
from harness.recording.folder import CassetteFolder
with CassetteFolder(Path(sys.argv[1]), "a").reserved():
    print("recording", flush=True)
    sys.stdin.read()
"""


def test_a_cassette_is_recorded_by_one_process_at_a_time(
    tmp_path: Path, temp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.recording.folder.PATIENCE_S", 0.0)
    root = tmp_path / "cassettes"
    folder = CassetteFolder(root, "a")
    command = [sys.executable, "-c", HOLD, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "recording\n"
        with (
            pytest.raises(CassetteError, match="'a' is being recorded by another process"),
            folder.reserved(),
        ):
            pass
        with CassetteFolder(root, "b").reserved():
            pass
        assert folder.load() is None
        other.kill()
        other.wait()
    with folder.reserved():
        folder.save({1: RECORDING})
        assert told(folder.load()) == told(RECORDING)
    assert list(temp.iterdir()) == []
    assert sorted(files(root)) == ["a/http.yaml", "a/mcp.yaml", "a/meta.yaml"]


def test_a_cassette_can_be_read_where_no_lock_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CassetteFolder(tmp_path, "a").save({1: RECORDING})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert told(CassetteFolder(tmp_path, "a").load()) == told(RECORDING)
    with pytest.raises(CassetteError, match="cannot be locked"), CassetteFolder(tmp_path, "a").reserved():
        pass
