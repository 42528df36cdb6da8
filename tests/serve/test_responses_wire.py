"""The Responses API, tested with OpenAI's own client."""

from collections.abc import Callable
from typing import Any

import openai
import pytest

from harness.serve import Serving

Serve = Callable[[str], Serving]


def asked(server: Serving, said: Any = "hi", **more: Any) -> Any:
    with openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as sdk:
        done = sdk.responses.create(model="gpt-4o", input=said, **more)
        return list(done) if more.get("stream") else done


def test_a_reply_is_a_response(serve: Serve) -> None:
    response = asked(serve("llm: [{reply: Refund issued., usage: {input_tokens: 12, output_tokens: 3}}]"))
    assert (response.id, response.status, response.output_text) == ("resp_1", "completed", "Refund issued.")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (12, 3)


def test_tool_calls_are_items_of_the_output(serve: Serve) -> None:
    response = asked(serve("llm: [{tool_calls: [{name: find, args: {q: pears}}]}]"))
    [call] = response.output
    assert (call.type, call.call_id, call.name, call.arguments) == (
        "function_call",
        "call_1",
        "find",
        '{"q":"pears"}',
    )


def test_an_answer_that_was_cut_short_is_incomplete(serve: Serve) -> None:
    response = asked(serve("llm: [{reply: Refu, finish_reason: length}]"))
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_text_and_tool_calls_are_streamed(serve: Serve) -> None:
    server = serve("llm: [{reply: One moment., tool_calls: [{name: find, args: {q: pears}}]}]")
    events = asked(server, stream=True)
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    args = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
    assert (text, args) == ("One moment.", '{"q":"pears"}')
    assert events[-1].response.output_text == "One moment."


def test_items_reach_the_stubs_as_messages(serve: Serve) -> None:
    server = serve("""
llm: [{reply: done, when: 'request.response_format.json_schema.name == "answer" && request.params.top_p == 0.5'}]
""")
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "find pears"}]},
        {"type": "reasoning", "id": "r1", "summary": []},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"q":"pears"}'},
        {"type": "function_call", "call_id": "c2", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "three"},
        {"type": "function_call_output", "call_id": "c2", "output": "none"},
    ]
    schema = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}
    asked(server, items, instructions="Be brief.", text={"format": schema}, top_p=0.5)
    [request] = server.requests
    assert request.effect is not None
    seen = request.effect.request()["messages"]
    assert [message["type"] for message in seen] == ["system", "human", "ai", "tool", "tool"]
    assert seen[2]["content"] == "Looking."
    assert [call["id"] for call in seen[2]["tool_calls"]] == ["c1", "c2"]
    assert [message["content"] for message in seen[3:]] == ["three", "none"]


def test_errors_are_those_of_openai(serve: Serve) -> None:
    with pytest.raises(openai.RateLimitError, match="slow down"):
        asked(serve("llm: [{error: {kind: rate_limit, message: slow down}}]"))
