"""Values of `${VAR}`: `--env`, `--harness-env` of pytest, and `env` in `[tool.harness]`.

Source: docs/leafmesh.md, "Test scenarios"; docs/scenario-format.md.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tests.preloaded  # noqa: F401
from harness.cli.main import cli
from tests.world.loopback import CannedReply, loopback

MESH = """\
entry_points: [{name: ask, target: "${DESK}"}]
agents:
  desk: {agent_type: programmatic}
  shelf: {agent_type: programmatic}
evolution:
  test_scenarios: [{name: t, entry_point: ask, expected_outcome: {who: shelf}}]
"""
AGENCY = """\
def desk(first, input_data, context):
    return {"who": "desk"}

def shelf(first, input_data, context):
    return {"who": "shelf"}
"""
MODELS = """\
mesh: {local: {endpoint: "${SERVER}", headers: {Authorization: "Bearer ${MODEL_KEY}"}}}
entry_points: [{name: ask, target: helper}]
agents: {helper: {model: llama3, prompt: Be brief. Be kind.}}
evolution:
  population_size: 1
  generations: 1
  test_scenarios: [{name: t, entry_point: ask, expected_outcome: {response: hi}}]
"""
KEY = "mk-7Rt0Lm2xP9q"
GENERATED = CannedReply(json={"response": "hi", "done": True})


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a mesh that cannot be loaded without a value for `${DESK}`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    write("pyproject.toml", "")
    write("config.yaml", MESH)
    write("agency/desk_agent.py", AGENCY)
    return tmp_path


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def harness(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def results() -> list[dict[str, Any]]:
    lines = Path("reports/latest/results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_without_a_value_the_mesh_is_refused_and_told_what_it_lacks() -> None:
    result = harness("run", "config.yaml")
    assert result.exit_code == 2
    assert "the environment variable DESK is not set" in result.output
    assert "or in [tool.harness]" in result.output


def test_the_command_line_gives_the_test_scenarios_of_a_mesh_variables() -> None:
    assert harness("run", "config.yaml", "--env", "DESK=shelf").exit_code == 0
    assert results()[0]["output"] == {"who": "shelf"}
    assert harness("run", "config.yaml", "--env", "DESK=desk").exit_code == 1


def test_the_project_gives_them_variables_which_the_command_line_overrides() -> None:
    write("pyproject.toml", '[tool.harness.env]\nDESK = "shelf"\nPORT = 80\nDEBUG = true\n')
    assert harness("run", "config.yaml").exit_code == 0
    assert harness("validate", "config.yaml").exit_code == 0
    assert harness("run", "config.yaml", "--env", "DESK=desk").exit_code == 1


SCENARIOS = """\
harness: 1
manifest: config.yaml
ENV
scenarios:
  - {name: own, test_scenario: t}
  - {name: plain, entry_point: ask, expect: {output: {who: shelf}}}
"""


@pytest.mark.parametrize(
    ("of_project", "of_file", "options", "code"),
    [
        ("shelf", "", [], 0),
        ("desk", "env: {DESK: shelf}", [], 0),
        ("shelf", "env: {DESK: desk}", [], 1),
        ("desk", "env: {DESK: desk}", ["--env", "DESK=shelf"], 0),
    ],
)
def test_a_scenario_overrides_the_project_and_the_command_line_overrides_both(
    of_project: str, of_file: str, options: list[str], code: int
) -> None:
    write("pyproject.toml", f'[tool.harness]\nenv = {{DESK = "{of_project}"}}\n')
    write("s.scenario.yaml", SCENARIOS.replace("ENV", of_file))
    assert harness("run", "s.scenario.yaml", *options).exit_code == code


def test_models_are_recorded_and_searched_with_the_variables_and_no_secret_is_kept() -> None:
    write("config.yaml", MODELS)
    with loopback(GENERATED) as server:
        given = ["--env", f"SERVER={server.url}/api/generate", "--env", f"MODEL_KEY={KEY}"]
        recorded = harness("record", "config.yaml", *given)
        assert recorded.exit_code == 0, recorded.output
        evolved = harness("evolve", "config.yaml", *given, "--record-mode", "once", "--yes", "--out", "out")
        assert evolved.exit_code == 0, evolved.output
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    replayed = harness("run", "config.yaml", *given)
    assert replayed.exit_code == 0, replayed.output
    kept = [path.read_bytes() for path in Path().rglob("*") if path.is_file()]
    plain = [gzip.decompress(each) if each[:2] == b"\x1f\x8b" else each for each in kept]
    assert not [each for each in plain if KEY.encode() in each]
    assert KEY not in recorded.output + evolved.output + replayed.output


@pytest.mark.parametrize(
    ("name", "settings", "shown"),
    [
        ("MODEL_KEY", "", "<secret:MODEL_KEY>"),
        ("MODEL_KEY", "public_env = ['MODEL_KEY']", KEY),
        ("MODEL", "", KEY),
        ("MODEL", "secrets = ['MODEL']", "<secret:MODEL>"),
    ],
)
@pytest.mark.parametrize("on_command_line", [True, False])
def test_a_value_is_secret_by_its_name_as_that_of_a_scenario_is(
    name: str, settings: str, shown: str, on_command_line: bool
) -> None:
    write("agency/desk_agent.py", AGENCY.replace('"who": "desk"', f'"who": "desk", "said": "{KEY}"'))
    given = {"DESK": "desk", name: KEY}
    table = (
        ""
        if on_command_line
        else f"env = {{{', '.join(f'{k} = {json.dumps(v)}' for k, v in given.items())}}}"
    )
    write("pyproject.toml", f"[tool.harness]\n{settings}\n{table}\n")
    options = [part for k, v in given.items() for part in ("--env", f"{k}={v}")] if on_command_line else []
    harness("run", "config.yaml", *options)
    assert results()[0]["output"] == {"who": "desk", "said": shown}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "config.yaml", "--env", "DESK"], "'DESK' is not NAME=value"),
        (["record", "config.yaml", "--env", "=shelf"], "'' is not NAME=value"),
    ],
)
def test_a_variable_without_a_name_or_a_value_is_refused(arguments: list[str], message: str) -> None:
    result = harness(*arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("written", ["env = 5", "env = {DESK = [1]}"])
def test_variables_of_a_project_are_a_table(written: str) -> None:
    write("pyproject.toml", f"[tool.harness]\n{written}\n")
    result = harness("run", "config.yaml")
    assert result.exit_code == 2
    assert "setting 'env' in [tool.harness] in pyproject.toml: expected a table of variables" in result.output


def test_pytest_has_an_option_for_variables(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", config=MESH)
    pytester.mkdir("agency").joinpath("desk_agent.py").write_text(AGENCY)
    quiet = ("-p", "no:cacheprovider")
    assert pytester.runpytest(*quiet, "config.yaml", "--harness-env", "DESK=shelf").ret == 0
    pytester.makefile(".toml", pyproject='[tool.harness.env]\nDESK = "shelf"\n')
    assert pytester.runpytest(*quiet, "config.yaml").ret == 0
