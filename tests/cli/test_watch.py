"""`harness run --watch`, at a terminal."""

import sys
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite
from tests.recording.safety import Project, Terminal

COUNTS = "{name: counts, expect: {state: {count: 1}}}"
WATCHING = "watching; Ctrl-C ends"


def test_scenarios_affected_by_a_saved_file_run_again_until_ctrl_c(
    suite: WriteSuite, write: WriteFile, tmp_path: Path
) -> None:
    suite(COUNTS)
    manifest = (tmp_path / "counter.yaml").read_text()
    write("other.yaml", manifest)
    write("b.scenario.yaml", f"harness: 1\nmanifest: other.yaml\nscenarios:\n  - {COUNTS}\n")
    with Terminal(Project(tmp_path), "harness", "run", ".", "--watch", "-j", "2") as terminal:
        terminal.type_after(WATCHING, "", end="")
        write("counter.yaml", "agents: [")  # an incomplete file, as an editor may save it
        terminal.type_after(WATCHING, "", end="")
        write("other.yaml", manifest.replace("+ 1", "+ 2"))
        terminal.type_after(WATCHING, "", end="")
        write("counter.yaml", manifest)
        terminal.type_after(WATCHING, "", end="\x03")
        shown, code = terminal.end()
    _, broken, worse, mended = shown.replace("\r", "").split("changed: ")
    assert broken.startswith("counter.yaml\n  rerun a.scenario.yaml::counts: counter.yaml changed\n")
    assert "1 error   (1 run of 1 scenario)" in broken
    assert worse.startswith("other.yaml\n  rerun b.scenario.yaml::counts: other.yaml changed\n")
    assert "1 other did not pass before: a.scenario.yaml::counts\n" in worse
    assert mended.startswith("counter.yaml\n  rerun a.scenario.yaml::counts: counter.yaml changed\n")
    assert "1 passed   (1 run of 1 scenario)" in mended
    assert code == 1  # b still fails, though it was not in the last run


def test_a_missing_package_is_named_with_the_command_to_install_it(
    invoke: Invoke, suite: WriteSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(COUNTS)
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    result = invoke("run", ".", "--watch")
    assert result.exit_code == 2
    assert 'pip install "agent-scenarios[watch]"' in result.stderr


@pytest.mark.parametrize(
    "option", [["--live"], ["--record-mode", "once"], ["--json", "-"], ["--fail-under", "1"]]
)
def test_recordings_and_files_of_other_programs_are_not_watched(
    invoke: Invoke, suite: WriteSuite, option: list[str]
) -> None:
    suite(COUNTS)
    result = invoke("run", ".", "--watch", *option)
    assert result.exit_code == 2
    assert "--watch cannot be combined with" in result.stderr
