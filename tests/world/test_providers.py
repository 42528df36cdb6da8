"""Models called through the real clients of their providers, on a real server."""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from harness.dialects.kit.tool_calls import to_ai_message
from harness.errors import KeyMissing, UnscriptedCall
from harness.graph.effects import LLMCall
from harness.world.failures import MalformedAnswerError
from harness.world.providers import Access, is_down
from tests.world.loopback import CannedReply, Loopback, loopback, refusing_url, silent_url
from tests.world.providers import (
    NO_DELAY,
    WEATHER,
    ask,
    ask_with,
    body,
    call,
    claude,
    completion,
    completion_stream,
    message,
    message_stream,
    refusal,
    text,
)

# ------------------------------------------------------------ replies


def test_a_reply_of_openai() -> None:
    with loopback(completion("hi")) as server:
        reply = ask(call(server))
        (asked,) = server.asked
    assert (reply.text, reply.tool_calls, reply.finish_reason, reply.chunks) == ("hi", [], "stop", ())
    assert reply.usage == {"input_tokens": 7, "output_tokens": 3}
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.headers["authorization"] == "Bearer sk-openai"
    assert asked.json["model"] == "gpt-test"
    assert asked.json["messages"] == [{"role": "user", "content": "hello"}]


def test_a_reply_of_anthropic() -> None:
    with loopback(message(text("h"), text("i"))) as server:
        reply = ask(claude(server))
        (asked,) = server.asked
    assert (reply.text, reply.finish_reason) == ("hi", "end_turn")
    assert reply.usage == {"input_tokens": 7, "output_tokens": 3}
    assert asked.path == "/v1/messages"
    assert "sk-anthropic" in str(asked.headers)
    assert asked.json["messages"] == [{"role": "user", "content": "hello"}]


def test_tool_calls_of_openai_are_those_a_dialect_makes_a_message_of() -> None:
    with loopback(completion(None, [("weather", '{"city": "Kiel"}'), ("weather", "")])) as server:
        reply = ask(call(server, tools=(WEATHER,)))
    assert reply.tool_calls == [
        {"id": "call-0", "name": "weather", "args": {"city": "Kiel"}},
        {"id": "call-1", "name": "weather", "args": {}},
    ]
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    made = to_ai_message(reply, lambda prefix: prefix)
    assert [(made_call["id"], made_call["args"]) for made_call in made.tool_calls] == [
        ("call-0", {"city": "Kiel"}),
        ("call-1", {}),
    ]


def test_tool_calls_of_anthropic() -> None:
    use = {"type": "tool_use", "id": "use-1", "name": "weather", "input": {"city": "Kiel"}}
    with loopback(message(text("Let me see."), use, reason="tool_use")) as server:
        reply = ask(claude(server, tools=(WEATHER,)))
    assert reply.tool_calls == [{"id": "use-1", "name": "weather", "args": {"city": "Kiel"}}]
    assert (reply.text, reply.finish_reason) == ("Let me see.", "tool_use")


MALFORMED = ['{"city": "Kie', "[1]", "Kiel"]


@pytest.mark.parametrize("arguments", MALFORMED)
def test_arguments_that_are_no_json_object_are_an_error_that_shows_them(arguments: str) -> None:
    with (
        loopback(completion(None, [("weather", arguments)])) as server,
        pytest.raises(MalformedAnswerError) as raised,
    ):
        ask(call(server, tools=(WEATHER,)))
    assert repr(arguments) in str(raised.value)


# ------------------------------------------------------------ streams


def test_a_stream_of_openai_keeps_its_chunks() -> None:
    stream = completion_stream({"role": "assistant", "content": ""}, {"content": "h"}, {"content": "i"})
    with loopback(stream) as server:
        reply = ask(call(server, params={"stream": True}))
        asked = server.asked[0].json
    assert (reply.text, reply.chunks, reply.finish_reason) == ("hi", ("h", "i"), "stop")
    assert reply.usage == {"input_tokens": 7, "output_tokens": 3}
    assert (asked["stream"], asked["stream_options"]) == (True, {"include_usage": True})


def test_a_stream_of_anthropic_keeps_its_chunks() -> None:
    with loopback(message_stream("h", "i")) as server:
        reply = ask(claude(server, params={"stream": True}))
        assert server.asked[0].json["stream"] is True
    assert (reply.text, reply.chunks, reply.finish_reason) == ("hi", ("h", "i"), "end_turn")
    assert reply.usage == {"input_tokens": 7, "output_tokens": 3}


def tool_stream(*arguments: str) -> CannedReply:
    first = {"index": 0, "id": "call-1", "function": {"name": "weather", "arguments": ""}}
    deltas = [{"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in arguments]
    return completion_stream({"tool_calls": [first]}, *deltas, reason="tool_calls")


def test_a_tool_call_in_parts_is_put_together() -> None:
    with loopback(tool_stream('{"ci', 'ty": "Kiel"}')) as server:
        reply = ask(call(server, tools=(WEATHER,), params={"stream": True}))
    assert reply.tool_calls == [{"id": "call-1", "name": "weather", "args": {"city": "Kiel"}}]
    assert (reply.chunks, reply.finish_reason) == ((), "tool_calls")


@pytest.mark.parametrize("arguments", MALFORMED)
def test_arguments_that_break_off_in_a_stream_are_not_completed(arguments: str) -> None:
    with loopback(tool_stream(arguments)) as server, pytest.raises(MalformedAnswerError, match="weather"):
        ask(call(server, tools=(WEATHER,), params={"stream": True}))


def test_a_stream_that_is_not_wanted_is_none() -> None:
    assert not body(params={"stream": False}).get("stream")


# ------------------------------------------------------------ failures


def test_a_call_of_a_busy_provider_is_retried() -> None:
    with loopback(refusal(429, **NO_DELAY), completion("hi")) as server:
        assert ask(call(server)).text == "hi"
        assert len(server.asked) == 2


def test_how_often_it_is_asked_again_is_a_parameter() -> None:
    with loopback(refusal(429, **NO_DELAY)) as server:
        with pytest.raises(openai.RateLimitError):
            ask(call(server, params={"max_retries": 0}))
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
    ],
)
@pytest.mark.parametrize(("build", "client"), [(call, openai), (claude, anthropic)])
def test_exceptions_of_the_client_keep_their_class_names(
    build: Callable[..., LLMCall], client: Any, status: int, name: str
) -> None:
    with loopback(refusal(status, **NO_DELAY)) as server, pytest.raises(client.APIError) as raised:
        ask(build(server))
    assert type(raised.value) is getattr(client, name)
    assert not is_down(raised.value)


