"""The integration helpers `zapier(…)`, `n8n(…)`, … as processors of `@pre_compose`. NOTES 8.2, 9."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.leafmesh.project import MESH, Project

LLM = "llm: {desk: ['{\"ok\": true}']}\n"


def with_helper(project: Project, helper: str, body: str = 'return context["prepared_data"]') -> Project:
    """Write a project whose agent `desk` asks a model after this processor."""
    project.write(
        {
            "configs/config.yaml": MESH.replace("agent_type: programmatic", "agent_type: llm"),
            "agency/desk_agent.py": f"""\
            from leafmesh import a2a, composio, crewai, mcp, n8n, pre_compose, zapier

            @pre_compose(context_processor={helper})
            async def desk(llm_response, input_data, context):
                {body}
            """,
        }
    )
    return project


ASKED = [
    (
        'zapier(connection="slack", action="find_user", api_key="${ZAPIER_NLA_API_KEY}")',
        "mcp: {desk: {tools: [{name: slack_find_user, stubs: [{args: {message: hi}, return: {id: 7}}]}]}}",
    ),
    (
        'mcp("http://tools.example/mcp", "search")',
        "mcp: {desk: {tools: [{name: search, stubs: [{args: {message: hi}, return: {id: 7}}]}]}}",
    ),
    (
        'n8n("http://n8n.example/webhook/abc", auth_token="t")',
        "http: [{url: 'http://n8n.example/webhook/abc', args: {json: {data: {message: hi}}}, json: {id: 7}}]",
    ),
    (
        'n8n("http://n8n.example/webhook/abc", mode="callback", callback_timeout=5)',
        "http: [{url: 'http://n8n.example/webhook/abc', "
        "args: {json: {_leafmesh_callback_url: {$contains: /desk}}}}]\n"
        "agents: {desk: [{return: {id: 7}}]}",
    ),
    ('crewai(endpoint="http://crew")', "http: [{url: 'http://crew', json: {id: 7}}]"),
    ('a2a("http://other")', "http: [{url: 'http://other', json: {id: 7}}]"),
    (
        'composio("GMAIL_SEND_EMAIL")',
        "agents: {desk: [{args: {$exact: {input: {message: hi}}}, return: {id: 7}}]}",
    ),
    ('zapier("slack_send_message")', "agents: {desk: [{return: {id: 7}}]}"),
]


@pytest.mark.parametrize(("helper", "stub"), ASKED)
def test_a_processor_is_answered_as_a_connector_agent_is(project: Project, helper: str, stub: str) -> None:
    outcome = with_helper(project, helper).run(
        f"{LLM}{stub}\nexpect: {{output: {{business_context: {{id: 7}}}}}}"
    )
    assert outcome.observed.error is None, outcome.observed.error
    assert outcome.passed
    assert not outcome.observed.warnings


def test_a_processor_without_a_stub_fails_the_run(project: Project) -> None:
    error = with_helper(project, 'zapier("send")').run(LLM).observed.error
    assert error is not None
    assert error["type"] == "UnscriptedCall"
    assert "mcp" in error["message"]


def test_a_processor_takes_the_time_of_its_stub_and_no_more_than_its_timeout(project: Project) -> None:
    with_helper(project, 'n8n("http://n", timeout=5)')
    outcome = project.run(f"{LLM}http: [{{url: 'http://n', json: {{}}, latency: 4}}]")
    assert outcome.observed.latency["nodes"] == {"desk": 4}
    error = project.run(f"{LLM}http: [{{url: 'http://n', json: {{}}, latency: 6}}]").observed.error
    assert error is not None
    assert error["type"] == "ConnectorTimeout"


def test_a_helper_can_be_called_by_a_processor_of_the_project(project: Project) -> None:
    body = 'return await n8n("http://n")({"id": input_data["message"]}, context)'
    with_helper(project, "None", body)
    world = (
        f"{LLM}http: [{{url: 'http://n', args: {{json: {{data: {{$exact: {{id: hi}}}}}}}}, json: {{a: 1}}}}]"
    )
    assert project.output(world) == {"a": 1}


def test_an_address_may_come_from_its_variable(project: Project) -> None:
    with_helper(project, "n8n()")
    http = "http: [{url: 'http://from.env', json: {id: 7}}]"
    error = project.run(f"{LLM}http: []").observed.error
    assert error is not None
    assert (error["type"], error["message"]) == (
        "ConnectorError",
        "agent 'desk': n8n(…) needs 'webhook_url'",
    )
    assert project.output(f"{LLM}{http}\nenv: {{N8N_WEBHOOK_URL: 'http://from.env'}}") == {
        "business_context": {"id": 7}
    }


@pytest.mark.parametrize(
    ("helper", "message"),
    [
        ("n8n('a', 'b')", "n8n(…) takes only webhook_url by position"),
        ("n8n('http://n', timeout='soon')", "n8n(…): timeout: Input should be a valid number"),
    ],
)
def test_arguments_that_a_helper_cannot_take_are_refused(project: Project, helper: str, message: str) -> None:
    (problem,) = with_helper(project, helper).problems()
    assert message in problem.message


def test_an_unknown_argument_is_a_warning(project: Project) -> None:
    outcome = with_helper(project, "n8n('http://n', timout=5)").run(
        f"{LLM}http: [{{json: {{}}}}]\nexpect: {{status: completed}}"
    )
    (warning,) = outcome.observed.warnings
    assert "unknown argument 'timout' of n8n(…): it has no effect (did you mean 'timeout'?)" in warning


@pytest.mark.parametrize(
    ("helper", "body", "verdict"),
    [
        ('zapier("send")', "return {}", "error"),
        ("None", 'return await zapier("send")(input_data, context)', "failed"),
    ],
    ids=["asked by pre_compose alone", "asked by the function"],
)
def test_the_tools_that_helpers_call_are_known_unless_functions_call_them(
    project: Project, helper: str, body: str, verdict: Any
) -> None:
    with_helper(project, helper, body)
    stub = "mcp: {desk: {tools: [{name: send, stubs: [{return: {}, times: any}]}]}}"
    outcome = project.run(f"{LLM}{stub}\nexpect: {{calls: [{{mcp: sned}}], never_calls: [{{mcp: sned}}]}}")
    assert outcome.verdict == verdict
    assert not project.warnings(imports=False)
