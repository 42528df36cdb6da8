"""Transfer of test reports from xdist workers: reports of scenarios arrive unchanged."""

from __future__ import annotations

from copy import copy
from typing import Any

import execnet
import pytest

import tests.preloaded  # noqa: F401
from harness.plugin.item import RECORDS, FailureText, restore
from tests.test_plugin import MANIFEST, scenario


def report(**more: Any) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid="a.scenario.yaml::häää",
        location=("a.scenario.yaml", 3, "häää"),
        keywords={"häää": 1},
        outcome="passed",
        longrepr=None,
        when="call",
        sections=[("Captured stdout call", "said\n")],
        user_properties=[("score", "1")],
        **more,
    )


def transfer(config: pytest.Config, made: pytest.TestReport) -> tuple[dict[str, Any], pytest.TestReport]:
    """Send a report through execnet; return the serialized data and the report that arrives."""
    data = config.hook.pytest_report_to_serializable(config=config, report=made)
    through = execnet.loads(execnet.dumps(data | {"item_index": 7}))
    data = dict(through)
    return data, config.hook.pytest_report_from_serializable(config=config, data=through)


def test_the_report_of_a_scenario_is_sent_packed_and_arrives_complete(pytestconfig: pytest.Config) -> None:
    made = report(**{RECORDS: [('{"format":"…"}', b"\x1f\x8b")]})
    through, arrived = transfer(pytestconfig, made)
    assert through.keys() == {"harness_packed", "item_index"}
    assert vars(arrived) == vars(made) | {"item_index": 7, "$report_type": "TestReport"}


class Text(str):
    """A subclass of `str`, as another plugin may add it to a report."""


@pytest.mark.parametrize("more", [{}, {RECORDS: [], "theirs": Text("as it is")}], ids=["a test", "not plain"])
def test_other_reports_are_serialized_by_pytest(pytestconfig: pytest.Config, more: dict[str, Any]) -> None:
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report(**more))
    assert data["nodeid"] == "a.scenario.yaml::häää"


class FailureReports:
    """A pytest plugin that keeps the reports of failures as a worker would send them."""

    def __init__(self) -> None:
        self.reports: dict[str, pytest.TestReport] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.reports[report.nodeid.partition("::")[2]] = copy(report)


def test_the_text_of_a_failure_arrives_unchanged_without_secrets(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-live-Qm4tVZ81xYw0"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    pytester.makefile(".yaml", desk=MANIFEST)
    scenarios = scenario("plain", expect="{output: other}") + scenario(secret, expect="{output: other}")
    text = f"harness: 1\nmanifest: desk.yaml\nscenarios:\n{scenarios}"
    (pytester.path / "desk.scenario.yaml").write_text(text, encoding="utf-8")
    failures = FailureReports()
    pytester.inline_run("-p", "no:cacheprovider", plugins=[failures])
    shown = {}
    for name, report in failures.reports.items():
        _, arrived = transfer(pytester.parseconfig(), report)
        restore(arrived)
        shown[name] = arrived.longrepr
        assert str(arrived.longrepr) == str(report.longrepr)
    assert isinstance(shown["plain"], FailureText)
    assert "desk.scenario.yaml::<secret:OPENAI_API_KEY>" in str(shown[secret])
    assert secret not in str(shown[secret])
