"""Requests of an MCP server in the middle of a call: to a person (elicitation), or to a model (sampling).

The app's own client answers if it can, else `human` and `llm` stubs. Source: docs/scenario-format.md, `mcp`.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from harness.scenario.outcome import Outcome
from tests.dialects.apps.conftest import RunApp

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the SDK of MCP is not installed")

APP = """
    import sys
    import openai
    from mcp import ClientSession, StdioServerParameters, types
    from mcp.client.stdio import stdio_client

    SERVER = StdioServerParameters(command=sys.executable, args=["bank.py"])


    async def confirm(context, params):
        return types.ElicitResult(action="accept", content={"ok": "50" in params.message})


    async def complete(context, params):
        told = [{"role": each.role, "content": each.content.text} for each in params.messages]
        reply = await openai.AsyncOpenAI().chat.completions.create(model="gpt-4o", messages=told)
        content = types.TextContent(type="text", text=reply.choices[0].message.content)
        return types.CreateMessageResult(role="assistant", content=content, model="gpt-4o")


    async def call(tool, **callbacks):
        async with stdio_client(SERVER) as streams, ClientSession(*streams[:2], **callbacks) as session:
            await session.initialize()
            result = await session.call_tool(tool, {})
            return {"error": result.is_error if hasattr(result, "is_error") else result.isError,
                    "said": result.content[0].text}


    async def plain(tool):
        return await call(tool)


    async def able(tool):
        return await call(tool, elicitation_callback=confirm, sampling_callback=complete)
"""
REAL = """
    import json, sys

    def send(**message):
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def ask(method, params):
        send(id="q1", method=method, params=params)
        return json.loads(sys.stdin.readline()).get("result") or {}

    client = {}
    for line in sys.stdin:
        message = json.loads(line)
        method, id = message["method"], message.get("id")
        if id is None:
            continue
        if method == "initialize":
            client = message["params"]["capabilities"]
            info = {"name": "bank", "version": "1"}
            send(id=id, result={"protocolVersion": message["params"]["protocolVersion"],
                                "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            schema = {"type": "object", "properties": {}}
            send(id=id, result={"tools": [{"name": each, "inputSchema": schema} for each in ("pay", "sum_up")]})
        elif method == "tools/call":
            if message["params"]["name"] == "pay":
                schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
                found = ask("elicitation/create", {"message": "Pay 50?", "requestedSchema": schema})
                text = "paid" if found.get("action") == "accept" else str(found.get("action"))
            else:
                told = [{"role": "user", "content": {"type": "text", "text": "Sum up!"}}]
                found = ask("sampling/createMessage", {"messages": told, "maxTokens": 9})
                text = found.get("content", {}).get("text", "nothing")
            send(id=id, result={"content": [{"type": "text", "text": text}]})
        else:
            send(id=id, error={"code": -32601, "message": "no such method"})
"""
SCENARIOS = """
    manifest: app.py:plain
    defaults: {world}
    scenarios:
      - name: a person pays
        input: pay
        human: [{{reply: {{ok: true}}, latency: 20}}]
        expect:
          output: {{said: paid}}
          calls: [{{mcp: pay}}, {{human: plain, args: {{question: "Pay 50?"}}}}]
          latency: {{total: 20}}
      - name: its own client asks a model
        manifest: app.py:able
        input: sum_up
        llm: [{{model: gpt-4o, reply: Short., latency: 2}}]
        expect: {{output: {{said: Short.}}, calls: [{{mcp: sum_up}}, {{llm: gpt-4o}}], latency: {{total: 2}}}}
"""
MORE = """
      - {name: a person declines, input: pay, human: [decline], expect: {output: {said: {$contains: decline}}}}
      - name: a model sums up
        input: sum_up
        llm: [{when: 'request.prompt == "Sum up!" && request.params.max_tokens == 9', reply: Short., latency: 2}]
        expect: {output: {said: Short.}, calls: [{mcp: sum_up}, {llm: sampling}], latency: {total: 2}}
      - {name: nobody answers, input: pay, expect: {status: failed, error: {type: UnscriptedCall}}}
      - name: its own client confirms
        manifest: app.py:able
        input: pay
        expect: {output: {said: paid}, calls: [{mcp: pay}], calls_order: exact}
"""
SCRIPTED = """
      tools:
        - {name: pay, stubs: [{elicit: {message: "Pay 50?"}, return: paid}]}
        - name: sum_up
          stubs: [{sample: {messages: [{role: user, content: {type: text, text: Sum up!}}], maxTokens: 9}}]
"""


def failed(found: dict[str, Outcome]) -> dict[str, object]:
    return {name: (one.checks, one.observed.error) for name, one in found.items() if not one.passed}


def test_a_scripted_server_asks_what_its_stub_says(run_app: RunApp) -> None:
    server = {"mcp": {sys.executable: yaml.safe_load(SCRIPTED)}}
    assert failed(run_app(SCENARIOS.format(world=json.dumps(server)) + MORE, {"app.py": APP})) == {}


def test_a_real_server_asks_what_it_likes(
    run_app: RunApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = {"mcp": {sys.executable: "real"}}
    files = {"app.py": APP, "bank.py": REAL}
    assert failed(run_app(SCENARIOS.format(world=json.dumps(server)), files)) == {}
