"""Secrets are planted in all places of the traffic. None of them is in any output."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.planted import files_with, found_in
from tests.recording.planted.project import planted
from tests.recording.planted.servers import World
from tests.recording.planted.values import OTHERS, SECRETS, VARIABLES
from tests.recording.safety import Done, Project, Terminal


@dataclass
class Recorded:
    project: Project
    world: World
    told: str
    code: int
    digests: dict[str, str]
    verdicts: dict[str, str]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    typed = VARIABLES["TYPED_PASSWORD"]
    with (
        planted(tmp_path_factory.mktemp("planted")) as (project, world, env),
        Terminal(project, "harness", "record", "planted.scenario.yaml", **env) as terminal,
    ):
        terminal.type_after("answer", typed)
        told, code = terminal.end()
    told = told.replace(f"{typed}\r\n", "", 1)  # the terminal shows what is typed, not the harness
    return Recorded(project, world, told, code, project.digests(), project.verdicts())


def test_everything_was_recorded_for_real(recorded: Recorded) -> None:
    assert (recorded.code, set(recorded.verdicts.values())) == (0, {"passed"}), recorded.told


def test_each_secret_went_out_or_came_in(recorded: Recorded) -> None:
    heard = recorded.world.heard().decode()
    told = heard + json.dumps(parse_qs(heard)) + "".join(parse_qs(heard).keys())
    # One goes to a server of the harness, which does not tell; the others come in a response.
    silent = {"DESK_TOKEN", "STREAMED_PASSWORD", "cookie of a response", "argument of an MCP tool"}
    assert {name for name, value in SECRETS.items() if not found_in(told, value)} == silent


def test_no_secret_is_written_or_printed_when_it_is_recorded(recorded: Recorded) -> None:
    for name, secret in SECRETS.items():
        assert files_with(recorded.project.folder / "cassettes", secret) == {}, name
        assert files_with(recorded.project.folder / "reports", secret) == {}, name
        assert found_in(recorded.told, secret) == [], name


@pytest.fixture(scope="module", params=["unset", "other"])
def replayed(recorded: Recorded, request: pytest.FixtureRequest) -> tuple[Done, dict[str, str], Path]:
    """The replay with the variables unset or changed: its output, its digests and its report."""
    report = f"reports/{request.param}"
    env = OTHERS if request.param == "other" else {}
    done = recorded.project.harness("run", "planted.scenario.yaml", "--report", report, **env)
    results = recorded.project.results(report)
    return done, {name: line["digest"] for name, line in results.items()}, recorded.project.folder / report


def test_the_replay_is_the_same_without_the_secrets_and_with_others(
    recorded: Recorded, replayed: Any
) -> None:
    done, digests, _ = replayed
    assert done.code == 0, done.all
    assert digests == recorded.digests


def test_no_secret_is_written_or_printed_when_it_is_replayed(replayed: Any) -> None:
    done, _, report = replayed
    for secret in [*SECRETS.values(), *OTHERS.values()]:
        assert (found_in(done.all, secret), files_with(report, secret)) == ([], {})


WRITTEN_BY_PEOPLE = {
    "stream.yaml", "flow.json", "unlock.json", "vault.py", "planted.scenario.yaml", "failing.scenario.yaml",
}  # fmt: skip
LOUD = ("--log-level=DEBUG", "-o", "log_cli=true", "--log-file=log.txt", "--log-file-level=DEBUG",
        "--junitxml=junit.xml", "-o", "junit_logging=all", "-o", "junit_log_passing_tests=true", "-vv")  # fmt: skip


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done, Done]:
    """Record and replay with pytest, with all logging enabled: failures are shown in full."""
    with planted(tmp_path_factory.mktemp("planted")) as (project, _, env):
        args = ("failing.scenario.yaml", "-p", "no:cacheprovider", *LOUD)
        recorded = project.run("pytest", *args, "--record-mode=rewrite", **env)
        for name in ("log.txt", "junit.xml", "reports/latest/results.jsonl"):
            project.write(f"recorded/{name}", (project.folder / name).read_bytes())
        replayed = project.run("pytest", *args, **VARIABLES)
    return project, recorded, replayed


def test_failures_are_shown_at_length(failed: tuple[Project, Done, Done]) -> None:
    project, recorded, replayed = failed
    assert "DEBUG" in recorded.out
    assert "7 failed" in recorded.out, recorded.out
    assert "7 failed" in replayed.out, replayed.out
    # What breaks off is not kept; what pauses is.
    kept = {"guide-fails", "flow-fails", "unlock-fails", "stream-fails", "nobody"}
    assert {path.partition("/")[0] for path in project.cassettes()} == kept


def test_no_secret_is_in_what_pytest_shows_logs_and_writes(failed: tuple[Project, Done, Done]) -> None:
    project, recorded, replayed = failed
    for name, secret in SECRETS.items():
        assert found_in(recorded.all, secret) == [], name
        assert found_in(replayed.all, secret) == [], name
        assert set(files_with(project.folder, secret)) <= WRITTEN_BY_PEOPLE, name
