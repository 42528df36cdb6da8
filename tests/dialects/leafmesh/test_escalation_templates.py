"""The fields in templates of escalation targets. spec: "EscalationTarget"; NOTES 13.3."""

from __future__ import annotations

import pytest

from harness.dialects.leafmesh.failures import TEMPLATE_FIELDS
from tests.dialects.leafmesh.project import Project

MESH = """\
entry_points: [{name: go, target: desk}]
agents: {desk: {agent_type: programmatic}}
manager:
  escalation:
    auto_escalate: {max_retries: 0}
    targets: [{type: webhook, url: "http://alarm", payload_template: {said: "FIELD"}}]
"""


@pytest.mark.parametrize("field", TEMPLATE_FIELDS)
def test_every_field_that_may_be_named_is_filled(project: Project, field: str) -> None:
    project.write({"configs/config.yaml": MESH.replace("FIELD", f"{{{{{field}}}}}")})
    outcome = project.run("scripts: {desk: {error: exception}}\nhttp: [{url: http://alarm}]\n")
    (call,) = [call for call in outcome.observed.calls if call["kind"] == "http"]
    assert "{{" not in call["args"]["json"]["said"]
    assert not [warning for warning in outcome.observed.warnings if "nothing fills" in warning]
