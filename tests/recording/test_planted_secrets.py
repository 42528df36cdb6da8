"""Secrets are planted wherever traffic can carry them. None of them is in anything that is written or printed."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.serve import serving
from tests.planted import files_with, found_in
from tests.recording.safety import Done, Project, Terminal, answering, said
from tests.world.loopback import Asked, Said

# ---------------------------------------------------------------- the secrets

VARIABLES = {
    "OPENAI_API_KEY": "sk-proj-Qm4tVZ81xYw0/plus+Kd7Lr2",
    "ANTHROPIC_API_KEY": "sk-ant-api03-7hGf2LkPq9ZtXw5R",
    "CRM_TOKEN": "crm-94bTq/8&x=Zy+tail",
    "VAULT_TOKEN": "hvs.CAESIJ3xw8Zq1YtRb",
    "DESK_TOKEN": "dsk_5f0c2e91ab7744d8",
    "TOOL_SECRET": 'quote"and\\slash-71Gq',
    "STREAMED_PASSWORD": "Wq7-correct-horse-91",
    "TYPED_PASSWORD": "pw-Typed-6630-Zx",
    "RAISED_SECRET": "raised-K29x-~umlaut!04",
}
OTHERS = {name: f"other-{number}-{value[::-1]}" for number, (name, value) in enumerate(VARIABLES.items())}
LOGIN = "u-Pass-5521word"  # of the base URL
MANIFEST_KEY = "sk-manifest-0Bq6Yt3mZr"
LITERAL = {
    "base URL login": LOGIN,
    "api_key of a manifest": MANIFEST_KEY,
    "header of a node": "nodehdr-83hfKq02Lm",
    "query parameter": "qry-5Tg6Yh7Uj8Ik",
    "field of a JSON body": "cs-1Qa2Ws3Ed4Rf",
    "field of a form": "frm-9Ol8Ik7Uj6Yh",
    "access token of a response": "eyJhbGciOi.J9-access-77Xz",
    "cookie of a response": "sess-Pp0Oo9Ii8Uu7",
    "argument of an MCP tool": "arg-2Wsx3Edc4Rfv",
    "access token of an MCP tool": "mcp-access-6Yhn7Ujm",
}
SECRETS = {**VARIABLES, **LITERAL}
# What the provider quotes of a key that it refuses.
ECHO = "Incorrect API key provided: sk-proj-***7Lr2, of sk-proj-Qm4tVZ81xYw0/plus+Kd7Lr2."

# ---------------------------------------------------------------- what the servers say


@dataclass
class World:
    """Every server of the scenarios. `asked` is all that reached them."""

    asked: list[Asked] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Said:
        self.asked.append(asked)
        path = urlsplit(asked.path).path
        if path == "/oauth":
            cookie = f"session={LITERAL['cookie of a response']}; Path=/; HttpOnly"
            token = {"access_token": LITERAL["access token of a response"], "expires_in": 3600}
            return Said(json=token, headers={"set-cookie": cookie})
        if path == "/parcels":
            return Said(json={"parcels": 2, "seen": asked.headers["authorization"]})
        if path == "/v1/messages":
            return anthropic(asked)
        return openai(asked)

    def heard(self) -> bytes:
        return b"\n".join(
            b" ".join([asked.path.encode(), json.dumps(dict(asked.headers)).encode(), asked.body])
            for asked in self.asked
        )


def openai(asked: Asked) -> Said:
    request = asked.json
    last = request["messages"][-1]["content"]
    if "refuse me" in last:
        return Said(json={"error": {"message": ECHO, "code": "invalid_api_key"}}, status=401)
    if not request.get("stream"):
        return said(f"You said {last!r}.")
    secret = VARIABLES["STREAMED_PASSWORD"]
    parts = ["The password is ", secret[:3], secret[3:9], secret[9:], "."]
    return Said(events=[chunk(part) for part in parts] + [chunk(None), "[DONE]"])


def chunk(part: str | None) -> dict[str, object]:
    choice = {
        "index": 0,
        "delta": {"content": part} if part else {},
        "finish_reason": None if part else "stop",
    }
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def anthropic(asked: Asked) -> Said:
    """Asks for every tool there is, once; then repeats what they said."""
    request = asked.json
    last = request["messages"][-1]["content"]
    results = [block for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
    if results:
        content: list[dict[str, Any]] = [{"type": "text", "text": f"The tools say {json.dumps(results)}"}]
    else:
        content = [
            {"type": "tool_use", "id": f"toolu_{number}", "name": tool["name"], "input": {}}
            for number, tool in enumerate(request["tools"])
        ]
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    usage = {"input_tokens": 3, "output_tokens": 2}
    reason = "end_turn" if results else "tool_use"
    return Said(json={**whole, "content": content, "stop_reason": reason, "usage": usage})


VAULT = '''\
"""An MCP server on stdin and stdout whose tool tells the secret of its environment."""
import json, os, sys

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("open_vault", "unlock")]

def answer(method, params):
    if method == "initialize":
        info = {"name": "vault", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if params["name"] == "unlock":
        return told(json.dumps({"access_token": "mcp-access-6Yhn7Ujm", "door": 3}))
    return told("opened with " + os.environ["VAULT_TOKEN"])

def told(text):
    return {"content": [{"type": "text", "text": text}]}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params"))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
'''

# ---------------------------------------------------------------- agents

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
agents:
  guide:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: say
      nodes:
        - name: say
          type: call_llm
          args:
            prompt:
              - {role: system, content: 'prompts["manner"]["instructions"]'}
              - {role: messages, content: state.messages}
            use_tools_from_registry: true
            state_updates: {messages: '[llm_response]'}
      edges: []
"""

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
    """An Agent Spec flow of these nodes, one after the other; `data` says which value goes from where to where."""

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
    """Gets a token with a form, and spends it in a header, in JSON and in a query."""
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
    """Gets a token of an MCP server for a password, and spends it."""
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


