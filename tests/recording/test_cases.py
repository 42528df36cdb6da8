"""A scenario with `cases` and a cassette: each row has a recording of its own. Source: docs/recording.md."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli
from tests.recording.project import Project

SUITE = """\
harness: 1
manifest: weather.yaml
defaults: {tools: {forecast: real}, timeout: 600}
scenarios:
  - name: city
    cassette: cities
    cases: [{name: oslo, says: rain}, {name: New York, says: sun}]
    input: ${case.name}?
    expect: {output: "${case.says}"}
"""
SERVED = """
llm:
  - {when: request.prompt == "oslo?", reply: rain, times: any}
  - {when: request.prompt == "New York?", reply: sun, times: any}
  - {reply: fog, times: any}
"""
OSLO, NEW_YORK = "cities/cases/oslo", "cities/cases/new-york-815eca"
FILE = "city.scenario.yaml"


def command(*args: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, args, prog_name="harness", env=environment)


def cassettes(project: Project) -> list[str]:
    return sorted({name.rpartition("/")[0] for name in project.recorded_files()})


def recorded(project: Project, *args: str) -> tuple[Result, int]:
    """Run a command while models are served; return its result and the number of calls."""
    with project.serving(SERVED) as server:
        result = command(*args, environment=project.environment)
        return result, len(server.requests)


@pytest.fixture
def suite(project: Project) -> Project:
    project.write(FILE, SUITE)
    return project


def test_each_row_is_recorded_and_replayed_by_itself(suite: Project) -> None:
    result, calls = recorded(suite, "record", FILE)
    assert (result.exit_code, calls) == (0, 2), result.output
    assert cassettes(suite) == [NEW_YORK, OSLO]
    assert command("run", FILE).exit_code == 0
    assert command("cassettes").exit_code == 0


@pytest.mark.parametrize(("mode", "calls"), [("once", 1), ("new_episodes", 1), ("all", 2), ("rewrite", 2)])
def test_a_mode_decides_for_each_row(suite: Project, mode: str, calls: int) -> None:
    recorded(suite, "record", f"{FILE}::city[oslo]")
    assert cassettes(suite) == [OSLO]
    result, made = recorded(suite, "record", FILE, "--record-mode", mode)
    assert (result.exit_code, made) == (0, calls)
    assert cassettes(suite) == [NEW_YORK, OSLO]


def test_what_failed_for_want_of_a_key_is_recorded_again_alone(suite: Project) -> None:
    without_key = 'llm:\n  - {when: request.prompt == "oslo?", error: auth}\n' + SERVED.removeprefix(
        "\nllm:\n"
    )
    with suite.serving(without_key) as server:
        environment = suite.environment
        assert command("record", FILE, environment=environment).exit_code == 1
        calls = len(server.requests)
        result = command("record", FILE, "--rewrite", "--last-failed", environment=environment)
        assert (result.exit_code, len(server.requests)) == (0, calls + 1), result.output
        result = command("record", FILE, "--rewrite", "--last-failed", environment=environment)
        assert (result.exit_code, len(server.requests)) == (0, calls + 1)
    assert "nothing to record: 0 of 2 scenarios selected (none of 2 scenarios failed" in result.output
    assert command("run", FILE).exit_code == 0


def test_a_row_that_is_not_recorded_names_the_command_that_records_it(suite: Project) -> None:
    recorded(suite, "record", f"{FILE}::city[oslo]")
    result = command("run", FILE)
    assert result.exit_code == 3
    assert f"harness record '{FILE}::city[New York]'" in result.output
    assert "1 passed · 1 error" in result.output


def test_a_renamed_row_replays_its_recording_from_the_folder_of_its_new_name(suite: Project) -> None:
    recorded(suite, "record", FILE)
    suite.write(FILE, SUITE.replace("name: oslo, says: rain", "name: bergen, asks: oslo, says: rain"))
    suite.replace(FILE, "{name: New York,", "{name: New York, asks: New York,")
    suite.replace(FILE, "input: ${case.name}?", "input: ${case.asks}?")
    listed = {each["name"]: each for each in json.loads(command("cassettes", "--json").output)}
    assert listed["cities/cases/bergen"]["problem"] == "not recorded"
    assert listed[OSLO]["orphaned"]
    shutil.move(suite.cassettes / OSLO, suite.cassettes / "cities/cases/bergen")
    assert command("cassettes").exit_code == 0
    assert command("run", FILE).exit_code == 0


def test_rows_whose_names_are_alike_or_reserved_have_folders_of_their_own(suite: Project) -> None:
    names = ("Nul", "nul", "NUL", "variants", "recording-2", "…")
    rows = ", ".join(f"{{name: {name}, says: fog}}" for name in names)
    suite.write(FILE, SUITE.replace("{name: oslo, says: rain}, {name: New York, says: sun}", rows))
    result, calls = recorded(suite, "record", FILE)
    assert (result.exit_code, calls, len(cassettes(suite))) == (0, 6, 6), result.output
    assert len({name.lower() for name in cassettes(suite)}) == 6
    assert command("run", FILE).exit_code == 0


def test_a_cassette_named_by_the_row_is_used_as_it_is(suite: Project) -> None:
    suite.replace(FILE, "cassette: cities", 'cassette: "cities/of-${case.says}"')
    assert recorded(suite, "record", FILE)[0].exit_code == 0
    assert cassettes(suite) == ["cities/of-rain", "cities/of-sun"]
    assert command("run", FILE).exit_code == 0


def test_a_variant_of_a_row_is_recorded_below_the_row(suite: Project) -> None:
    suite.write("variants.yaml", "harness: 1\nvariants: [{name: curt, prompts: {manner: Be curt.}}]")
    score = ("score", FILE, "--variants", "variants.yaml", "--yes", "--record-mode", "once")
    result, calls = recorded(suite, *score)
    assert (result.exit_code, calls) == (0, 4), result.output
    assert cassettes(suite) == [name for row in (NEW_YORK, OSLO) for name in (row, f"{row}/variants/curt")]
    assert recorded(suite, *score)[1] == 0
    assert command("cassettes").exit_code == 0


# ------------------------------------------------------------ sharing


def tables(*cassettes: str, rows: Sequence[str] = ("a", "b")) -> str:
    table = ", ".join(f"{{name: {name}}}" for name in rows)
    return "harness: 1\nmanifest: weather.yaml\nscenarios:\n" + "".join(
        f"  - {{name: table {number}, cassette: {cassette}, cases: [{table}], input: '${{case.name}}'}}\n"
        for number, cassette in enumerate(cassettes, start=1)
    )


SHARED = "scenarios 'table 1[a]' and 'table 2[a]' cannot both record cassette 'one/cases/a'"


@pytest.mark.parametrize(
    ("args", "severity"),
    [
        (("record", "t.scenario.yaml"), "error"),
        (("validate", "t.scenario.yaml"), "warning"),
        (("validate", "."), "warning"),
    ],
)
def test_two_tables_that_share_a_cassette_are_told_once(
    project: Project, args: tuple[str, ...], severity: str
) -> None:
    """Both can be replayed."""
    project.write("t.scenario.yaml", tables("one", "one", "other"))
    result = command(*args)
    assert result.exit_code == (2 if severity == "error" else 0)
    assert result.output.count("[shared-cassette]") == 1
    assert f"t.scenario.yaml:5:12: {severity}: {SHARED}" in result.output
    assert (
        "write another `cassette: NAME` in one of them; the other is at t.scenario.yaml:4:12" in result.output
    )


def test_many_scenarios_that_share_a_cassette_are_one_problem(project: Project) -> None:
    names = ("one", "two", "three", "four")
    listed = "".join(f"  - {{name: {name}, cassette: x, input: Hi}}\n" for name in names)
    project.write("t.scenario.yaml", f"harness: 1\nmanifest: weather.yaml\nscenarios:\n{listed}")
    result = command("validate", "t.scenario.yaml")
    assert result.output.count("shared-cassette") == 1
    assert "scenarios 'one', 'two' and 2 more cannot all record cassette 'x'" in result.output


def test_rows_that_name_one_cassette_are_one_error_with_the_remedy(suite: Project) -> None:
    suite.replace(FILE, "cassette: cities", 'cassette: "c-${case.says}"')
    suite.replace(FILE, "says: sun", "says: rain")
    result = command("validate", FILE)
    assert result.output.count("shared-cassette") == 1
    assert "write `cassette: NAME` without `${case.…}`: each row is then recorded by itself" in result.output


@pytest.mark.parametrize("command_", ["score", "evolve"])
def test_a_shared_cassette_is_told_before_calls_are_estimated(project: Project, command_: str) -> None:
    project.write("t.scenario.yaml", tables("one", "one"))
    project.write("variants.yaml", "harness: 1\nvariants: [{name: curt, prompts: {manner: Be curt.}}]")
    given = {
        "score": ("t.scenario.yaml", "--variants", "variants.yaml"),
        "evolve": ("weather.yaml", "t.scenario.yaml"),
    }
    result = command(command_, *given[command_], "--record-mode", "once")
    assert result.exit_code == 2
    assert result.output.startswith(f"t.scenario.yaml:5:12: error: {SHARED}")
    assert "models" not in result.output
