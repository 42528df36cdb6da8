"""Providers on loopback, and calls of their models, for tests of the live clients."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.world.providers import Access, Providers
from tests.world.loopback import CannedReply, Loopback, ReceivedRequest, loopback

HELLO = (HumanMessage("hello"),)

WEATHER = ToolSpec(
    "weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)

NO_DELAY = {"retry-after-ms": "1"}


def completion(text: str | None = "hi", calls: Sequence[tuple[str, str]] = (), **more: Any) -> CannedReply:
    """Return an answer of OpenAI's chat completions."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"call-{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    reason = "tool_calls" if calls else "stop"
    body = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, **more}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    return CannedReply(json=body)


def completion_stream(*deltas: Mapping[str, Any], reason: str = "stop") -> CannedReply:
    """Return the same answer in chunks, with the usage at the end."""

    def event(choices: Sequence[Mapping[str, Any]], usage: Any = None) -> dict[str, Any]:
        frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return {**frame, "choices": choices, "usage": usage}

    events = [event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    events.append(event([{"index": 0, "delta": {}, "finish_reason": reason}]))
    events.append(event([], {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}))
    return CannedReply(events=[*events, "[DONE]"])


def message(*content: Mapping[str, Any], reason: str = "end_turn") -> CannedReply:
    """Return an answer of Anthropic's messages."""
    return CannedReply(
        json={
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": list(content),
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 7, "output_tokens": 3},
        }
    )


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def message_stream(*parts: str) -> CannedReply:
    start = {**message().json, "stop_reason": None, "usage": {"input_tokens": 7, "output_tokens": 1}}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
        for part in parts
    ]
    return CannedReply(
        events=[
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": text("")},
            *deltas,
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"input_tokens": 7, "output_tokens": 3},
            },
            {"type": "message_stop"},
        ]
    )


def refusal(status: int, **headers: str) -> CannedReply:
    return CannedReply(json={"error": {"message": "no", "type": "test"}}, status=status, headers=headers)


def call(server: Loopback | None = None, /, **what: Any) -> LLMCall:
    """Return a call of an OpenAI model, at this server if the manifest has its address."""
    base_url = f"{server.url}/v1" if server else None
    given = {"name": "gpt-test", "provider": "openai", "messages": HELLO, "base_url": base_url}
    return LLMCall(**{**given, **what})


def claude(server: Loopback, **what: Any) -> LLMCall:
    return call(**{"name": "claude-test", "provider": "anthropic", "base_url": server.url, **what})


def ask(asked: LLMCall, replayed: bool = False, **environment: str) -> LLMReply:
    """Return the reply, given keys for both providers and the variables in `environment`."""
    keys = {"OPENAI_API_KEY": "sk-openai", "ANTHROPIC_API_KEY": "sk-anthropic"}
    return ask_with(Access({**keys, **environment}, replayed), asked)


def ask_with(access: Access, *calls: LLMCall) -> LLMReply:
    """Return the reply to the last of these calls."""

    async def main() -> LLMReply:
        providers = Providers(access)
        try:
            return [await providers.ask(each) for each in calls][-1]
        finally:
            await providers.close()

    return asyncio.run(main())


def sent(build: Callable[..., LLMCall] = call, **what: Any) -> ReceivedRequest:
    """Return the request that is sent for a call."""
    with loopback(message(text("hi")) if build is claude else completion()) as server:
        ask(build(server, **what))
        return server.asked[0]


def body(build: Callable[..., LLMCall] = call, **what: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = sent(build, **what).json
    return parsed


def needs(package: str) -> None:
    """Skip a test whose client is not installed. The client is not imported here: it may read variables then."""
    try:
        found = find_spec(package) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        pytest.skip(f"{package} is not installed")