SCENARIOS = """\
harness: 1
env_passthrough: [CRM_TOKEN, VAULT_TOKEN, DESK_TOKEN, DESK_URL]
scenarios:
  - name: guide
    manifest: guide.yaml
    cassette: guide
    tools: {whisper: real}
    input: Open the vault.
    expect: {output: {$contains: psst}, call_counts: {mcp: 3, tool: 1}}
  - {name: flow, manifest: flow.json, cassette: flow, input: {}, expect: {output: {seen: {$contains: Bearer}}}}
  - name: unlock
    manifest: unlock.json
    cassette: unlock
    input: {password: arg-2Wsx3Edc4Rfv}
    expect: {output: {seen: {$contains: Bearer}}}
  - name: stream
    manifest: stream.yaml
    cassette: stream
    input: {who: parrot}
    handlers: {join: planted_tools.join}
    expect: {state: {told: {$contains: password}}}
  - {name: gate, manifest: gate.yaml, cassette: gate, input: {who: parrot}, handlers: {join: planted_tools.join}}
  - name: refused
    manifest: says.yaml
    cassette: refused
    input: refuse me
    expect: {status: failed, error: {message: {$contains: Incorrect}}}
  - name: raised
    manifest: raises.yaml
    cassette: raised
    input: {}
    handlers: {burst: planted_tools.burst}
    expect: {status: failed, error: {message: {$contains: cannot log in}}}
  - {name: asked, manifest: asked.yaml, cassette: asked, expect: {output: {$contains: You said}}}
"""
# They are recorded, and what they show is all there is to show.
FAILING = """\
harness: 1
env_passthrough: [CRM_TOKEN, VAULT_TOKEN, DESK_TOKEN, DESK_URL]
scenarios:
  - name: guide fails
    manifest: guide.yaml
    cassette: guide-fails
    tools: {whisper: real}
    input: Open the vault.
    expect: {output: nothing, state: {messages: []}, calls: [{tool: none}], never_calls: [{mcp: "*"}]}
  - name: flow fails
    manifest: flow.json
    cassette: flow-fails
    input: {}
    expect: {output: {seen: none}, never_calls: [{http: "*"}]}
  - name: unlock fails
    manifest: unlock.json
    cassette: unlock-fails
    input: {password: arg-2Wsx3Edc4Rfv}
    expect: {output: {seen: none}, never_calls: [{http: "*"}, {mcp: "*"}]}
  - name: stream fails
    manifest: stream.yaml
    cassette: stream-fails
    input: {who: parrot}
    handlers: {join: planted_tools.join}
    expect: {state: {told: none}}
  - name: raised fails
    manifest: raises.yaml
    cassette: raised-fails
    input: {}
    handlers: {burst: planted_tools.burst}
  - {name: refused fails, manifest: says.yaml, cassette: refused-fails, input: refuse me}
  - {name: nobody is asked, manifest: asked.yaml, cassette: nobody}
"""
PROMPTS = "tell: {system: Tell., user: 'What is it, {who}?'}"
SAYS = ASKED.replace("entry_point: ask", "entry_point: say").replace(
    "edges: [{source: ask, target: say}]", "edges: []"
)
SAYS = SAYS.replace(
    """        - {name: ask, type: interrupt, args: {value: '"What is the password?"'}}\n""", ""
)
DESK = """\
harness: 1
scenarios:
  - name: desk
    manifest: raises.yaml
    mcp: {desk: {tools: [{name: ring, stubs: [{return: ding}]}]}}
"""

