"""In live mode models and servers are asked what the dialects' own runtimes ask. The bodies are theirs.

They were taken from sherma 1.8, yagra 1.2 and the LangGraph adapter of pyagentspec 26.3. `stream: false`, which some
leave out, is what they mean.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.load import load_file
from harness.scenario.run import run_scenario
from harness.settings import RecordMode, load_settings
from tests.world.loopback import Asked, Said, loopback

KEY = "sk-live-test"
_ELSEWHERE = ("_API_KEY", "_BASE_URL", "_API_BASE", "_API_URL", "_proxy", "_PROXY")

Live = Callable[..., list[Asked]]
Call = tuple[str, Mapping[str, Any]]


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    """Runs a scenario with these keys, live, against a server with these answers: what that was asked.

    `SERVER` in a file stands for where the server is.
    """
    for name in [name for name in os.environ if name.endswith(_ELSEWHERE) or name.startswith("HARNESS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(files: Mapping[str, str], answers: Sequence[Said], **keys: Any) -> list[Asked]:
        with loopback(*answers) as server:
            for name, text in files.items():
                (tmp_path / name).write_text(text.replace("SERVER", server.url), encoding="utf-8")
            for provider, url in {"OPENAI": f"{server.url}/v1", "ANTHROPIC": server.url}.items():
                monkeypatch.setenv(f"{provider}_API_KEY", KEY)
                monkeypatch.setenv(f"{provider}_BASE_URL", url)
            scenario = {"name": "it", "manifest": next(iter(files)), "input": "hello", **keys}
            path = tmp_path / "it.scenario.yaml"
            path.write_text(json.dumps({"harness": 1, "scenarios": [scenario]}), encoding="utf-8")
            settings = replace(load_settings(), record_mode=RecordMode.LIVE)
            (outcome,) = run_scenario(load_file(path).scenarios[0], settings)
            assert outcome.observed.status == "completed", outcome.observed.error
            return server.asked

    return run


def says(text: str | None = "done", *calls: Call) -> Said:
    """An answer of OpenAI's chat completions."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"call-{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
            for n, (name, args) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return Said(json={**head, "choices": [choice]})


