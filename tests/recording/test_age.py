"""Recordings that are too old: `max_age_days` and `stale_cassettes`."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.recording.safety import Model, Project, parrots

Aged = Callable[..., Project]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A recorded scenario that refuses all warnings."""
    with parrots(tmp_path_factory.mktemp("aged"), Model()) as project:
        project.parrot("one", expect="{never_warnings: [{$any: true}]}")
        assert project.record().code == 0
        yield project


@pytest.fixture
def aged(recorded: Project) -> Aged:
    """Return the project with a recording of that age in days (None: without a date) and these settings."""

    meta = recorded.folder / "cassettes/one/meta.yaml"
    without_day = re.sub(r"recorded: .*\n", "", meta.read_text())

    def project(days: int | None, settings: str) -> Project:
        day = "" if days is None else f"recorded: '{date.today() - timedelta(days=days)}'\n"
        meta.write_text(without_day + day)
        recorded.write("pyproject.toml", f"[tool.harness]\n{settings}\n")
        return recorded

    return project


def line(project: Project) -> dict[str, Any]:
    text = Path(project.folder, "reports/latest/results.jsonl").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize(
    ("days", "settings"), [(9, "max_age_days = 9"), (900, ""), (None, ""), (900, 'stale_cassettes = "fail"')]
)
def test_a_recording_within_the_limit_or_without_one_is_not_warned_of(
    aged: Aged, days: int | None, settings: str
) -> None:
    project = aged(days, settings)
    assert project.harness("run", ".").code == 0
    assert line(project)["warnings"] == []


@pytest.mark.parametrize(
    ("days", "said"), [(10, "was recorded on 20"), (None, "does not say when it was recorded")]
)
def test_an_older_one_is_warned_of_with_the_command_that_records_it_again(
    aged: Aged, days: int | None, said: str
) -> None:
    project = aged(days, "max_age_days = 9")
    done = project.harness("run", ".")
    assert done.code == 0  # though the scenario refuses warnings: the calendar decides no verdict
    (warning,) = line(project)["warnings"]
    assert warning.startswith(f"cassette 'one' {said}")
    assert warning.endswith(
        ", and 9 days (max_age_days) is the limit; record it again: harness record --rewrite p.scenario.yaml::one"
    )
    assert warning in done.out


def test_it_cannot_be_judged_where_that_is_asked_for(aged: Aged) -> None:
    project = aged(10, 'max_age_days = 9\nstale_cassettes = "fail"')
    done = project.harness("run", ".")
    assert done.code == 3
    assert line(project)["verdict"] == "error"
    assert line(project)["error"]["code"] == "cassette-too-old"
    assert "record it again: harness record --rewrite p.scenario.yaml::one" in done.out


def test_a_variable_asks_for_it_too(aged: Aged) -> None:
    project = aged(10, "max_age_days = 9")
    assert project.harness("run", ".", HARNESS_STALE_CASSETTES="fail").code == 3
    assert project.harness("run", ".", HARNESS_MAX_AGE_DAYS="10").code == 0


@pytest.mark.parametrize(("days", "remark"), [(10, "too old"), (None, "its age is not known"), (9, "ok")])
def test_harness_cassettes_shows_too_old_recordings(aged: Aged, days: int | None, remark: str) -> None:
    project = aged(days, 'max_age_days = 9\nstale_cassettes = "fail"')
    done = project.harness("cassettes")
    assert done.code == (0 if remark == "ok" else 1)
    assert re.search(rf"^one .* {remark}$", done.out, re.MULTILINE), done.out
    (listed,) = json.loads(project.harness("cassettes", "--json").out)
    assert listed["too_old"] is (remark != "ok")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("max_age_days = 0", "expected a number of days above 0"),
        ('max_age_days = "soon"', "expected a number of days above 0"),
        ('stale_cassettes = "failed"', 'expected "warn" or "fail"'),
    ],
)
def test_invalid_limits_are_refused(aged: Aged, settings: str, told: str) -> None:
    done = aged(1, settings).harness("run", ".")
    assert done.code == 2
    assert told in done.err


def test_a_recording_that_is_made_anew_is_young(aged: Aged) -> None:
    project = aged(10, 'max_age_days = 9\nstale_cassettes = "fail"')
    assert project.record(".", "--rewrite").code == 0
    assert project.harness("run", ".").code == 0