# ---------------------------------------------------------------- recorded once


@dataclass
class Recorded:
    project: Project
    world: World
    told: str
    code: int
    digests: dict[str, str]
    verdicts: dict[str, str]


@contextmanager
def planted(folder: Path) -> Iterator[tuple[Project, World, dict[str, str]]]:
    """The project, its servers, and the variables that say where they are and hold secrets."""
    world = World()
    with answering(world) as url:
        project = Project(folder)
        files = {
            "guide.yaml": GUIDE.replace("PYTHON", sys.executable), "asked.yaml": ASKED, "says.yaml": SAYS,
            "stream.yaml": STREAM, "gate.yaml": GATE, "raises.yaml": RAISES, "flow.json": logging_in(url),
            "unlock.json": unlocking(url), "prompts.yaml": PROMPTS, "planted_tools.py": TOOLS, "vault.py": VAULT,
            "planted.scenario.yaml": SCENARIOS, "failing.scenario.yaml": FAILING,
            "desk/desk.scenario.yaml": DESK, "desk/raises.yaml": RAISES,
        }  # fmt: skip
        for name, text in files.items():
            project.write(name, text)
        with serving(project.folder / "desk/desk.scenario.yaml") as desk:
            places = {
                "OPENAI_BASE_URL": f"{url}/v1",
                "VLLM_BASE_URL": url.replace("://", f"://user:{LOGIN}@") + "/v1",
                "ANTHROPIC_BASE_URL": url,
                "DESK_URL": desk.mcp_urls["desk"],
                "API_URL": url,
            }
            yield project, world, {**VARIABLES, **places}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    typed = VARIABLES["TYPED_PASSWORD"]
    with (
        planted(tmp_path_factory.mktemp("planted")) as (project, world, env),
        Terminal(project, "harness", "record", "planted.scenario.yaml", **env) as terminal,
    ):
        terminal.type_after("answer", typed)
        told, code = terminal.end()
    told = told.replace(f"{typed}\r\n", "", 1)  # the terminal shows what is typed, not the harness
    return Recorded(project, world, told, code, project.digests(), project.verdicts())


def test_everything_was_recorded_for_real(recorded: Recorded) -> None:
    assert (recorded.code, set(recorded.verdicts.values())) == (0, {"passed"}), recorded.told


