"""Settings in pyproject.toml that do nothing, or more than they say, are told with their line."""

import pytest

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite

PASSES = "{name: counts, input: go, expect: {state: {count: 1}}}"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("[tool.harnes]\nrecord = true", "1:1: the settings in [tool.harnes] are not read"),
        ("[harness]\nrecord = true", "1:1: the settings in [harness] are not read"),
        (
            '[tool.harness]\npublic_env = ["*"]',
            "2:1: '*' in 'public_env' matches every variable, so none is secret",
        ),
        (
            '[tool.harness]\nstale_cassettes = "fail"',
            "2:1: 'stale_cassettes' does nothing without 'max_age_days'",
        ),
        ('[tool.harness]\npythonpath = ["scr"]', "2:1: scr in 'pythonpath' is not a folder"),
        ('[tool.harness]\nallow_paths = ["scr"]', "2:1: scr in 'allow_paths' is not a folder"),
        ('[tool.harness]\njudge_prompts = "prompst"', "2:1: prompst in 'judge_prompts' is not a folder"),
        (
            "[tool.harness]\nreal_timeout = 60000",
            "2:1: 'real_timeout' is in seconds, and 60000 looks like milliseconds",
        ),
        (
            '[tool.harness]\ncassette_ignore = ["body.messages"]',
            "2:1: 'body.messages' in 'cassette_ignore' hides what models are asked",
        ),
        (
            '[tool.harness]\ncassette_ignore = ["body.messages.*.content"]',
            "2:1: 'body.messages.*.content' in 'cassette_ignore' hides what models are asked",
        ),
    ],
)
def test_a_setting_without_effect_is_a_warning(
    written: str, told: str, suite: WriteSuite, write: WriteFile, invoke: Invoke
) -> None:
    suite(PASSES)
    write("pyproject.toml", f"{written}\n")
    assert f"warning: pyproject.toml:{told}" in " ".join(invoke("run", ".", "-q").stderr.split())
    place, _, text = told.partition(": ")
    shown = " ".join(invoke("validate", "a.scenario.yaml").output.split())
    assert f"pyproject.toml:{place}: warning: {text}" in shown
    assert "[idle-setting]" in shown


@pytest.mark.parametrize(
    "written",
    [
        "[tool.harvest]\nx = 1",
        '[tool.harness]\npublic_env = ["*_REGION"]',
        '[tool.harness]\nstale_cassettes = "fail"\nmax_age_days = 30',
        '[tool.harness]\npythonpath = ["."]\njudge_prompts = "."\nreal_timeout = 7200',
        '[tool.harness]\ncassette_ignore = ["host", "body.messages.0.content", "body.metadata"]',
    ],
)
def test_a_setting_with_an_effect_is_none(
    written: str, suite: WriteSuite, write: WriteFile, invoke: Invoke
) -> None:
    suite(PASSES)
    write("pyproject.toml", f"{written}\n")
    assert invoke("run", ".", "-q").stderr == ""
    assert "idle-setting" not in invoke("validate", ".").output


def test_a_secret_that_no_variable_has_is_a_note(
    suite: WriteSuite, write: WriteFile, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline the variable may be missing, so it is no warning."""
    suite(PASSES)
    monkeypatch.setenv("BERTH_CODE", "k4-Vq9-z7Tb")
    write("pyproject.toml", '[tool.harness]\nsecrets = ["BERTH_*", "BERTH_CODES"]\n')
    assert invoke("run", ".", "-q").stderr == ""
    done = invoke("validate", "a.scenario.yaml", "--strict")
    shown = " ".join(done.output.split())
    assert "note: 'BERTH_CODES' in 'secrets' matches no variable of this process" in shown
    assert "did you mean 'BERTH_CODE'?" in shown
    assert ("'BERTH_*'" in shown, done.exit_code) == (False, 0)


def test_a_price_of_a_misspelt_model_is_a_warning(
    suite: WriteSuite, write: WriteFile, invoke: Invoke
) -> None:
    suite("{name: asks, manifest: asking.yaml, env: {MODEL: quill-2}, llm: [ok], expect: {path: [ask]}}")
    for model, is_told in (("quil-2", True), ("quill-2", False), ("heron-9", False)):
        write("pyproject.toml", f"[tool.harness.prices]\n{model} = {{input = 1, output = 2}}\n")
        shown = " ".join(invoke("validate", "a.scenario.yaml").output.split())
        text = "2:1: warning: the price of 'quil-2' is of no model that was checked, and 'quill-2' has none"
        assert (text in shown, "idle-setting" in shown) == (is_told, is_told)
