"""The test scenarios that stand in a mesh. NOTES 15."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.dialects.leafmesh.mesh_file import scenarios
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError
from harness.scenario.load import build_scenarios, load_file
from harness.scenario.model import Scenario
from harness.scenario.run import run_scenario
from harness.scenario.score import suite_fitness
from harness.settings import RecordMode, Settings

MESH = """\
name: cider
entry_points: [{name: press, target: presser}]
agents: {presser: {agent_type: programmatic}}
evolution:
  test_scenarios:
"""


def read(folder: Path, *tests: str) -> tuple[Scenario, ...]:
    path = folder / "config.yaml"
    path.write_text(MESH + "".join(f"    - {{{test}}}\n" for test in tests), encoding="utf-8")
    return build_scenarios(scenarios(LoadRequest((path,))), path, "leafmesh")


def refusal(folder: Path, *tests: str) -> list[tuple[str, int, int]]:
    with pytest.raises(ManifestError) as refused:
        read(folder, *tests)
    return [
        (problem.message, span.line, span.column)
        for problem in refused.value.problems
        if (span := problem.span) is not None
    ]


def test_15_1_keys_of_a_test_scenario_are_used(tmp_path: Path) -> None:
    (one,) = read(
        tmp_path,
        "name: full, entry_point: press, input: {apples: 2}, weight: 1.5, timeout: 4, expected_outcome: {juice: 4}",
    )
    assert (one.name, one.agent, one.weight, one.timeout_s) == ("full", "press", 1.5, 4)
    assert one.turns[0].input == {"apples": 2}
    assert one.expect.values == {"output": {"juice": 4}}
    assert one.file == one.manifests[0] == tmp_path / "config.yaml"


def test_15_1_missing_keys_have_the_documented_defaults(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(MESH.replace("name: press", "name: test") + "    - {}\n    - {}\n")
    found = build_scenarios(
        scenarios(LoadRequest((tmp_path / "config.yaml",))), tmp_path / "config.yaml", "leafmesh"
    )
    assert [one.name for one in found] == ["scenario_1", "scenario_2"]
    one = found[0]
    assert (one.agent, one.turns[0].input, one.weight, one.timeout_s) == (
        "test",
        "Test scenario input",
        1,
        30,
    )
    assert one.expect.values == {"output": {}}


def test_15_3_gates_have_weight_0(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "entry_point: press")
    assert one.expect.weights == {"status": 0, "unused": 0}


def test_numbers_may_be_written_as_texts(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "entry_point: press, weight: '2', timeout: '3.5'")
    assert (one.weight, one.timeout_s) == (2, 3.5)


def test_15_2_a_scenario_of_weight_0_runs_and_does_not_count(tmp_path: Path) -> None:
    counted = "name: counted, entry_point: press, weight: 2"
    read(tmp_path, counted, "name: kept, entry_point: press, weight: 0, expected_outcome: {juice: 4}")
    (tmp_path / "presser_agent.py").write_text("def presser(first, input_data, context):\n    return {}\n")
    mesh = tmp_path / "config.yaml"
    mesh.write_text(mesh.read_text() + "auto_discover: {directory: .}\n")
    outcomes = [outcome for one in load_file(mesh).scenarios for outcome in run_scenario(one)]
    assert [(outcome.weight, outcome.score) for outcome in outcomes] == [(2, 1), (0, 0)]
    assert suite_fitness((outcome.weight, outcome.score) for outcome in outcomes) == 1


def test_a_date_is_expected_as_the_text_it_is_in_an_output(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "entry_point: press, expected_outcome: {days: [2024-01-31]}")
    assert one.expect.values == {"output": {"days": ["2024-01-31"]}}


@pytest.mark.parametrize("entry", ["press", "presser"])
def test_an_entry_point_or_an_agent_is_entered(tmp_path: Path, entry: str) -> None:
    assert read(tmp_path, f"entry_point: {entry}")[0].agent == entry


@pytest.mark.parametrize(
    ("test", "fault"),
    [
        (
            "entry_point: pres",
            ("a test scenario enters 'pres', which is neither an entry point nor an agent", 6, 21),
        ),
        ("name: none", ("a test scenario enters 'test', which is neither an entry point nor an agent", 6, 7)),
        (
            "entry_point: press, weight: -1",
            ("weight: must be greater than or equal to 0, found the number -1", 6, 36),
        ),
        (
            "entry_point: press, weight: 1.0e+16",
            ("weight: must be less than or equal to 1000000000000000, found the number 1e+16", 6, 36),
        ),
        ("entry_point: press, timeout: 0", ("timeout: must be greater than 0, found the number 0", 6, 37)),
        ("entry_point: press, input: [1]", ("input: expected text or a mapping, found a list", 6, 35)),
        ("entry_point: press, expected_outcome: {a: {$foo: 1}}", ("unknown matcher '$foo'", 6, 51)),
        ("entry_point: press, expected: {}", ("unknown key 'expected' in a test scenario", 6, 28)),
    ],
)
def test_an_error_is_reported_at_its_location(tmp_path: Path, test: str, fault: Any) -> None:
    assert refusal(tmp_path, test) == [fault]


def test_duplicate_scenario_names_are_refused(tmp_path: Path) -> None:
    two = "name: scenario_2, entry_point: press"
    assert refusal(tmp_path, two, "entry_point: press") == [
        ("a second scenario 'scenario_2' (first in line 6)", 7, 7)
    ]


# ------------------------------------------------------------------ runs

ASKING = """\
entry_points: [{name: press, target: presser}]
agents:
  presser:
    agent_type: external
    framework: custom
    communication_type: COMMUNICATION
    can_call: [{agent: taster}]
  taster: {agent_type: human, human_interface: default}