def test_each_secret_went_out_or_came_in(recorded: Recorded) -> None:
    heard = recorded.world.heard().decode()
    told = heard + json.dumps(parse_qs(heard)) + "".join(parse_qs(heard).keys())
    # One goes to a server of the harness, which does not tell; the others come in a response.
    silent = {"DESK_TOKEN", "STREAMED_PASSWORD", "cookie of a response", "argument of an MCP tool"}
    assert {name for name, value in SECRETS.items() if not found_in(told, value)} == silent


def test_no_secret_is_written_or_printed_when_it_is_recorded(recorded: Recorded) -> None:
    for name, secret in SECRETS.items():
        assert files_with(recorded.project.folder / "cassettes", secret) == {}, name
        assert files_with(recorded.project.folder / "reports", secret) == {}, name
        assert found_in(recorded.told, secret) == [], name


@pytest.fixture(scope="module", params=["unset", "other"])
def replayed(recorded: Recorded, request: pytest.FixtureRequest) -> tuple[Done, dict[str, str], Path]:
    """The replay with the variables unset or with other values: what it told, its digests and its report."""
    report = f"reports/{request.param}"
    env = OTHERS if request.param == "other" else {}
    done = recorded.project.harness("run", "planted.scenario.yaml", "--report", report, **env)
    results = recorded.project.results(report)
    return done, {name: line["digest"] for name, line in results.items()}, recorded.project.folder / report


def test_the_replay_is_the_same_without_the_secrets_and_with_others(
    recorded: Recorded, replayed: Any
) -> None:
    done, digests, _ = replayed
    assert done.code == 0, done.all
    assert digests == recorded.digests


def test_no_secret_is_written_or_printed_when_it_is_replayed(replayed: Any) -> None:
    done, _, report = replayed
    for secret in [*SECRETS.values(), *OTHERS.values()]:
        assert (found_in(done.all, secret), files_with(report, secret)) == ([], {})


WRITTEN_BY_PEOPLE = {
    "stream.yaml", "flow.json", "unlock.json", "vault.py", "planted.scenario.yaml", "failing.scenario.yaml",
}  # fmt: skip
LOUD = ("--log-level=DEBUG", "-o", "log_cli=true", "--log-file=log.txt", "--log-file-level=DEBUG",
        "--junitxml=junit.xml", "-o", "junit_logging=all", "-o", "junit_log_passing_tests=true", "-vv")  # fmt: skip


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done, Done]:
    """Recorded and replayed by pytest, with everything logged: what fails is shown at length."""
    with planted(tmp_path_factory.mktemp("planted")) as (project, _, env):
        args = ("failing.scenario.yaml", "-p", "no:cacheprovider", *LOUD)
        recorded = project.run("pytest", *args, "--record-mode=rewrite", **env)
        for name in ("log.txt", "junit.xml", "reports/latest/results.jsonl"):
            project.write(f"recorded/{name}", (project.folder / name).read_bytes())
        replayed = project.run("pytest", *args, **VARIABLES)
    return project, recorded, replayed


def test_failures_are_shown_at_length(failed: tuple[Project, Done, Done]) -> None:
    project, recorded, replayed = failed
    assert "DEBUG" in recorded.out
    assert "7 failed" in recorded.out, recorded.out
    assert "7 failed" in replayed.out, replayed.out
    # What breaks off is not kept; what pauses is.
    kept = {"guide-fails", "flow-fails", "unlock-fails", "stream-fails", "nobody"}
    assert {path.partition("/")[0] for path in project.cassettes()} == kept


def test_no_secret_is_in_what_pytest_shows_logs_and_writes(failed: tuple[Project, Done, Done]) -> None:
    project, recorded, replayed = failed
    for name, secret in SECRETS.items():
        assert found_in(recorded.all, secret) == [], name
        assert found_in(replayed.all, secret) == [], name
        assert set(files_with(project.folder, secret)) <= WRITTEN_BY_PEOPLE, name
