"""A scenario file with a mistake counts with all its scenarios."""

from pathlib import Path

import pytest

from harness.errors import FormatError
from harness.report.results import line
from harness.report.scenario_runs import read_run, unread_outcomes
from harness.report.summary import summarise
from harness.scenario.load import load_file
from tests.gate.runs import RunSpec, write_run


@pytest.mark.parametrize(
    ("scenarios", "names"),
    [
        ("[{name: a, expct: {}}, {name: b}, {name: c}]", ["a", "b", "c"]),
        ("[{name: a, expct: {}}, {name: a}, {nme: c}]", ["a", "(file)"]),
        (
            "[{name: a, expct: {}, cases: [{name: x, n: 1}, {name: y, n: 2}]}, {name: b}]",
            ["a[x]", "a[y]", "b"],
        ),
        ("[{name: a, cases: lost.csv}, {name: b}]", ["a", "b"]),
        ("[{name: a, expct: {}}, none, 7]", ["a"]),
        ("[{name: a", ["(file)"]),
        ("5", ["(file)"]),
    ],
)
def test_each_scenario_that_the_file_names_is_an_error(
    tmp_path: Path, scenarios: str, names: list[str]
) -> None:
    file = tmp_path / "a.scenario.yaml"
    file.write_text(f"harness: 1\nmanifest: m.yaml\nscenarios: {scenarios}\n")
    with pytest.raises(FormatError) as caught:
        load_file(file)
    outcomes = list(unread_outcomes(file, caught.value))
    assert [outcome.scenario for outcome in outcomes] == names
    total = summarise(map(line, outcomes))["total"]
    assert (total["errors"], total["scenarios"], total["pass_rate"]) == (len(names), len(names), 0.0)
    asked = list(unread_outcomes(file, caught.value, {"b"}))
    assert [outcome.scenario for outcome in asked] == ["b"]


def test_a_run_names_the_files_that_it_could_not_read_once(tmp_path: Path) -> None:
    unread = {name: RunSpec("error", suite="b.scenario.yaml", manifest="") for name in ("x", "y", "(file)")}
    assert read_run(write_run(tmp_path, {"z": RunSpec(), **unread})).unread == ["b.scenario.yaml"]
