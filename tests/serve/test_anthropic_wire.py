"""The Messages API, tested with Anthropic's own client."""

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from harness.serve import Serving

Serve = Callable[[str], Serving]


def asked(server: Serving, said: Any = "hi", **more: Any) -> Any:
    with anthropic.Anthropic(base_url=server.anthropic_url, api_key="any", max_retries=0) as sdk:
        messages: list[Any] = said if isinstance(said, list) else [{"role": "user", "content": said}]
        done = sdk.messages.create(model="claude-x", max_tokens=100, messages=messages, **more)
        return list(done) if more.get("stream") else done


def test_a_reply_is_a_message(serve: Serve) -> None:
    server = serve("llm: [{reply: Refund issued., usage: {input_tokens: 12, output_tokens: 3}}]")
    message = asked(server)
    assert [block.text for block in message.content] == ["Refund issued."]
    assert (message.id, message.model, message.stop_reason) == ("msg_1", "claude-x", "end_turn")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (12, 3)


def test_the_async_client_is_answered_as_well(serve: Serve) -> None:
    server = serve("llm: [one two three]")

    async def streamed() -> tuple[list[str], anthropic.types.Message]:
        async with anthropic.AsyncAnthropic(base_url=server.anthropic_url, api_key="any") as sdk:
            messages: Any = [{"role": "user", "content": "hi"}]
            async with sdk.messages.stream(model="claude-x", max_tokens=9, messages=messages) as stream:
                return [text async for text in stream.text_stream], await stream.get_final_message()

    texts, message = asyncio.run(streamed())
    assert "".join(texts) == "one two three"
    assert len(texts) > 1
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 3)


def test_the_events_of_a_stream_come_in_their_order(serve: Serve) -> None:
    server = serve("llm: [{chunks: [Loo, king]}, {reply: Hm, tool_calls: [{name: find, args: {q: pears}}]}]")
    first = [event.type for event in asked(server, stream=True)]
    assert first == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    events = asked(server, stream=True)
    assert [event.index for event in events if event.type == "content_block_start"] == [0, 1]
    parts = [e.delta.partial_json for e in events if e.type == "content_block_delta" and e.index == 1]
    assert "".join(parts) == '{"q":"pears"}'
    assert len(parts) > 2
    assert next(e.delta.stop_reason for e in events if e.type == "message_delta") == "tool_use"


def test_tool_calls_are_blocks(serve: Serve) -> None:
    server = serve("llm: [{tool_calls: [{name: find, args: {q: pears}, id: mine}, {name: find}]}]")
    message = asked(server, tools=[{"name": "find", "input_schema": {"type": "object"}}])
    assert [(block.type, block.id, block.input) for block in message.content] == [
        ("tool_use", "mine", {"q": "pears"}),
        ("tool_use", "call_1", {}),
    ]
    assert message.stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("length", "max_tokens"),
        ("stop", "end_turn"),
        ("tool_calls", "tool_use"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_finish_reasons_have_the_names_of_the_provider(serve: Serve, written: str, sent: str) -> None:
    assert asked(serve(f"llm: [{{reply: one, finish_reason: {written}}}]")).stop_reason == sent


def test_a_conversation_with_tools_reaches_the_stubs_as_messages(serve: Serve) -> None:
    server = serve("""
llm:
  - reply: done
    when: 'request.provider == "anthropic" && request.tools[0].schema.type == "object" && request.params.top_k == 5'
""")
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "three"}]}
    failed = {"type": "tool_result", "tool_use_id": "c2", "content": "gone", "is_error": True}
    asked(
        server,
        [
            {"role": "user", "content": "find pears"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": "pears"}},
                ],
            },
            {"role": "user", "content": [result, failed, {"type": "text", "text": "and now?"}]},
        ],
        system=[{"type": "text", "text": "Be brief."}],
        tools=[{"name": "find", "input_schema": {"type": "object"}}],
        extra_body={"top_k": 5},
    )
    [request] = server.requests
    assert request.effect is not None
    seen = request.effect.request()["messages"]
    assert [message["type"] for message in seen] == ["system", "human", "ai", "tool", "tool", "human"]
    assert seen[0]["content"] == "Be brief."
    assert (seen[2]["content"], seen[2]["tool_calls"][0]["args"]) == ("Looking.", {"q": "pears"})
    assert (seen[3]["content"], seen[4]["status"], seen[5]["content"]) == ("three", "error", "and now?")


def test_the_models_that_stubs_name_are_listed(serve: Serve) -> None:
    server = serve("llm: [{reply: a, model: claude-x}]")
    with anthropic.Anthropic(base_url=server.anthropic_url, api_key="any") as sdk:
        assert [model.id for model in sdk.models.list()] == ["claude-x"]


def test_a_call_that_nothing_answers_is_a_bad_request(serve: Serve) -> None:
    with pytest.raises(anthropic.BadRequestError, match="nothing answers the call of model 'claude-x'"):
        asked(serve("llm: []"))
