"""Environment variables that look like misspelt settings: one warning, at the end."""

import pytest

from tests.cli.fixtures import Invoke, WriteSuite

PASSES = "{name: counts, input: go, expect: {state: {count: 1}}}"
REPROT = "warning: the variable HARNESS_REPROT is not read: did you mean HARNESS_REPORT?\n"
HARNESS_CI = """
    ACCOUNT_ID API_KEY BASE_URL BUILD_ID CI_INDIRECT_LOG_UPLOAD_FF DELEGATE_ID ENDPOINT EXECUTION_ID INFRA_ID
    LOG_PREFIX LOG_SERVICE_ENDPOINT LOG_SERVICE_TOKEN MCP_MODE NODE_INDEX NODE_TOTAL ORG ORG_ID PIPELINE_ID
    PLATFORM_API_KEY PROJECT PROJECT_ID REPO SERVICE_ARGS SERVICE_ENTRYPOINT SERVICE_LOG_KEY STAGE_ID
    STAGE_INDEX STAGE_NAME STAGE_TOTAL STEP_ID STEP_INDEX STEP_TOTAL STO_SERVICE_ENDPOINT TI_SERVICE_ENDPOINT
    TI_SERVICE_TOKEN URL USER_ID WORKSPACE
"""
"""Names, without the prefix, that this build server sets, or that its other programs read."""


@pytest.mark.parametrize("options", [(), ("-q",), ("-j", "2")])
def test_a_run_ends_with_a_suggested_setting(
    options: tuple[str, ...], suite: WriteSuite, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(PASSES)
    monkeypatch.setenv("HARNESS_REPROT", "elsewhere")
    done = invoke("run", ".", *options)
    assert (done.exit_code, done.stderr) == (0, REPROT)


def test_a_command_that_fails_warns_too(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_REPROT", "elsewhere")
    assert invoke("gate").stderr.endswith(f"or where --report says\n{REPROT}")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("HARNESS_REPORTS", "HARNESS_REPORT"),
        ("HARNESS_REAL_TIMOUT", "HARNESS_REAL_TIMEOUT"),
        ("HARNESS_PYTHON_PATH", "HARNESS_PYTHONPATH"),
        ("HARNESS_DEBUGG", "HARNESS_DEBUG"),
        ("harness_traces", "HARNESS_TRACES"),
    ],
)
def test_a_near_miss_names_the_setting(
    name: str, meant: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "secret-value")
    assert invoke("judges").stderr == f"warning: the variable {name} is not read: did you mean {meant}?\n"


def test_variables_of_other_programs_and_empty_ones_are_ignored(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in HARNESS_CI.split():
        monkeypatch.setenv(f"HARNESS_{name}", "x")
    monkeypatch.setenv("HARNESS_REPROT", "")
    monkeypatch.setenv("HARNESS_TRACES", "none")
    assert invoke("judges").stderr == ""
