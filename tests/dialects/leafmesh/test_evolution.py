"""The test scenarios that stand in a mesh. NOTES 15."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.dialects.leafmesh.evolution import scenarios
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError
from harness.scenario.in_manifest import built
from harness.scenario.model import Scenario

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
    return built(scenarios(LoadRequest((path,))), path, "leafmesh")


def refusal(folder: Path, *tests: str) -> list[tuple[str, int, int]]:
    with pytest.raises(ManifestError) as refused:
        read(folder, *tests)
    return [
        (problem.message, span.line, span.column)
        for problem in refused.value.problems
        if (span := problem.span) is not None
    ]


def test_15_1_what_is_said_is_taken(tmp_path: Path) -> None:
    (one,) = read(
        tmp_path,
        "name: full, entry_point: press, input: {apples: 2}, weight: 1.5, timeout: 4, expected_outcome: {juice: 4}",
    )
    assert (one.name, one.agent, one.weight, one.timeout_s) == ("full", "press", 1.5, 4)
    assert one.turns[0].input == {"apples": 2}
    assert one.expect.values == {"output": {"juice": 4}}
    assert one.file == one.manifests[0] == tmp_path / "config.yaml"


def test_15_1_what_is_left_out_has_the_documented_defaults(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(MESH.replace("name: press", "name: test") + "    - {}\n    - {}\n")
    found = built(scenarios(LoadRequest((tmp_path / "config.yaml",))), tmp_path / "config.yaml", "leafmesh")
    assert [one.name for one in found] == ["scenario_1", "scenario_2"]
    one = found[0]
    assert (one.agent, one.turns[0].input, one.weight, one.timeout_s) == (
        "test",
        "Test scenario input",
        1,
        30,
    )
    assert one.expect.values == {"output": {}}


def test_15_3_the_gates_weigh_nothing(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "entry_point: press")
    assert one.expect.weights == {"status": 0, "unused": 0}


def test_numbers_may_be_written_as_texts(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "entry_point: press, weight: '2', timeout: '3.5'")
    assert (one.weight, one.timeout_s) == (2, 3.5)


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
        ("entry_point: press, weight: 0", ("weight: must be greater than 0, found the number 0.0", 6, 36)),
        ("entry_point: press, timeout: 0", ("timeout: must be greater than 0, found the number 0", 6, 37)),
        ("entry_point: press, input: [1]", ("input: expected text or a mapping, found a list", 6, 35)),
        ("entry_point: press, expected_outcome: {a: {$foo: 1}}", ("unknown matcher '$foo'", 6, 51)),
        ("entry_point: press, expected: {}", ("unknown key 'expected' in a test scenario", 6, 28)),
    ],
)
def test_a_fault_is_told_where_it_is(tmp_path: Path, test: str, fault: Any) -> None:
    assert refusal(tmp_path, test) == [fault]


def test_a_name_is_given_once(tmp_path: Path) -> None:
    two = "name: scenario_2, entry_point: press"
    assert refusal(tmp_path, two, "entry_point: press") == [
        ("a second scenario 'scenario_2' (first in line 6)", 7, 7)
    ]