def streams(text: str) -> Said:
    """The same, in parts."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    return Said(events=[{**head, "choices": choices}, "[DONE]"])


def claude_says(text: str) -> Said:
    """An answer of Anthropic's messages."""
    return Said(
        json={
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )


def body(asked: Asked) -> dict[str, Any]:
    """What was asked, without `stream: false`."""
    found: dict[str, Any] = asked.json
    return {key: value for key, value in found.items() if (key, value) != ("stream", False)}


def function(name: str, description: str, **parameters: Any) -> dict[str, Any]:
    """A tool as OpenAI is told of it."""
    told = {"name": name, "description": description, "parameters": {"type": "object", **parameters}}
    return {"type": "function", "function": told}


def said_by_tools(asked: Asked) -> list[Any]:
    return [message["content"] for message in asked.json["messages"] if message["role"] == "tool"]


# ------------------------------------------------------------ sherma


def sherma(*nodes: str, top: str = "", provider: str = "openai", model: str = "small") -> str:
    """A manifest whose agent runs these nodes; each is the args of a call_llm."""
    named = [
        f"""
        - name: n{at}
          type: call_llm
          args: {{prompt: [{{role: messages, content: state.messages}}], {node},
                  state_updates: {{messages: "[llm_response]"}}}}"""
        for at, node in enumerate(nodes)
    ]
    edges = ", ".join(f"{{source: n{at}, target: n{at + 1}}}" for at in range(len(nodes) - 1))
    return f"""
manifest_version: 1
llms: [{{id: m, version: 1.0.0, provider: {provider}, model_name: {model}}}]
default_llm: {{id: m}}
{top}
agents:
  it:
    state: {{fields: [{{name: messages, type: list, default: []}}]}}
    graph:
      entry_point: n0
      nodes: {"".join(named)}
      edges: [{edges}]
"""


USE_ALL = "use_tools_from_registry: true"

LIBRARY = {
    "library": {
        "tools": [
            {
                "name": "find",
                "description": "Finds books",
                "input_schema": {
                    "title": "findArguments",
                    "properties": {
                        "author": {"title": "Author", "type": "string"},
                        "query": {"anyOf": [{"$ref": "#/$defs/Query"}, {"type": "null"}], "default": None},
                    },
                    "required": ["author"],
                    "$defs": {"Query": {"type": "object", "properties": {"limit": {"type": "integer"}}}},
                },
                "stubs": [
                    {"args": {"author": "Le Guin"}, "return": "The Dispossessed"},
                    {"error": {"kind": "exception", "message": "the catalogue is closed"}},
                ],
            },
            {
                "name": "cover",
                "stubs": [
                    {
                        "content": [
                            {"type": "image", "data": "aWNv", "mimeType": "image/png"},
                            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
                        ]
                    }
                ],
            },
        ]
    }
}
SERVERS = 'mcp_servers: [{id: library, version: 1.0.0, url: "http://library.test/mcp", tool_prefix: lib_}]'
FIND = function(
    "lib_find",
    "Finds books",
    properties={
        "author": {"type": "string"},
        "query": {
            "anyOf": [{"type": "object", "properties": {"limit": {"type": "integer"}}}, {"type": "null"}],
            "default": None,
        },
    },
    required=["author"],
)


def test_sherma_tells_of_mcp_tools_without_titles_and_references(live: Live) -> None:
    first, *_ = live({"agent.yaml": sherma(USE_ALL, top=SERVERS)}, [says()], mcp=LIBRARY, allow_unused=True)
    assert body(first) == {
        "model": "small",
        "messages": [{"role": "user", "content": "hello"}],
        "tools": [FIND, {"type": "function", "function": function("lib_cover", "")["function"]}],
    }


def test_sherma_hands_on_what_mcp_tools_say_in_blocks(live: Live) -> None:
    calls: list[Call] = [
        ("lib_find", {"author": "Le Guin"}),
        ("lib_find", {"author": "Nobody"}),
        ("lib_cover", {}),
    ]
    answers = [says(None, *calls), says()]
    *_, last = live({"agent.yaml": sherma(USE_ALL, top=SERVERS)}, answers, mcp=LIBRARY, allow_unused=True)
    assert said_by_tools(last) == [
        [{"type": "text", "text": "The Dispossessed"}],
        [{"type": "text", "text": "the catalogue is closed"}],
        [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWNv"}},
            {"type": "text", "text": "inside"},
        ],
    ]


TOOLS = {
    "live_tools.py": '''
def forecast(days: int) -> str:
    """The weather to come."""
    return "rain"
'''
}
FORECAST = "tools: [{id: forecast, version: 1.0.0, import_path: live_tools.forecast}]"


def test_sherma_tells_of_mistaken_calls_in_the_words_of_langgraph(live: Live) -> None:
    calls: list[Call] = [("guess", {}), ("forecast", {"days": "many"})]
    files = {"agent.yaml": sherma("tools: [{id: forecast}]", top=FORECAST), **TOOLS}
    *_, last = live(files, [says(None, *calls), says()])
    assert said_by_tools(last) == [
        "Error: guess is not a valid tool, try one of [forecast].",
        "Error invoking tool 'forecast' with kwargs {'days': 'many'} with error:\n"
        " days: Input should be a valid integer, unable to parse string as an integer\n"
        " Please fix the error and try again.",
    ]


def test_sherma_tells_of_skills_servers_tools_and_agents_in_this_order(live: Live) -> None:
    top = f"{FORECAST}\n{SERVERS}\nsub_agents: [{{id: aide, version: 1.0.0, yaml_path: agent.yaml}}]\n"
    top += "skills: [{id: knots, version: 1.0.0, skill_card_path: card.json}]"
    card: dict[str, Any] = {"id": "knots", "version": "1.0.0", "name": "Knots", "description": "Tie."}
    card |= {"base_uri": ".", "files": ["SKILL.md"], "mcps": {}, "local_tools": {}}
    files = {"agent.yaml": sherma(USE_ALL, top=top), "card.json": json.dumps(card), **TOOLS}
    first, *_ = live(files, [says()], mcp=LIBRARY, allow_unused=True)
    tools = {tool["function"]["name"]: tool for tool in first.json["tools"]}
    assert list(tools)[:3] == ["list_skills", "load_skill_md", "unload_skill"]
    assert list(tools)[-4:] == ["lib_find", "lib_cover", "forecast", "aide"]
    assert tools["list_skills"]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert tools["aide"] == function(
        "aide",
        "Invoke agent: aide",
        properties={"request": {"type": "string", "description": "Natural language request to the agent"}},
        required=["request"],
    )


def test_the_answer_format_of_sherma_has_a_description_even_if_it_is_empty(live: Live) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    form = f"response_format: {{name: verdict, schema: {json.dumps(schema)}}}"
    (asked,) = live({"agent.yaml": sherma(form)}, [says('{"ok": true}')])
    form_of_openai = {"name": "verdict", "description": "", "schema": schema}
    assert body(asked) == {
        "model": "small",
        "messages": [{"role": "user", "content": "hello"}],
        "response_format": {"type": "json_schema", "json_schema": form_of_openai},
    }


def test_what_a_hook_of_sherma_gives_a_model_is_understood_as_langchain_does(live: Live) -> None:
    hook = """
from sherma.hooks import BaseHookExecutor


class Tuned(BaseHookExecutor):
    async def on_chat_model_create(self, ctx):
        ctx.kwargs.update(
            base_url="SERVER/other", api_key="sk-of-a-hook", default_headers={"x-team": "a"},
            temperature=0.2, max_tokens=33, seed=4, model_kwargs={"user": "u"}, extra_body={"z": 1},
        )
        return ctx
"""
    files = {"agent.yaml": sherma("tools: []", top="hooks: [{import_path: tuned_hook.Tuned}]")}
    (asked,) = live({**files, "tuned_hook.py": hook}, [says()])
    assert asked.path == "/other/chat/completions"
    assert (asked.headers["authorization"], asked.headers["x-team"]) == ("Bearer sk-of-a-hook", "a")
    assert body(asked) == {
        "model": "small",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.2,
        "max_completion_tokens": 33,
        "seed": 4,
        "user": "u",
        "z": 1,
    }


REMOTE = sherma(
    "use_sub_agents_as_tools: true",
    top='sub_agents: [{id: harbour, version: 1.0.0, url: "SERVER/agent"}]',
)


def card(url: str | None = None, **capabilities: bool) -> Said:
    """What a remote agent says of itself; without `url` it is asked where its card stands."""
    return Said(json={"description": "Knows the harbour", "url": url, "capabilities": capabilities})


def test_a_remote_agent_of_sherma_is_introduced_by_its_card(live: Live) -> None:
    answer = {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "berth two"}]}
    answers = [
        card(),
        says(None, ("harbour", {"request": "any berth?"})),
        Said(json={"jsonrpc": "2.0", "id": 1, "result": answer}),
        says(),
    ]
    first, model, agent, last = live({"agent.yaml": REMOTE}, answers)
    assert (first.method, first.path) == ("GET", "/agent/.well-known/agent-card.json")
    assert model.json["tools"][0]["function"]["description"] == "Knows the harbour"
    asked = agent.json
    assert asked["params"]["message"].pop("messageId")
    assert asked == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {
            "configuration": {"acceptedOutputModes": [], "blocking": True},
            "message": {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "any berth?"}]},
        },
    }
    assert said_by_tools(last) == ["berth two"]