evolution:
  test_scenarios:
    - {name: pressed, entry_point: press, expected_outcome: {juice: 4, grade: A}}
"""


@pytest.mark.parametrize(
    ("communication", "score"),
    [
        pytest.param("dual", 0.5, id="dual answers at once"),
        pytest.param("chain", 0, id="chain waits for the person"),
    ],
)
def test_4_3_what_was_answered_before_a_person_is_asked_is_scored(
    tmp_path: Path, communication: str, score: float
) -> None:
    (tmp_path / "config.yaml").write_text(ASKING.replace("COMMUNICATION", communication), encoding="utf-8")
    (tmp_path / "a.scenario.yaml").write_text(
        "harness: 1\nmanifest: config.yaml\nscenarios:\n"
        "  - {name: a, test_scenario: pressed, agents: {presser: {return: {juice: 4, grade: B}}}}\n",
        encoding="utf-8",
    )
    [scenario] = load_file(tmp_path / "a.scenario.yaml").scenarios
    [outcome] = run_scenario(scenario)
    assert (outcome.observed.status, outcome.score) == ("interrupted", score)


def test_10_6_without_a_terminal_a_run_that_is_recorded_pauses_at_a_person(tmp_path: Path) -> None:
    mesh = tmp_path / "config.yaml"
    people = "{agent_type: human, can_call: [{agent: taster}]}, taster: {agent_type: human}"
    text = MESH.replace("{agent_type: programmatic}", people)
    mesh.write_text(text + "    - {entry_point: press}\n", encoding="utf-8")
    [scenario] = load_file(mesh).scenarios
    recorded = Settings(record_mode=RecordMode.REWRITE, cassettes=tmp_path / "cassettes")
    [outcome] = run_scenario(scenario, recorded)
    assert (outcome.observed.status, outcome.observed.path) == ("interrupted", ["presser", "taster"])


def test_a_run_without_a_recording_has_no_warning_about_it(tmp_path: Path) -> None:
    mesh = tmp_path / "config.yaml"
    test = "    - {entry_point: press, expected_outcome: {human_initiated: true}}\n"
    mesh.write_text(MESH.replace("programmatic", "human") + test, encoding="utf-8")
    [scenario] = load_file(mesh).scenarios
    [outcome] = run_scenario(scenario)
    assert (outcome.observed.status, outcome.observed.warnings) == ("completed", [])


def test_cassettes_of_test_scenarios_are_not_orphans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("[tool.harness]\n")
    read(tmp_path, "name: full, entry_point: press")
    Path("other.scenario.yaml").write_text(
        "harness: 1\nmanifest: config.yaml\nscenarios: [{name: other, skip: later}]\n"
    )
    recording = Path("cassettes/config/full/http.yaml")
    recording.parent.mkdir(parents=True)
    recording.write_text("version: 1\ninteractions: []\n")
    pruned = CliRunner().invoke(cli, ["cassettes", "--prune"])
    assert "orphaned" not in pruned.output
    assert recording.exists()
    Path("config.yaml").write_text("agents: {a: {agent_type: llm, wait_for: [b]}}\n")
    refused = CliRunner().invoke(cli, ["cassettes", "--prune"])
    assert "nothing is removed while there are files that cannot be read: config.yaml" in refused.output
    assert recording.exists()
