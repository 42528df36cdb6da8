"""The Chat Completions API, tested with OpenAI's own client."""

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest

from harness.serve import Serving

Serve = Callable[[str], Serving]

TOOL = {
    "type": "function",
    "function": {"name": "find", "description": "Finds.", "parameters": {"type": "object"}},
}


def client(server: Serving, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.openai_url, api_key="any", **more)


def asked(server: Serving, text: str = "hi", **more: Any) -> Any:
    with client(server, max_retries=0) as sdk:
        messages = [{"role": "user", "content": text}]
        done = sdk.chat.completions.create(**{"model": "gpt-4o", "messages": messages, **more})
        return list(done) if more.get("stream") else done


def chunks(server: Serving, **more: Any) -> list[Any]:
    return list(asked(server, stream=True, **more))


def test_a_reply_is_a_completion(serve: Serve) -> None:
    server = serve("llm: [{reply: Refund issued., usage: {input_tokens: 120, output_tokens: 9}}]")
    completion = asked(server)
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("Refund issued.", "stop")
    assert (completion.id, completion.model, completion.created) == ("chatcmpl-1", "gpt-4o", 0)
    assert completion.usage.model_dump(include={"prompt_tokens", "completion_tokens", "total_tokens"}) == {
        "prompt_tokens": 120,
        "completion_tokens": 9,
        "total_tokens": 129,
    }


def test_usage_that_the_stub_lacks_is_a_count_of_words(serve: Serve) -> None:
    usage = asked(serve("llm: [Refund issued today.]"), "I was charged twice").usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (4, 3)


def test_the_async_client_is_answered_as_well(serve: Serve) -> None:
    server = serve("llm: [{reply: one, times: any}]")

    async def both() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="any") as sdk:
            messages: Any = [{"role": "user", "content": "hi"}]
            calls = [sdk.chat.completions.create(model="gpt-4o", messages=messages) for _ in range(2)]
            return [done.choices[0].message.content for done in await asyncio.gather(*calls)]

    assert asyncio.run(both()) == ["one", "one"]


def test_tool_calls_have_their_ids_or_made_up_ones(serve: Serve) -> None:
    server = serve("llm: [{tool_calls: [{name: find, args: {q: pears}, id: mine}, {name: find}]}]")
    [choice] = asked(server, tools=[TOOL]).choices
    calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    assert calls == [("mine", "find", '{"q":"pears"}'), ("call_1", "find", "{}")]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)


def test_chunks_are_streamed_as_given(serve: Serve) -> None:
    streamed = chunks(serve("llm: [{chunks: [Ref, und, ' issued']}]"))
    assert [chunk.choices[0].delta.content for chunk in streamed] == ["", "Ref", "und", " issued", None]
    assert streamed[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in streamed] == [None] * 4 + ["stop"]


def test_a_reply_without_chunks_is_streamed_in_a_few_pieces(serve: Serve) -> None:
    text = "one two three four five six  seven eight nine"
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks(serve(f"llm: [{{reply: {text!r}}}]"))]
    said = [piece for piece in pieces if piece]
    assert "".join(said) == text
    assert 1 < len(said) <= 4


def test_usage_is_streamed_when_it_is_asked_for(serve: Serve) -> None:
    server = serve("llm: [{reply: one two, times: any}]")
    *_, last = chunks(server, stream_options={"include_usage": True})
    assert (last.choices, last.usage.completion_tokens) == ([], 2)
    assert all(chunk.usage is None for chunk in chunks(server))


def test_tool_calls_are_streamed_piece_by_piece(serve: Serve) -> None:
    server = serve("llm: [{reply: Looking., tool_calls: [{name: find, args: {q: pears}}, {name: stop}]}]")
    found: dict[int, list[str]] = {}
    for chunk in chunks(server, tools=[TOOL]):
        for call in chunk.choices[0].delta.tool_calls or ():
            if call.id:
                found[call.index] = [call.id, call.function.name]
            found[call.index].append(call.function.arguments)
    assert [(*call[:2], "".join(call[2:])) for call in found.values()] == [
        ("call_1", "find", '{"q":"pears"}'),
        ("call_2", "stop", "{}"),
    ]
    assert len(found[0]) > 4


