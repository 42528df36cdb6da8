"""The requests of the live clients: parameters, schemas of answers, conversations."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from harness.errors import ProviderError
from harness.graph.effects import LLMCall
from harness.graph.messages import MessageLog
from tests.world.loopback import CannedReply, loopback
from tests.world.providers import WEATHER, ask, body, call, claude, completion, completion_stream, sent

# ------------------------------------------------------------ parameters


def test_parameters_reach_openai() -> None:
    params = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 8, "stop": "END", "seed": 7, "user": "u"}
    asked = body(params={**params, "metadata": {"run": "1"}, "repetition_penalty": 1.5})
    assert asked.pop("max_completion_tokens") == 8
    assert asked.pop("stop") == ["END"]
    assert asked.items() >= {"temperature": 0.5, "top_p": 0.9, "seed": 7, "user": "u"}.items()
    assert (asked["metadata"], asked["repetition_penalty"]) == ({"run": "1"}, 1.5)


def test_parameters_reach_anthropic() -> None:
    asked = body(claude, params={"temperature": 0.5, "top_k": 4, "max_tokens": 8, "stop": "END", "new": 1})
    expected = {"temperature": 0.5, "top_k": 4, "max_tokens": 8, "stop_sequences": ["END"], "new": 1}
    assert asked.items() >= {key: value for key, value in expected.items() if key != "stop_sequences"}.items()
    assert asked["stop_sequences"] == ["END"]


def test_servers_that_imitate_openai_are_given_the_names_of_the_manifest() -> None:
    asked = body(provider="ollama", params={"max_tokens": 8, "top_k": 3})
    assert asked.items() >= {"max_tokens": 8, "top_k": 3}.items()
    assert "max_completion_tokens" not in asked


def test_parameters_of_the_connection_are_not_sent() -> None:
    what = {"api_base": "x", "base_url": "x", "api_key": "x", "timeout": 30, "num_retries": 1}
    assert body(params={**what, "extra_headers": {"x-team": "a"}}).keys() == body().keys()
    assert sent(params={"extra_headers": {"x-team": "a"}}).headers["x-team"] == "a"


@pytest.mark.parametrize("build", [call, claude])
def test_an_invalid_parameter_is_an_error(build: Callable[..., LLMCall]) -> None:
    with loopback(completion()) as server, pytest.raises(ProviderError) as raised:
        ask(build(server, params={"temperature": "warm"}))
    assert "temperature" in str(raised.value)
    assert "http" not in str(raised.value)


def test_tools_are_sent_as_they_are() -> None:
    (tool,) = body(tools=(WEATHER,))["tools"]
    assert tool == {
        "type": "function",
        "function": {
            "name": "weather",
            "description": WEATHER.description,
            "parameters": WEATHER.schema,
        },
    }
    (tool,) = body(claude, tools=(WEATHER,))["tools"]
    assert tool == {
        "name": "weather",
        "description": WEATHER.description,
        "input_schema": WEATHER.schema,
    }


# ------------------------------------------------------------ structured answers

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
NAMED = {"name": "answer", "description": "", "schema": SCHEMA}
OPENAI_FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("given", "form"), [(NAMED, {"type": "json_schema", "json_schema": NAMED}), (OPENAI_FORM, OPENAI_FORM)]
)
def test_a_schema_for_the_answer_reaches_openai(given: Any, form: Any, stream: bool) -> None:
    said = (
        completion_stream({"content": '{"n": 1'}) if stream else completion('{"n": 1', finish_reason="length")
    )
    with loopback(said) as server:
        # What the answer is worth is for the dialect to say, as is whether the tools fit.
        reply = ask(
            call(server, response_format=given, tools=(WEATHER,), params={"stream": stream, "seed": 1})
        )
        asked = server.asked[0].json
    assert (asked["response_format"], asked["seed"]) == (form, 1)
    assert reply.text == '{"n": 1'


def test_a_model_of_the_responses_api_gets_the_schema_in_its_form() -> None:
    body = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "o1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": '{"n": 1}', "annotations": []}],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 7,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 10,
        },
    }
    with loopback(CannedReply(json=body)) as server:
        reply = ask(call(server, name="gpt-5-codex", response_format=NAMED, params={"max_tokens": 8}))
        asked = server.asked[0]
    assert asked.path == "/v1/responses"
    assert asked.json["text"]["format"].items() >= {"type": "json_schema", "schema": SCHEMA}.items()
    assert asked.json["max_output_tokens"] == 8
    assert (reply.text, reply.usage) == ('{"n": 1}', {"input_tokens": 7, "output_tokens": 3})


@pytest.mark.parametrize("given", [NAMED, OPENAI_FORM])
def test_a_schema_for_the_answer_reaches_anthropic(given: Any) -> None:
    asked = body(claude, response_format=given)
    assert asked["output_config"]["format"] == {"type": "json_schema", "schema": SCHEMA}


def test_json_without_a_schema_is_a_mode_of_openai_alone() -> None:
    given = {"type": "json_object"}
    assert body(response_format=given)["response_format"] == given
    assert body(params={"response_format": given})["response_format"] == given
    assert "output_config" not in body(claude, response_format=given)


# ------------------------------------------------------------ conversations

TOOLS_USED: Sequence[BaseMessage] = (
    SystemMessage("Be brief."),
    HumanMessage("Weather?"),
    AIMessage("", tool_calls=[{"id": "c1", "name": "weather", "args": {"city": "Kiel"}}]),
    ToolMessage("rain", tool_call_id="c1", name="weather"),
    SystemMessage("Be kind."),
    HumanMessage("Well?"),
)


def test_a_conversation_with_tools_reaches_openai_in_its_order() -> None:
    asked = body(messages=MessageLog(TOOLS_USED))["messages"]
    assert [said["role"] for said in asked] == ["system", "user", "assistant", "tool", "system", "user"]
    assert asked[2]["tool_calls"][0]["id"] == asked[3]["tool_call_id"] == "c1"


def test_a_conversation_with_tools_reaches_anthropic_with_its_instructions_in_front() -> None:
    asked = body(claude, messages=MessageLog(TOOLS_USED), tools=(WEATHER,))
    assert asked["system"] == "Be brief.\n\nBe kind."
    assert [said["role"] for said in asked["messages"]] == ["user", "assistant", "user"]
    assert asked["messages"][1]["content"][0]["type"] == "tool_use"
    assert asked["messages"][2]["content"][0]["type"] == "tool_result"


def test_empty_instructions_are_not_sent_to_anthropic() -> None:
    assert "system" not in body(claude, messages=(SystemMessage(""), HumanMessage("hello")))
