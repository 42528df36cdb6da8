"""`harness cassettes`: the list of recordings, and their problems."""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.recording.safety import Done, Model, Project, parrots


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with two recorded scenarios, and their model."""
    with parrots(tmp_path_factory.mktemp("recorded"), Model()) as project:
        project.parrot("one", "two")
        assert project.record().code == 0
        yield project


@pytest.fixture
def project(recorded: Project, tmp_path: Path) -> Project:
    """A copy of the recorded project."""
    shutil.copytree(recorded.folder, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path, recorded.env)


def listed(done: Done) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(done.out)}


def test_cassettes_without_problems_are_ok(project: Project) -> None:
    done = project.harness("cassettes")
    assert (done.code, done.err) == (0, "")
    for name in ("one", "two"):
        assert re.search(rf"^{name} +today +1 +1 +ok$", done.out, re.MULTILINE), done.out


def test_the_list_as_json(project: Project) -> None:
    done = project.harness("cassettes", "--json")
    assert done.code == 0
    assert listed(done)["one"] == {
        "name": "one",
        "folder": "cassettes/one",
        "age_days": 0,
        "too_old": False,
        "recordings": 1,
        "calls": 1,
        "unused": 0,
        "changed": [],
        "scenarios": ["p.scenario.yaml::one"],
        "orphaned": False,
        "problem": "",
        "unfinished": 0,
    }


def test_calls_of_a_recording_that_did_not_end_are_listed(project: Project) -> None:
    for name, calls in (("one", 2), ("gone", 1)):
        for number in range(1, calls + 1):
            left = project.folder / f"cassettes/{name}/.unfinished/missing/1/{number:06}"
            left.mkdir(parents=True)
            shutil.copy(project.folder / "cassettes/two/http.yaml", left)
    done = project.harness("cassettes")
    advice = "of a recording that did not end: record again to use them, or delete .unfinished"
    said = " ".join(done.out.split())
    assert done.code == 1
    assert f"one today 1 1 2 calls {advice}" in said
    assert f"gone ? 0 0 orphaned: no scenario names it; not recorded; 1 call {advice}" in said
    assert [each["unfinished"] for each in listed(project.harness("cassettes", "--json")).values()] == [
        1,
        2,
        0,
    ]


def test_the_command_calls_no_model_and_writes_nothing(project: Project) -> None:
    before = project.cassettes()
    shutil.rmtree(project.folder / "reports")
    assert (
        project.harness("cassettes", OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY=None).code == 0
    )
    assert project.cassettes() == before
    assert not (project.folder / "reports").exists()


def test_the_age_of_a_cassette_is_listed(project: Project) -> None:
    meta = project.folder / "cassettes/one/meta.yaml"
    then = date.today() - timedelta(days=40)
    meta.write_text(re.sub(r"recorded: .*", f'recorded: "{then}"', meta.read_text()))
    done = project.harness("cassettes")
    assert (done.code, "40 d" in done.out) == (0, True)


def test_unused_calls_of_a_cassette_are_counted(project: Project) -> None:
    http, meta = (project.folder / "cassettes/one" / name for name in ("http.yaml", "meta.yaml"))
    text = http.read_text()
    again = text[text.index("- request:") : text.index("version: 1")]
    http.write_text(text.replace("version: 1", again + "version: 1"))
    meta.write_text(meta.read_text() + "- turn: 1\n  duration_s: 0.1\n")
    done = project.harness("cassettes")
    assert done.code == 1
    assert "1 of 2 calls unused" in done.out


@pytest.mark.parametrize("file", ["parrot.yaml", "manner.txt"])
def test_a_changed_manifest_or_prompt_file_makes_a_cassette_stale(project: Project, file: str) -> None:
    path = project.folder / file
    path.write_text(path.read_text().replace("Repeat", "Never repeat") + "\n")
    done = project.harness("cassettes")
    assert done.code == 1, done.all
    assert f"stale: {file} changed since" in done.out
    if file == "manner.txt":  # the request has changed as well
        assert "does not replay, see below" in done.out
        assert '"Be nice.[-Repeat-]{+Never repeat+} what you hear.' in done.out


def test_a_prompt_file_that_was_not_recorded_makes_a_cassette_stale(project: Project) -> None:
    meta = project.folder / "cassettes/one/meta.yaml"
    without = re.sub(r"^ *manner\.txt: .*\n", "", meta.read_text(), flags=re.MULTILINE)
    assert without != meta.read_text()
    meta.write_text(without)
    done = project.harness("cassettes")
    assert done.code == 1, done.all
    assert "stale: manner.txt changed since" in done.out


def test_a_missing_prompt_file_is_an_error(project: Project) -> None:
    (project.folder / "manner.txt").unlink()
    done = project.run("harness", "cassettes")
    assert done.code == 1
    assert "manner.txt" in done.all
    assert "Traceback" not in done.all


def test_a_cassette_that_is_not_recorded_is_listed(project: Project) -> None:
    project.parrot("one", "two", "three")
    done = project.harness("cassettes")
    assert done.code == 1
    assert re.search(r"^three +\? +0 +0 +not recorded$", done.out, re.MULTILINE), done.out


def test_a_damaged_cassette_is_reported_with_its_place(project: Project) -> None:
    project.write("cassettes/one/http.yaml", "interactions:\n- 5\n")
    done = project.harness("cassettes")
    assert done.code == 1
    assert "one: cassettes/one/http.yaml:2:3: interactions[0]: expected a mapping" in done.out
    assert re.search(r"^two .* ok *$", done.out, re.MULTILINE)


def test_a_scenario_that_can_no_longer_run_does_not_replay(project: Project) -> None:
    project.write("parrot.yaml", "manifest_version: 1\nagents: {}\n")
    done = project.harness("cassettes")
    assert done.code == 1
    assert "Traceback" not in done.all
    assert "does not replay, see below" in done.out


def test_a_project_without_cassettes(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.parrot("one")
    text = (tmp_path / "p.scenario.yaml").read_text()
    project.write("p.scenario.yaml", text.replace("cassette: one, ", "llm: [hi], "))
    done = project.harness("cassettes")
    assert done.code == 0
    assert done.out == "no cassettes: `harness record` makes them, for scenarios with `cassette: NAME`\n"
    assert listed(project.harness("cassettes", "--json")) == {}


# ---------------------------------------------------------------- orphans


def test_orphaned_cassettes_are_listed_and_pruned(project: Project) -> None:
    project.parrot("two")
    project.write("cassettes/README.md", "mine")
    project.write("cassettes/one/notes.txt", "mine too")
    project.write("cassettes/deep/er/http.yaml", project.cassettes()["one/http.yaml"])
    done = project.harness("cassettes")
    assert done.code == 1
    assert re.search(r"^one .* orphaned: no scenario names it *$", done.out, re.MULTILINE)
    assert re.search(r"^deep/er .* orphaned: no scenario names it *$", done.out, re.MULTILINE)
    pruned = project.harness("cassettes", "--prune")
    assert pruned.code == 0
    assert "removed cassettes/one\n" in pruned.out
    assert "removed cassettes/deep/er\n" in pruned.out
    assert set(project.cassettes()) == {"README.md", "one/notes.txt", "two/http.yaml", "two/meta.yaml"}
    assert not (project.folder / "cassettes/deep").exists()
    assert project.replay().code == 0


def test_pruning_does_not_follow_links(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("http.yaml", "meta.yaml"):
        shutil.copy(project.folder / "cassettes/one" / name, elsewhere / name)
    (project.folder / "cassettes/linked").symlink_to(elsewhere)
    assert project.harness("cassettes", "--prune").code == 0
    assert {path.name for path in elsewhere.iterdir()} == {"http.yaml", "meta.yaml"}


def test_pruning_with_json_reports_removals_on_standard_error(project: Project) -> None:
    project.parrot("two")
    done = project.harness("cassettes", "--prune", "--json")
    assert set(listed(done)) == {"two"}
    assert done.err == "removed cassettes/one\n"


def test_nothing_is_pruned_with_a_path(project: Project) -> None:
    before = project.cassettes()
    project.parrot("two")
    done = project.harness("cassettes", "--prune", "p.scenario.yaml")
    assert done.code == 2
    assert "give no PATH" in done.err
    assert project.cassettes() == before


def test_nothing_is_pruned_while_a_scenario_file_cannot_be_read(project: Project) -> None:
    before = project.cassettes()
    project.parrot("two")
    project.write("broken.scenario.yaml", "harness: 1\nscenarios: [{nam: x}]\n")
    done = project.harness("cassettes", "--prune")
    assert done.code == 2
    assert "nothing is removed" in done.err
    assert project.cassettes() == before


def test_nothing_is_pruned_without_scenarios(project: Project) -> None:
    before = project.cassettes()
    (project.folder / "p.scenario.yaml").unlink()
    done = project.harness("cassettes", "--prune")
    assert done.code == 2
    assert project.cassettes() == before


def test_in_a_subfolder_pruning_considers_the_whole_project(project: Project) -> None:
    project.write("pyproject.toml", "[tool.harness]\n")
    project.write(
        "below/q.scenario.yaml", "harness: 1\nmanifest: ../parrot.yaml\nscenarios: [{name: x, llm: [hi]}]\n"
    )
    below = Project(project.folder / "below", project.env)
    done = below.harness("cassettes", "--prune")
    assert done.code == 0
    assert "removed" not in done.all
    assert len(project.cassettes()) == 4


def test_with_a_path_only_cassettes_of_its_scenarios_are_listed(project: Project) -> None:
    project.parrot("two", file="q.scenario.yaml")
    project.parrot("one")
    project.write("cassettes/orphan/http.yaml", "interactions: []\n")
    done = project.harness("cassettes", "q.scenario.yaml")
    assert (done.code, "two" in done.out, "one" in done.out, "orphan" in done.out) == (0, True, False, False)
