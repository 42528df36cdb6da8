"""The data sent to external systems. spec: "External Agent Fields"; NOTES 9.2."""

from __future__ import annotations

import pytest

from tests.dialects.leafmesh.project import MESH, Project

FALLBACK = "human, fallback_response: {day: 2024-01-02}, can_call: [{agent: post}]"
SENT = "{day: '2024-01-02'}"


@pytest.mark.parametrize(
    ("config", "stub"),
    [
        (
            "framework: a2a, connector_config: {url: 'http://p/q'}",
            f"http: [{{url: 'http://p/q', args: {{json: {{data: {SENT}}}}}}}]",
        ),
        (
            "framework: mcp, connector_config: {tool_name: t, command: c}",
            f"mcp: {{post: {{tools: [{{name: t, stubs: [{{args: {SENT}, return: {{}}}}]}}]}}}}",
        ),
        ("framework: custom", f"agents: {{post: [{{args: {{input: {SENT}}}, return: {{}}}}]}}"),
    ],
)
def test_a_date_of_the_mesh_file_is_sent_as_text(project: Project, config: str, stub: str) -> None:
    mesh = MESH.replace("programmatic}", "programmatic, can_call: [{agent: boss}]}")
    agents = f"  boss: {{agent_type: {FALLBACK}}}\n  post: {{agent_type: external, {config}}}\n"
    project.write({"configs/config.yaml": mesh + agents, "agency/other_agent.py": ""})
    outcome = project.run(
        f"timeout: 900\nscripts: {{desk: {{return: {{}}}}}}\nhuman: {{boss: [{{error: timeout}}]}}\n{stub}"
    )
    assert outcome.observed.error is None, outcome.observed.error
    assert outcome.observed.path == ["desk", "boss", "post"]