def test_a_refusal_that_langchain_warns_of_is_raised_all_the_same() -> None:
    refused = CannedReply(json={"error": {"message": "Invalid schema for response_format"}}, status=400)
    with warnings.catch_warnings(), loopback(refused) as server:
        warnings.simplefilter("error")
        with pytest.raises(openai.BadRequestError):
            ask(call(server))


@pytest.mark.parametrize(("build", "client"), [(call, openai), (claude, anthropic)])
def test_a_provider_that_does_not_listen_is_down(build: Callable[..., LLMCall], client: Any) -> None:
    what = {"base_url": refusing_url(), "params": {"max_retries": 0}}
    with pytest.raises(client.APIConnectionError) as raised:
        ask(build(Loopback([]), **what))
    assert type(raised.value) is client.APIConnectionError
    assert is_down(raised.value)


@pytest.mark.parametrize(("build", "client"), [(call, openai), (claude, anthropic)])
def test_a_provider_that_is_slow_is_not_down(build: Callable[..., LLMCall], client: Any) -> None:
    with silent_url() as url, pytest.raises(client.APITimeoutError) as raised:
        ask(build(Loopback([]), base_url=url, params={"timeout": 0.1, "max_retries": 0}))
    assert type(raised.value) is client.APITimeoutError
    assert not is_down(raised.value)


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError(), ConnectionError(), KeyMissing("no")])
def test_other_errors_do_not_tell_that_a_provider_is_down(error: Exception) -> None:
    assert not is_down(error)


@pytest.mark.parametrize(("build", "package"), [(call, "openai"), (claude, "anthropic")])
def test_an_error_of_the_harness_passes_the_client_unchanged(
    build: Callable[..., LLMCall], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unscripted = UnscriptedCall("something", None)

    async def refuse(*_: Any) -> Any:
        raise unscripted

    monkeypatch.setattr(transport_of(package), "handle_async_request", refuse)
    with pytest.raises(UnscriptedCall) as raised:
        ask(build(Loopback([]), params={"max_retries": 0}, base_url="http://here"))
    assert raised.value is unscripted


# ------------------------------------------------------------ replays and runs


def transport_of(package: str) -> Any:
    """Return the class of the transport that the clients of a package use."""
    (client,) = sys.modules[package].DefaultAsyncHttpxClient.__bases__
    return sys.modules[client.__module__.partition(".")[0]].AsyncHTTPTransport


@pytest.mark.parametrize(
    ("provider", "answer", "package"),
    [("openai", completion("hi"), "openai"), ("anthropic", message(text("hi")), "anthropic")],
)
def test_a_replay_needs_no_key_and_reads_no_other_environment(
    provider: str, answer: CannedReply, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for prefix in ("OPENAI", "ANTHROPIC"):
        for name in ("API_KEY", "BASE_URL", "API_BASE", "API_URL", "PROXY"):
            monkeypatch.setenv(f"{prefix}_{name}", "http://elsewhere.invalid")
    for name in ("HTTPS_PROXY", "LANGSMITH_GATEWAY"):
        monkeypatch.setenv(name, "http://elsewhere.invalid")
    monkeypatch.setenv("LC_OUTPUT_VERSION", "v1")
    transport = transport_of(package)
    requests = []

    async def play(_: Any, request: Any) -> Any:
        requests.append(request)
        module = sys.modules[transport.__module__.partition(".")[0]]
        return module.Response(200, json=answer.json)

    monkeypatch.setattr(transport, "handle_async_request", play)
    for _ in range(2):  # on a loop of its own each
        assert ask_with(Access({}, replayed=True), call(provider=provider)).text == "hi"
    hosts = {request.url.host for request in requests}
    assert hosts == {f"api.{provider}.com"}
    assert "elsewhere" not in str([request.headers for request in requests])


def test_runs_one_after_another_have_loops_and_connections_of_their_own() -> None:
    with loopback(completion("hi")) as server:
        access = Access({"OPENAI_API_KEY": "k"})
        assert [ask_with(access, call(server), call(server)).text for _ in range(2)] == ["hi", "hi"]


def test_no_tracer_and_no_callback_gets_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    import langsmith.client

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a tracing client was made")

    monkeypatch.setattr(langsmith.client.Client, "__init__", refuse)
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "x")
    with loopback(completion("hi")) as server:
        assert ask(call(server)).text == "hi"


def test_a_key_is_in_no_text_about_a_call() -> None:
    asked = call(api_key="sk-secret", params={"temperature": 1})
    assert "sk-secret" not in f"{asked!r} {asked.recorded()} {asked.request()}"
