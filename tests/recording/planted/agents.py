"""Agents that send and receive planted secrets."""

import json
import sys
from itertools import pairwise

from tests.manifests import USES_TOOLS
from tests.recording.planted.values import LITERAL, MANIFEST_KEY

GUIDE = """\
manifest_version: 1
default_llm: {id: m}
llms: [{id: m, version: "1.0.0", provider: anthropic, model_name: claude-sonnet-4-5}]
prompts: [{id: manner, version: "1.0.0", instructions: "You act for ${CRM_TOKEN}."}]
tools: [{id: whisper, version: "1.0.0", import_path: planted_tools.whisper}]
mcp_servers:
  - id: vault
    version: "1.0.0"
    transport: stdio
    command: PYTHON
    args: [vault.py]
    env: {VAULT_TOKEN: "${VAULT_TOKEN}"}
  - id: desk
    version: "1.0.0"
    url: "${DESK_URL}"
    headers: {X-Desk: "${DESK_TOKEN}"}
"""
MANNER = """{role: system, content: 'prompts["manner"]["instructions"]'}"""
GUIDE += USES_TOOLS.replace("prompt: [", f"prompt: [{MANNER}, ")

ASKED = """\
manifest_version: 1
default_llm: {id: m}
llms: [{id: m, version: "1.0.0", provider: openai, model_name: parrot-1}]
agents:
  asked:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: ask
      nodes:
        - {name: ask, type: interrupt, args: {value: '"What is the password?"'}}
        - name: say
          type: call_llm
          args: {prompt: [{role: messages, content: state.messages}], state_updates: {messages: '[llm_response]'}}
      edges: [{source: ask, target: say}]
"""

STREAM = f"""\
version: "1.0"
start_at: tell
end_at: [join]
nodes:
  - id: tell
    handler: streaming_llm
    params:
      prompt_ref: prompts.yaml#tell
      model: {{provider: openai, name: parrot-1, kwargs: {{api_key: {MANIFEST_KEY}}}}}
      output_key: told
  - {{id: join, handler: join}}
edges: [{{source: tell, target: join}}]
"""

GATE = STREAM.replace("openai", "vllm").replace(f", kwargs: {{api_key: {MANIFEST_KEY}}}", "")

RAISES = """\
version: "1.0"
start_at: burst
end_at: [burst]
nodes: [{id: burst, handler: burst}]
edges: []
"""

TOOLS = """\
import os

from langchain_core.tools import tool


@tool
def whisper() -> str:
    "Tells a secret."
    return "psst: " + os.environ.get("TOOL_SECRET", "<secret:TOOL_SECRET>")


def join(state, params):
    return {"told": "".join(state["told"])}


def burst(state, params):
    import httpx

    secret = os.environ.get("RAISED_SECRET", "<secret:RAISED_SECRET>")
    url = os.environ.get("API_URL", "http://127.0.0.1:9") + "/parcels"
    httpx.get(url, headers={"authorization": "Bearer " + secret})
    raise RuntimeError("cannot log in with " + secret)
"""


def text(name: str) -> dict[str, str]:
    return {"title": name, "type": "string"}


def api(name: str, **more: object) -> dict[str, object]:
    return {"component_type": "ApiNode", "id": name, "name": name, "http_method": "POST", **more}


def flow(data: list[tuple[str, str, str]], *nodes: dict[str, object]) -> str:
    """Return an Agent Spec flow of these nodes in sequence; `data` has its data edges."""

    def ref(name: object) -> dict[str, object]:
        return {"$component_ref": name}

    names = [node["name"] for node in nodes]
    control_edges = [
        {
            "component_type": "ControlFlowEdge",
            "name": f"{one}-{other}",
            "from_node": ref(one),
            "to_node": ref(other),
        }
        for one, other in pairwise(names)
    ]
    data_edges = [
        {
            "component_type": "DataFlowEdge", "name": f"{one}.{value}", "source_node": ref(one),
            "source_output": value, "destination_node": ref(other), "destination_input": value,
        }
        for one, value, other in data
    ]  # fmt: skip
    whole = {
        "component_type": "Flow", "id": "flow", "name": "flow", "agentspec_version": "25.4.1",
        "inputs": nodes[0].get("inputs", []), "start_node": ref(names[0]), "nodes": [ref(name) for name in names],
        "control_flow_connections": control_edges, "data_flow_connections": data_edges,
        "$referenced_components": {node["name"]: node for node in nodes},
    }  # fmt: skip
    return json.dumps(whole)


def spending(url: str) -> dict[str, object]:
    return api(
        "spend", url=f"{url}/parcels", outputs=[text("seen")],
        headers={"Authorization": "Bearer {{access_token}}"},
        query_params={"api_key": LITERAL["query parameter"], "page": "1"},
        data={"client_secret": LITERAL["field of a JSON body"], "note": "with {{access_token}}"},
    )  # fmt: skip


END: dict[str, object] = {"component_type": "EndNode", "id": "end", "name": "end", "outputs": [text("seen")]}


def logging_in(url: str) -> str:
    """Gets a token by a form, and uses it in a header, in JSON and in a query."""
    form = {"grant_type": "password", "password": LITERAL["field of a form"]}
    form_type = {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Api-Key": LITERAL["header of a node"],
    }
    start: dict[str, object] = {"component_type": "StartNode", "id": "start", "name": "start"}
    login = api("login", url=f"{url}/oauth", data=form, outputs=[text("access_token")], headers=form_type)
    data = [("login", "access_token", "spend"), ("spend", "seen", "end")]
    return flow(data, start, login, spending(url), END)


def unlocking(url: str) -> str:
    """Gets a token from an MCP server for a password, and uses it."""
    start: dict[str, object] = {
        "component_type": "StartNode", "id": "start", "name": "start", "inputs": [text("password")],
    }  # fmt: skip
    vault = {"component_type": "StdioTransport", "id": "vault", "name": "vault", "command": sys.executable,
             "args": ["vault.py"], "env": {"VAULT_TOKEN": "none"}}  # fmt: skip
    unlock = {
        "component_type": "MCPTool", "id": "unlock", "name": "unlock", "client_transport": vault,
        "inputs": [text("password")], "outputs": [text("access_token"), text("door")],
    }  # fmt: skip
    node: dict[str, object] = {
        "component_type": "ToolNode",
        "id": "unlock-node",
        "name": "unlock-node",
        "tool": unlock,
    }
    data = [
        ("start", "password", "unlock-node"),
        ("unlock-node", "access_token", "spend"),
        ("spend", "seen", "end"),
    ]
    return flow(data, start, node, spending(url), END)
