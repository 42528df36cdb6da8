"""In live mode models and servers are asked what the LangGraph adapter of pyagentspec 26.3 asks them.

The bodies are theirs. `stream: false`, which some leave out, is what they mean.
"""

from __future__ import annotations

import json
from typing import Any

from tests.dialects.live_requests.answers import (
    LIBRARY,
    Call,
    Live,
    body,
    function,
    said_by_tools,
    says,
)


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