def test_a_remote_agent_that_streams_is_asked_for_a_stream(live: Live) -> None:
    told = [
        {"kind": "task", "id": "t", "status": {"state": "working"}},
        {
            "kind": "artifact-update",
            "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "berth"}]},
        },
        {
            "kind": "artifact-update",
            "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "six"}]},
        },
        {"kind": "status-update", "status": {"state": "completed"}},
    ]
    events = [json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}) for result in told]
    answers = [
        card(streaming=True),
        says(None, ("harbour", {"request": "any berth?"})),
        Said(events=events),
        says(),
    ]
    _, _, agent, last = live({"agent.yaml": REMOTE}, answers)
    assert (agent.json["method"], agent.headers["accept"]) == ("message/stream", "text/event-stream")
    assert said_by_tools(last) == ["berth six"]


def test_a_remote_agent_is_asked_where_its_card_says(live: Live) -> None:
    answer = {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "berth two"}]}
    with loopback(Said(json={"result": answer})) as elsewhere:
        asks = says(None, ("harbour", {"request": "any berth?"}))
        live({"agent.yaml": REMOTE}, [card(f"{elsewhere.url}/rpc"), asks, says()])
    assert [asked.path for asked in elsewhere.asked] == ["/rpc"]


# ------------------------------------------------------------ yagra


