"""`harness validate`: what an agent calls and no scenario answers."""

import pytest

from tests.cli.fixtures import Invoke, WriteFile
from tests.manifests import CALLS_TOOL, USES_TOOLS

SHERMA = """\
manifest_version: 1
llms: [{id: m, version: "1", provider: openai, model_name: gpt-4o}]
default_llm: {id: m}
DECLARED
""" + USES_TOOLS.replace("guide", "desk").replace("say", "ask")
SERVER = 'mcp_servers: [{id: docs, version: "1", transport: sse, url: "http://docs.example"}]'
TOOL = 'tools: [{id: find, version: "1", import_path: own_tool.find}]'
AGENT = 'sub_agents: [{id: helper, version: "1", url: "http://helper.example"}]'

AGENTSPEC = CALLS_TOOL.replace("name: flow", "name: desk")
SERVER_TOOL = "{component_type: ServerTool, name: find}"
MCP_TOOL = (
    "{component_type: MCPTool, name: find, client_transport: "
    "{component_type: SSETransport, name: docs, url: 'http://docs.example'}}"
)
CLIENT_TOOL = "{component_type: ClientTool, name: find}"

YAGRA = """\
version: "1.0"
start_at: find
end_at: [find]
nodes: [{id: find, handler: look_up}]
edges: []
"""

LOKI = """\
start: a
global_tools: [gauge.sh]
mcp_servers: [tides]
nodes:
  a: {type: llm, prompt: hi, tools: [LISTED], next: z}
  z: {type: end}
"""

LEAFMESH = """\
name: desk
entry_points: [{name: ask, target: AGENT}]
agents:
  reader: {agent_type: llm, prompt: "Read.", tools: [find], yields: {found: string}}
  charts:
    agent_type: external
    framework: mcp
    connector_config: {tool_name: find, transport: http, url: "http://charts.example/mcp"}
    yields: {found: string}
"""

FOUND = '{name: find, stubs: [{return: "…"}]}'
ASKS = "llm: [{tool_calls: [{name: find}]}, done]"


@pytest.mark.parametrize(
    ("manifest", "scenario", "told", "stub"),
    [
        (SHERMA.replace("DECLARED", SERVER), "llm: [done]", "MCP server 'docs'", "mcp: {docs: {tools: []}}"),
        (SHERMA.replace("DECLARED", TOOL), ASKS, "tool 'find'", 'tools: {find: {return: "…"}}'),
        (
            SHERMA.replace("DECLARED", AGENT),
            ASKS.replace("find", "helper"),
            "agent 'helper'",
            'agents: {helper: {return: "…"}}',
        ),
        (AGENTSPEC.replace("TOOL", SERVER_TOOL), "", "tool 'find'", 'tools: {find: {return: "…"}}'),
        (
            AGENTSPEC.replace("TOOL", MCP_TOOL),
            "",
            "MCP server 'docs'",
            f"mcp: {{docs: {{tools: [{FOUND}]}}}}",
        ),
        (YAGRA, "expect: {path: [find]}", "handler 'look_up'", "handlers: {look_up: {return: {}}}"),
        (
            LEAFMESH.replace("AGENT", "charts").replace(", tools: [find]", ""),
            "",
            "MCP server 'charts'",
            f"mcp: {{charts: {{tools: [{FOUND}]}}}}",
        ),
        (
            LEAFMESH.replace("AGENT", "reader"),
            f"{ASKS}, agents: {{charts: {{return: x}}}}",
            "tool 'find'",
            'tools: {find: {return: "…"}}',
        ),
        (
            LEAFMESH.replace("AGENT", "reader"),
            "llm: [done], agents: {charts: {return: x}}",
            "tool 'find'",
            'tools: {find: {return: "…"}}',
        ),
        (LOKI.replace("LISTED", "mcp:tides"), "", "MCP server 'tides'", "mcp: {tides: {tools: []}}"),
        (
            LOKI.replace("LISTED", "gauge"),
            "llm: [{tool_calls: [{name: gauge}]}, done]",
            "tool 'gauge'",
            'tools: {gauge: {return: "…"}}',
        ),
    ],
)
def test_what_no_scenario_answers_is_a_warning_with_the_stub_to_write_which_is_right(
    manifest: str, scenario: str, told: str, stub: str, invoke: Invoke, write: WriteFile
) -> None:
    name = "graph.yaml" if manifest.startswith("start:") else "desk.yaml"
    write(f"desk/{name}", manifest)
    write("own_tool.py", 'def find() -> str:\n    """Find."""\n    return "x"\n')
    write("functions/tools/gauge.sh", "main() { :; }\n")

    def warnings(*more: str) -> list[str]:
        keys = ", ".join(filter(None, ("name: any, input: {messages: hi}", scenario, *more)))
        write("a.scenario.yaml", f"harness: 1\nmanifest: desk/{name}\nscenarios: [{{{keys}}}]\n")
        shown = invoke("validate", "a.scenario.yaml")
        assert shown.exit_code == 0, shown.stdout
        return [
            line for line in shown.stdout.splitlines() if "no scenario answers" in line or "shortest" in line
        ]

    found, hint = warnings()
    assert f"warning: no scenario answers the {told} of 'desk'" in found
    assert hint.strip() == f"the shortest stub: `{stub}`"
    assert warnings(stub) == []