@pytest.mark.parametrize(
    ("written", "sent"),
    [("length", "length"), ("max_tokens", "length"), ("end_turn", "stop"), ("tool_use", "tool_calls")],
)
def test_finish_reasons_have_the_names_of_the_provider(serve: Serve, written: str, sent: str) -> None:
    server = serve(f"llm: [{{reply: one, finish_reason: {written}}}]")
    assert asked(server).choices[0].finish_reason == sent


def test_matchers_see_the_request_as_in_a_run(serve: Serve) -> None:
    server = serve("""
llm:
  - {reply: by model, model: o3*}
  - {reply: by tools, when: 'request.tools.exists(t, t.name == "find" && t.schema.type == "object")'}
  - {reply: by params, when: 'has(request.params.temperature) && request.params.temperature == 0.5'}
  - {reply: by format, when: 'request.response_format != null && request.response_format.type == "json_object"'}
  - {reply: by prompt, when: 'request.prompt == "hi" && request.messages[0].type == "system"'}
  - {reply: by provider, when: 'request.provider == "openai" && request.model == "gpt-4o"'}
""")
    system = [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}]
    requests: list[dict[str, Any]] = [
        {"messages": [*system, {"role": "user", "content": "hi"}]},
        {"response_format": {"type": "json_object"}},
        {"temperature": 0.5},
        {"tools": [TOOL]},
        {"model": "o3-mini"},
        {},
    ]
    said = [asked(server, **more).choices[0].message.content for more in requests]
    assert said == [f"by {what}" for what in ("prompt", "format", "params", "tools", "model", "provider")]
    assert server.unused() == []


def test_a_conversation_with_tools_reaches_the_stubs_as_messages(serve: Serve) -> None:
    server = serve("llm: [done]")
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q":"pears"}'}}
    spoilt = {"id": "c2", "type": "function", "function": {"name": "find", "arguments": '{"q":'}}
    asked(
        server,
        messages=[
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "find "}, {"type": "text", "text": "pears"}],
            },
            {"role": "assistant", "content": None, "tool_calls": [call, spoilt]},
            {"role": "tool", "tool_call_id": "c1", "content": "three"},
        ],
    )
    [request] = server.requests
    assert request.effect is not None
    seen = request.effect.request()["messages"]
    assert [message["type"] for message in seen] == ["system", "human", "ai", "tool"]
    assert seen[1]["content"] == "find pears"
    assert seen[2]["tool_calls"] == [{"name": "find", "args": {"q": "pears"}, "id": "c1"}]
    assert (seen[3]["tool_call_id"], seen[3]["content"]) == ("c1", "three")


def test_node_matchers_always_match(serve: Serve) -> None:
    server = serve("llm: {classify: [billing], answer: [Refund issued.]}")
    assert [asked(server).choices[0].message.content for _ in range(2)] == ["billing", "Refund issued."]


def test_the_models_that_stubs_name_are_listed(serve: Serve) -> None:
    server = serve("llm: [{reply: a, model: gpt-4o}, {reply: b, model: 'o3*'}, {reply: c, model: gpt-4o}]")
    with client(server) as sdk:
        assert [model.id for model in sdk.models.list()] == ["gpt-4o"]


def test_requests_are_logged_with_their_answers(serve: Serve) -> None:
    server = serve("llm: [billing]")
    asked(server)
    with pytest.raises(openai.BadRequestError):
        asked(server)
    lines = [str(request) for request in server.requests]
    asker = "POST /v1/chat/completions gpt-4o (OpenAI/Python) -> "
    assert lines[0].startswith(f"{asker}llm: reply: 'billing' (")
    assert lines[0].endswith("one.scenario.yaml:5:9)")
    assert lines[1].startswith(f"{asker}nothing answers (nearest stub: ")


def test_an_unanswered_call_has_the_error_of_a_run_and_is_not_retried(serve: Serve) -> None:
    server = serve("llm: [{reply: one, model: o3}]")
    with client(server) as sdk, pytest.raises(openai.BadRequestError) as raised:
        sdk.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "where is it?"}])
    assert raised.value.code == "unscripted_call"
    for part in ("nothing answers the call of model 'gpt-4o'", "human: where is it?", "not 'o3'"):
        assert part in str(raised.value)
    assert len(server.requests) == 1


def test_latency_is_really_waited(serve: Serve) -> None:
    server = serve("llm: [{reply: late, latency: 30}]")
    with client(server, max_retries=0, timeout=0.2) as sdk, pytest.raises(openai.APITimeoutError):
        sdk.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])
