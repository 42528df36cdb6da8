"""A cassette changes as a whole, even if the change is interrupted."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CassetteBroken
from harness.recording.folder import (
    CassetteFolder,
)
from harness.recording.interactions import Recording
from tests.recording.cassette.sample import (
    RECORDING,
    files,
    told,
)


def test_killed_at_any_step_a_save_leaves_the_old_cassette_or_the_new_one(tmp_path: Path) -> None:
    script = Path(__file__).with_name("killed_while_saving.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=True, timeout=300
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    found = [outcome["loaded"] for outcome in outcomes]
    assert set(found) == {"old", "new"}
    assert found == sorted(found, reverse=True)  # there is one moment at which it changes
    assert found.count("new") > 10, "the change was killed while files were put in place, too"
    assert len(found) > 30
    assert {tuple(outcome["left"]) for outcome in outcomes} == {()}
    assert {outcome["again"] for outcome in outcomes} == {"new"}


def test_leftovers_of_an_interrupted_save_are_ignored_and_removed_by_the_next(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: RECORDING, 2: RECORDING})
    for name in ("http.yaml.new", "recording-2/mcp.yaml.new", "cassette.journal.new"):
        (tmp_path / "a" / name).write_text("half of it")
    assert told(folder.load()) == told(RECORDING)
    folder.save({1: RECORDING, 2: RECORDING})
    assert not list(tmp_path.rglob("*.new"))


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "[",
        "[]",
        '{"put": ["../x.yaml"], "remove": []}',
        '{"put": ["/etc/passwd"], "remove": []}',
        '{"put": [], "remove": ["README.md"]}',
        '{"put": [], "remove": ["recording-2/../../b/http.yaml"]}',
        '{"put": "http.yaml", "remove": []}',
        '{"put": [1], "remove": []}',
    ],
)
def test_a_journal_that_is_none_is_refused_and_nothing_is_touched(tmp_path: Path, plan: Any) -> None:
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: RECORDING})
    (tmp_path / "a/README.md").write_text("mine")
    (tmp_path / "a/cassette.journal").write_text(plan)
    before = files(tmp_path)
    for use in (folder.load, folder.numbers, lambda: folder.save({1: Recording()})):
        with pytest.raises(
            CassetteBroken, match=r"cassette\.journal:1:1: this is not a journal of an interrupted recording"
        ):
            use()
    assert files(tmp_path) == before