@pytest.mark.parametrize(
    ("manifest", "scenario"),
    [
        (SHERMA.replace("DECLARED", TOOL), "llm: [done]"),
        (SHERMA.replace("DECLARED", TOOL), f"{ASKS}, tools: {{find: real}}"),
        (SHERMA.replace("DECLARED", SERVER), "cassette: recorded"),
        (SHERMA.replace("DECLARED", SERVER), "mcp: {docs: {error: connection}}"),
        (SHERMA.replace("DECLARED", AGENT), "llm: [done]"),
        (
            SHERMA.replace("DECLARED", AGENT),
            f"{ASKS.replace('find', 'helper')}, http: [{{url: 'http://helper.example', json: {{}}}}]",
        ),
        (AGENTSPEC.replace("TOOL", CLIENT_TOOL), ""),
        (YAGRA, "expect: {status: failed}"),
        (YAGRA.replace("look_up", "llm"), "expect: {path: [find]}"),
        (LOKI.replace("LISTED", "gauge"), "llm: [done]"),
    ],
)
def test_what_runs_by_itself_or_is_not_asked_for_needs_no_answer(
    manifest: str, scenario: str, invoke: Invoke, write: WriteFile
) -> None:
    name = "graph.yaml" if manifest.startswith("start:") else "desk.yaml"
    write(f"desk/{name}", manifest)
    write("own_tool.py", 'def find() -> str:\n    """Find."""\n    return "x"\n')
    write("functions/tools/gauge.sh", "main() { :; }\n")
    keys = ", ".join(filter(None, ("name: any, input: {messages: hi}", scenario)))
    write("a.scenario.yaml", f"harness: 1\nmanifest: desk/{name}\nscenarios: [{{{keys}}}]\n")
    shown = invoke("validate", "a.scenario.yaml")
    assert shown.exit_code == 0, shown.stdout
    assert "unanswered" not in shown.stdout


def test_one_of_the_scenario_files_that_are_checked_together_may_answer(
    invoke: Invoke, write: WriteFile
) -> None:
    write("m.yaml", SHERMA.replace("DECLARED", SERVER))
    head = "harness: 1\nmanifest: m.yaml\nscenarios: [{name: any, input: hi, llm: [done]"
    write("a.scenario.yaml", f"{head}}}]\n")
    write("b.scenario.yaml", f"{head}, mcp: {{docs: {{tools: []}}}}}}]\n")
    assert "[unanswered]" in invoke("validate", "a.scenario.yaml").stdout
    assert "[unanswered]" not in invoke("validate", ".").stdout
    assert "[unanswered]" not in invoke("validate", "m.yaml").stdout


def test_of_an_agent_inside_only_what_a_model_asks_for_needs_an_answer(
    invoke: Invoke, write: WriteFile
) -> None:
    write("own_tool.py", 'def find() -> str:\n    """Find."""\n    return "x"\n')
    write("inner.yaml", SHERMA.replace("DECLARED", f"{SERVER}\n{TOOL}"))
    inner = 'sub_agents: [{id: helper, version: "1", yaml_path: inner.yaml}]'
    write("m.yaml", SHERMA.replace("DECLARED", inner))

    def told(keys: str) -> list[str]:
        write(
            "a.scenario.yaml",
            f"harness: 1\nmanifest: m.yaml\nscenarios: [{{name: any, input: hi, {keys}}}]\n",
        )
        shown = invoke("validate", "a.scenario.yaml").stdout.splitlines()
        return [line.partition("warning: ")[2] for line in shown if "[unanswered]" in line]

    assert told("llm: [done]") == []
    assert [text[:34] for text in told(ASKS)] == ["no scenario answers the tool 'find"]
    assert told(f"{ASKS}, agents: {{helper: {{return: x}}}}") == []