def workflow(handler: str, provider: str = "openai", name: str = "small", **more: Any) -> Mapping[str, str]:
    """A workflow of one node."""
    model = {"provider": provider, "name": name, "kwargs": more.pop("kwargs", {})}
    params = {"prompt_ref": "prompts.yaml#ask", "model": model, **more}
    told = {
        "version": "1.0",
        "start_at": "ask",
        "end_at": ["ask"],
        "nodes": [{"id": "ask", "handler": handler, "params": params}],
        "edges": [],
    }
    return {"workflow.yaml": json.dumps(told), "prompts.yaml": 'ask: {system: "Be kind.", user: "{input}"}'}


ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}]


def test_openai_is_sent_the_kwargs_of_yagra_as_they_are_written(live: Live) -> None:
    kwargs = {"temperature": 0, "max_tokens": 8, "stop": "END", "seed": 3, "user": "u", "unheard_of": 1}
    files = workflow("llm", kwargs={**kwargs, "drop_params": True, "metadata": {"run": "1"}})
    (asked,) = live(files, [says()], input={"input": "hello"})
    assert body(asked) == {"model": "small", "messages": ASKED, **kwargs}


@pytest.mark.parametrize("name", ["o3-mini", "gpt-5-mini"])
def test_openai_s_reasoning_models_know_max_tokens_by_another_name(name: str, live: Live) -> None:
    (asked,) = live(workflow("llm", name=name, kwargs={"max_tokens": 8}), [says()], input={"input": "hello"})
    assert asked.json["max_completion_tokens"] == 8
    assert "max_tokens" not in asked.json


def test_a_stream_of_yagra_has_only_the_options_that_are_written(live: Live) -> None:
    (asked,) = live(
        workflow("streaming_llm", kwargs={"max_tokens": 8}), [streams("hi")], input={"input": "hello"}
    )
    assert asked.json == {"model": "small", "messages": ASKED, "max_tokens": 8, "stream": True}


def test_a_structured_answer_of_yagra_is_asked_for_by_its_schema(live: Live) -> None:
    files = workflow("structured_llm", schema_yaml="name: str\nage: int | None")
    (asked,) = live(files, [says('{"name": "x"}')], input={"input": "hello"})
    schema = (
        '{"properties": {"name": {"title": "Name", "type": "string"}, '
        '"age": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null, "title": "Age"}}, '
        '"required": ["name"], "title": "Answer", "type": "object"}'
    )
    told = "Answer with JSON alone, valid under this JSON Schema:"
    assert body(asked) == {
        "model": "small",
        "messages": [{"role": "system", "content": f"Be kind.\n\n{told}\n{schema}"}, ASKED[1]],
        "response_format": {"type": "json_object"},
    }


