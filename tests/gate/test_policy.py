from pathlib import Path

import pytest

from harness.errors import FormatError
from harness.gate.policy import read_policy
from harness.settings import load_settings


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("{min_pas_rate: 1}", "1:8", "did you mean 'min_pass_rate'?"),
        ("{min_pass_rate: 95}", "1:23", "95 % is 0.95"),
        ("{min_fitness: 95%}", "1:21", "95 % is 0.95"),
        ("{max_fitness_drop: 5}", "1:26", "5 % is 0.05"),
        ("{min_fitness: .nan}", "1:21", "found the number nan"),
        ("{max_cost: .inf}", "1:18", "expected a finite number"),
        ("{max_cost: -1}", "1:18", "must be greater than or equal to 0"),
        ("{max_errors: 1.5}", "1:20", "expected a whole number"),
        ("{max_flaky: true}", "1:19", "found true"),
        ("{min_pass_rate: null}", "1:23", "expected a number"),
        ("{no_new_failures: 1}", "1:25", "expected true or false"),
        ("{confidence: 95}", "1:20", "expected a confidence from 0.5 to below 1"),
        ("{min_coverage: {node: 1}}", "1:23", "did you mean 'nodes'?"),
        ("{min_coverage: {}}", "1:22", "bounds nothing"),
        ("{by: [{min_fitness: 1}]}", "1:13", "expected one of tag, suite and manifest, found none"),
        ("{by: [{tag: a, suite: b, min_fitness: 1}]}", "1:13", "found tag and suite"),
        ("{by: [{tag: a}]}", "1:13", "no rule for tag 'a'"),
        ("{by: [{tag: a, by: []}]}", "1:22", "unknown key 'by'"),
        ("null", "1:7", "expected a mapping"),
    ],
)
def test_what_is_wrong_in_a_policy_is_told_at_its_place(
    tmp_path: Path, text: str, place: str, message: str
) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(f"gate: {text}\n", encoding="utf-8")

    with pytest.raises(FormatError) as refused:
        read_policy(file, tmp_path)

    assert message in str(refused.value)
    assert str(refused.value.problems[0].span) == f"{file}:{place}"


def test_the_policy_of_a_project_is_in_its_pyproject(tmp_path: Path) -> None:
    rules = '[tool.harness.gate]\nbaseline = "base.json"\nmin_fitness = 0.9\n'
    part = '[[tool.harness.gate.by]]\ntag = "billing"\nmin_pass_rate = 1\n'
    (tmp_path / "pyproject.toml").write_text(rules + part, encoding="utf-8")

    policy = read_policy(None, tmp_path)

    assert policy.rules.rules == {"min_fitness": 0.9}
    assert [part.scope for part in policy.by] == [("tag", "billing")]
    assert policy.baseline == tmp_path / "base.json"
    assert load_settings(tmp_path).project == tmp_path  # it is no setting


def test_what_is_wrong_in_pyproject_is_told_at_its_line(tmp_path: Path) -> None:
    rules = '[project]\nname = "x"\n\n[tool.harness.gate]\nmin_fitness = 0.9\nmax_flakey = 1\n'
    (tmp_path / "pyproject.toml").write_text(rules, encoding="utf-8")

    with pytest.raises(FormatError, match="did you mean 'max_flaky'") as refused:
        read_policy(None, tmp_path)

    assert str(refused.value.problems[0].span) == f"{tmp_path / 'pyproject.toml'}:6:1"


@pytest.mark.parametrize("pyproject", [None, "[project]\n", "[tool.harness]\ntraces = 'none'\n"])
def test_a_project_without_rules_has_the_default_ones(tmp_path: Path, pyproject: str | None) -> None:
    if pyproject is not None:
        (tmp_path / "pyproject.toml").write_text(pyproject, encoding="utf-8")

    assert read_policy(None, tmp_path).is_default


def test_a_policy_that_names_only_a_baseline_has_the_default_rules(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text("gate: {baseline: base.json}", encoding="utf-8")

    policy = read_policy(tmp_path / "gate.yaml", tmp_path)

    assert policy.is_default
    assert policy.baseline == tmp_path / "base.json"
