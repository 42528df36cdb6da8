"""`harness run --changed` in a git repository."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite

Git = Callable[..., None]
COUNTS = "{name: counts, expect: {state: {count: 1}}}"


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Run git in the current folder, without anyone's settings."""
    for name, value in {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CEILING_DIRECTORIES": str(tmp_path.parent),
        **{
            f"GIT_{who}_{what}": f"{who}@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }.items():
        monkeypatch.setenv(name, value)

    def run(*args: str) -> None:
        subprocess.run(["git", *args], check=True, capture_output=True, cwd=tmp_path)

    return run


@pytest.fixture
def repository(git: Git, suite: WriteSuite, write: WriteFile) -> Git:
    """A repository with two scenario files on its branch `main`."""
    suite(COUNTS)
    suite(COUNTS, file="b.scenario.yaml")
    write(".gitignore", "reports\n")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "one")
    return git


def ran() -> list[str]:
    lines = Path("reports/latest/results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["suite"] for line in lines]


def summary() -> dict[str, object]:
    found: dict[str, object] = json.loads(Path("reports/latest/summary.json").read_text(encoding="utf-8"))
    return found


def touch(name: str) -> None:
    Path(name).write_text(Path(name).read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")


def test_without_changes_nothing_runs_and_nothing_passes(invoke: Invoke, repository: Git) -> None:
    result = invoke("run", ".", "--changed", "-q")
    assert result.exit_code == 0
    assert result.stderr == "nothing to run: 0 of 2 scenarios selected (no file changed since HEAD)\n"
    assert summary()["complete"] is False
    assert "passed" not in result.stderr


@pytest.mark.parametrize("add", [False, True], ids=["in the working tree", "in the index"])
def test_uncommitted_changes_count(invoke: Invoke, repository: Git, add: bool) -> None:
    touch("a.scenario.yaml")
    if add:
        repository("add", "-A")
    result = invoke("run", ".", "--changed", "-v")
    assert result.exit_code == 0
    assert "a.scenario.yaml::counts: a.scenario.yaml changed\n" in result.stdout
    assert ran() == ["a.scenario.yaml"]
    assert summary()["reason"] == "1 of 2 scenarios selected (changed since HEAD)"


def test_an_untracked_file_counts_as_changed(invoke: Invoke, repository: Git, suite: WriteSuite) -> None:
    suite(COUNTS, file="c.scenario.yaml")
    invoke("run", ".", "--changed")
    assert ran() == ["c.scenario.yaml"]


def test_changes_since_a_branch_are_those_since_the_merge_base(invoke: Invoke, repository: Git) -> None:
    repository("switch", "-qc", "work")
    touch("a.scenario.yaml")
    repository("commit", "-qam", "mine")
    repository("switch", "-q", "main")
    touch("b.scenario.yaml")
    repository("commit", "-qam", "theirs")
    repository("switch", "-q", "work")
    invoke("run", ".", "--changed=main")
    assert ran() == ["a.scenario.yaml"]
    invoke("run", ".", "--changed")
    assert ran() == []


def test_a_path_may_follow_the_option(invoke: Invoke, repository: Git) -> None:
    touch("a.scenario.yaml")
    assert invoke("run", "--changed", ".").exit_code == 0
    assert ran() == ["a.scenario.yaml"]
    assert invoke("run", "--changed", "HEAD", ".").exit_code == 0
    assert ran() == ["a.scenario.yaml"]


def test_an_invalid_file_is_an_error_even_if_it_is_unchanged(
    invoke: Invoke, repository: Git, write: WriteFile
) -> None:
    write("broken.scenario.yaml", "harness: 1\nscenarios: [\n")
    repository("add", "-A")
    repository("commit", "-qm", "broken")
    assert invoke("run", ".", "--changed").exit_code == 2


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--changed=mian"], "no branch, tag or commit 'mian' [unknown-ref]\n    did you mean 'main'?"),
        (["--changed=a.scenario.yaml"], None),
        (["--changed"], None),
    ],
)
def test_an_unknown_commit_is_an_error(
    invoke: Invoke, repository: Git, args: list[str], told: str | None
) -> None:
    result = invoke("run", ".", *args)
    assert result.exit_code == (0 if told is None else 2)
    assert told is None or told in result.stderr


def test_changed_without_a_repository_is_an_error(invoke: Invoke, git: Git, suite: WriteSuite) -> None:
    suite(COUNTS)
    result = invoke("run", ".", "--changed")
    assert result.exit_code == 2
    assert "is not in a git repository, so the changes are not known [no-repository]" in result.stderr


def test_changed_without_git_is_an_error(
    invoke: Invoke, suite: WriteSuite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    suite(COUNTS)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = invoke("run", ".", "--changed")
    assert result.exit_code == 2
    assert "git is not installed" in result.stderr


def test_changed_without_a_commit_is_an_error(invoke: Invoke, git: Git, suite: WriteSuite) -> None:
    suite(COUNTS)
    git("init", "-q")
    result = invoke("run", ".", "--changed")
    assert result.exit_code == 2
    assert "the repository has no commit yet" in result.stderr


def test_a_shallow_clone_is_named_as_the_reason(
    invoke: Invoke, repository: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch("a.scenario.yaml")
    repository("commit", "-qam", "two")
    repository("clone", "-q", "--depth", "1", f"file://{tmp_path}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    result = invoke("run", ".", "--changed=HEAD~1")
    assert result.exit_code == 2
    assert "this clone is shallow: `git fetch --unshallow`" in result.stderr
