"""A scenario with a real MCP server: a child process, while which answers the virtual clock is stopped."""

import json
from pathlib import Path

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from tests import forked
from tests.manifests import USES_TOOLS

SERVER = Path(__file__).with_name("test_mcp_sdk.py")

MANIFEST = """\
manifest_version: 1
default_llm: {id: m}
llms: [{id: m, version: "1.0.0", provider: openai, model_name: x}]
mcp_servers:
  - id: weather
    version: "1.0.0"
    transport: stdio
    command: PROGRAM
    args: ARGS
    env: {SEASON: winter}
"""
MANIFEST += USES_TOOLS

SCENARIO = """\
harness: 1
manifest: bot.yaml
scenarios:
  - name: a real server answers
    input: hi
    mcp: {weather: real}
    llm: [{tool_calls: [{name: report, args: {place: Oslo}}], latency: 2}, done]
    expect:
      calls: [{mcp: report, ok: true}]
      checks: [{that: 'latency.total == 2.0'}]
      state: {messages: {$some: {type: tool, content: {$cel: 'value[0].text.contains("winter")'}}}}
"""


def test_a_real_stdio_server_answers_and_costs_no_virtual_time(tmp_path: Path) -> None:
    program, *args = forked.command(SERVER)
    manifest = MANIFEST.replace("PROGRAM", json.dumps(program)).replace("ARGS", json.dumps(args))
    (tmp_path / "bot.yaml").write_text(manifest, encoding="utf-8")
    file = tmp_path / "bot.scenario.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    [scenario] = load_file(file).scenarios
    [outcome] = run_scenario(scenario)
    assert outcome.passed, outcome
