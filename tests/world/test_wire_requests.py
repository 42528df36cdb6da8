"""The same request in the format of each provider is the same call for stubs."""

import json
from typing import Any

import pytest

from harness.graph.effects import LLMCall
from harness.graph.messages import message_text
from harness.world.wire.bedrock_converse import event, framing
from harness.world.wire.format import Refusal
from harness.world.wire.http import format_of_path, request_json

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ANSWER = {"title": "Sky", "type": "object", "properties": {"sky": {"type": "string"}}}

GOOGLE = "https://generativelanguage.googleapis.com/v1beta/models/far:generateContent"
BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/far%3A0/converse"
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gemini": (
        GOOGLE,
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Rome, "}, {"text": "please"}]},
                {
                    "role": "model",
                    "parts": [{"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}}],
                },
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"id": "c1", "name": "weather", "response": {"result": "sunny"}}}
                    ],
                },
            ],
            "tools": [
                {"functionDeclarations": [{"name": "weather", "parameters": {**SCHEMA, "type": "OBJECT"}}]}
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
            "generationConfig": {"temperature": 0.5, "responseJsonSchema": ANSWER},
        },
    ),
    "gemini, in snake case": (
        GOOGLE,
        {
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"parts": [{"text": "Rome, please"}]},
                {
                    "role": "model",
                    "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}}],
                },
                {
                    "parts": [
                        {
                            "function_response": {
                                "id": "c1",
                                "name": "weather",
                                "response": {"output": "sunny"},
                            }
                        }
                    ]
                },
            ],
            "tools": [{"function_declarations": [{"name": "weather", "parameters_json_schema": SCHEMA}]}],
            "tool_config": {
                "function_calling_config": {"mode": "ANY", "allowed_function_names": ["weather"]}
            },
            "generation_config": {"temperature": 0.5, "response_schema": ANSWER},
        },
    ),
    "bedrock": (
        BEDROCK,
        {
            "system": [{"text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [{"text": "Rome, please"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Rome"}}}
                    ],
                },
                {
                    "role": "user",
                    "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "sunny"}]}}],
                },
            ],
            "toolConfig": {
                "tools": [
                    {"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}},
                    {"cachePoint": {}},
                ],
                "toolChoice": {"tool": {"name": "weather"}},
            },
            "inferenceConfig": {"temperature": 0.5},
            "outputConfig": {
                "textFormat": {"structure": {"jsonSchema": {"name": "Sky", "schema": json.dumps(ANSWER)}}}
            },
        },
    ),
    "ollama": (
        "http://localhost:11434/api/chat",
        {
            "model": "far",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Rome, please"},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "c1", "function": {"name": "weather", "arguments": {"city": "Rome"}}}
                    ],
                },
                {"role": "tool", "content": "sunny", "tool_call_id": "c1"},
            ],
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
            "options": {"temperature": 0.5},
            "format": ANSWER,
        },
    ),
}


def read(url: str, body: dict[str, Any]) -> LLMCall:
    wire = format_of_path(url)
    assert wire is not None
    return wire.read(request_json(url, json.dumps(body).encode()))


@pytest.mark.parametrize("provider", REQUESTS)
def test_a_request_means_the_same_at_each_provider(provider: str) -> None:
    call = read(*REQUESTS[provider])
    assert call.name.partition(":")[0] == "far"
    assert call.provider == provider.partition(",")[0]
    said = [(each.type, message_text(each)) for each in call.messages]
    assert said == [("system", "Be brief."), ("human", "Rome, please"), ("ai", ""), ("tool", "sunny")]
    answered: Any = call.messages[2:]
    assert [(one["id"], one["name"], one["args"]) for one in answered[0].tool_calls] == [
        ("c1", "weather", {"city": "Rome"})
    ]
    assert answered[1].tool_call_id == "c1"
    assert [(tool.name, tool.schema) for tool in call.tools] == [("weather", SCHEMA)]
    assert call.params["temperature"] == 0.5
    assert call.response_format == {"type": "json_schema", "json_schema": {"name": "Sky", "schema": ANSWER}}
    assert call.forced_tool == ("" if provider == "ollama" else "weather")  # Ollama has no such choice


@pytest.mark.parametrize(
    ("url", "body", "model", "streamed"),
    [
        (GOOGLE, {}, "far", False),
        (GOOGLE.replace("generate", "streamGenerate") + "?alt=sse", {}, "far", True),
        (BEDROCK, {}, "far:0", False),
        (f"{BEDROCK}-stream", {}, "far:0", True),
        ("http://localhost:11434/api/chat", {"model": "far"}, "far", True),
        ("http://localhost:11434/api/chat", {"model": "far", "stream": False}, "far", False),
        ("https://it.openai.azure.com/openai/deployments/far/chat/completions?a=b", {}, "far", False),
    ],
)
def test_the_address_may_name_the_model_and_ask_for_a_stream(
    url: str, body: dict[str, Any], model: str, streamed: bool
) -> None:
    found = request_json(url, json.dumps(body).encode())
    assert (found["model"], found.get("stream", False)) == (model, streamed)


def test_several_candidates_are_refused() -> None:
    with pytest.raises(Refusal, match="'candidateCount' must be 1"):
        read(GOOGLE, {"contents": [{"parts": []}], "generationConfig": {"candidateCount": 2}})


def test_events_of_aws_are_read_up_to_the_first_that_is_damaged() -> None:
    first, second = event("one", {"a": "ü"}), event("two", {})
    assert framing.parts(first + second) == [{"one": {"a": "ü"}}, {"two": {}}]
    assert framing.parts(first + second[:4] + b"\xff" + second[5:]) == [{"one": {"a": "ü"}}]
    assert framing.parts(b'{"message": "Too many requests"}') == []


def test_botocore_reads_these_events_and_refuses_a_damaged_one() -> None:
    eventstream = pytest.importorskip("botocore.eventstream")
    buffer = eventstream.EventStreamBuffer()
    buffer.add_data(event("one", {"a": 1}))
    (found,) = buffer
    assert found.to_response_dict() == {
        "status_code": 200,
        "headers": {":event-type": "one", ":content-type": "application/json", ":message-type": "event"},
        "body": b'{"a":1}',
    }
    buffer.add_data(framing.cut(event("one", {})))
    with pytest.raises(eventstream.ChecksumMismatch):
        next(buffer)
