"""In live mode models and servers are asked what sherma 1.8 asks them. The bodies are theirs.

`stream: false`, which some leave out, is what they mean.
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
from tests.dialects.live_requests.manifest import sherma

USE_ALL = "use_tools_from_registry: true"

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
