"""The reports of scenarios on their way from a worker of xdist: they arrive as they were sent."""

from __future__ import annotations

from typing import Any

import execnet
import pytest

from harness.plugin.item import RECORDS


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


def sent(config: pytest.Config, made: pytest.TestReport) -> tuple[dict[str, Any], pytest.TestReport]:
    """What goes through the pipe, and what comes out of it."""
    data = config.hook.pytest_report_to_serializable(config=config, report=made)
    through = execnet.loads(execnet.dumps(data | {"item_index": 7}))
    seen = dict(through)
    return seen, config.hook.pytest_report_from_serializable(config=config, data=through)


def test_that_of_a_scenario_is_one_piece_and_arrives_whole(pytestconfig: pytest.Config) -> None:
    made = report(**{RECORDS: [('{"format":"…"}', b"\x1f\x8b")]})
    through, arrived = sent(pytestconfig, made)
    assert through.keys() == {"harness_packed", "item_index"}
    assert vars(arrived) == vars(made) | {"item_index": 7, "$report_type": "TestReport"}


class Text(str):
    """A text of another plugin's own type."""


@pytest.mark.parametrize("more", [{}, {RECORDS: [], "theirs": Text("as it is")}], ids=["a test", "not plain"])
def test_all_others_go_as_pytest_has_them(pytestconfig: pytest.Config, more: dict[str, Any]) -> None:
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report(**more))
    assert data["nodeid"] == "a.scenario.yaml::häää"