def test_anthropic_is_told_of_yagra_s_user_as_it_wants(live: Live) -> None:
    files = workflow("llm", provider="anthropic", name="claude-x", kwargs={"user": "u", "max_tokens": 8})
    (asked,) = live(files, [claude_says("hi")], input={"input": "hello"})
    assert body(asked) == {
        "model": "claude-x",
        "max_tokens": 8,
        "system": "Be kind.",
        "messages": [ASKED[1]],
        "metadata": {"user_id": "u"},
    }


# ------------------------------------------------------------ Agent Spec


def text(title: str) -> dict[str, str]:
    return {"title": title, "type": "string"}


def component(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"component_type": kind, "id": name, "name": name, **fields}


COMPATIBLE = component(
    "OpenAiCompatibleConfig",
    "model",
    url="SERVER",
    model_id="tiny",
    default_generation_parameters={"max_tokens": 8, "top_p": 0.9},
)


def test_an_llm_node_of_agentspec_asks_for_its_outputs(live: Live) -> None:
    def ref(name: str) -> dict[str, str]:
        return {"$component_ref": name}

    outputs = [text("name"), {"title": "age", "type": "integer", "default": 3}]
    nodes = {
        "start": component("StartNode", "start"),
        "ask": component("LlmNode", "ask", llm_config=ref("model"), prompt_template="Who?", outputs=outputs),
        "end": component("EndNode", "end", outputs=outputs),
    }
    edges = [("start", "ask"), ("ask", "end")]
    flow = component(
        "Flow",
        "flow",
        agentspec_version="25.4.2",
        start_node=ref("start"),
        nodes=[ref(name) for name in nodes],
        control_flow_connections=[
            component("ControlFlowEdge", f"{one}-{other}", from_node=ref(one), to_node=ref(other))
            for one, other in edges
        ],
        outputs=outputs,
        **{"$referenced_components": {**nodes, "model": COMPATIBLE}},
    )
    (asked,) = live({"flow.json": json.dumps(flow)}, [says('{"name": "x", "age": 4}')], input={})
    assert asked.path == "/v1/chat/completions"
    # The adapter requires none of the outputs, and then fails without them.
    properties = {"name": outputs[0], "age": outputs[1]}
    schema = {"type": "object", "properties": properties, "required": ["name"]}
    assert body(asked) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Who?"}],
        "max_completion_tokens": 8,
        "top_p": 0.9,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "structured_output", "schema": schema, "strict": False},
        },
    }


def test_an_agent_of_agentspec_tells_of_its_tools_and_of_their_failures(live: Live) -> None:
    transport = component("StreamableHTTPTransport", "library", url="http://library.test/mcp")
    find = component(
        "MCPTool", "find", description="Finds", client_transport=transport, inputs=[text("author")]
    )
    tools = [component("ServerTool", "now", description="The time", outputs=[text("time")]), find]
    agent = component("Agent", "it", agentspec_version="25.4.1", llm_config=COMPATIBLE)
    agent |= {"system_prompt": "Be kind.", "tools": tools}
    calls: list[Call] = [("now", {}), ("find", {"author": "Nobody"}), ("guess", {})]
    first, last = live(
        {"agent.json": json.dumps(agent)},
        [says(None, *calls), says()],
        tools={"now": {"return": "noon"}},
        mcp=LIBRARY,
        allow_unused=True,
    )
    # The titles are the adapter's loss; WayFlow has them.
    assert first.json["tools"] == [
        function("now", "The time", properties={}),
        function("find", "Finds", properties={"author": text("author")}, required=["author"]),
    ]
    assert said_by_tools(last) == [
        "noon",
        "the catalogue is closed",
        "Error: guess is not a valid tool, try one of [now, find].",
    ]
