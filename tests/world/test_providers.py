"""Models asked through the real clients of their providers, against a real server."""

import asyncio
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anthropic
import openai
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from harness.dialects.kit.messages import to_ai_message
from harness.errors import ExtraMissing, KeyMissing, ProviderError, UnscriptedCall
from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.graph.messages import MessageLog
from harness.world.failures import MalformedAnswerError
from harness.world.providers import Access, Providers, is_down
from tests.world.loopback import Asked, Loopback, Said, loopback, refusing_url, silent_url

HELLO = (HumanMessage("hello"),)

WEATHER = ToolSpec(
    "weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)

NO_DELAY = {"retry-after-ms": "1"}


# ------------------------------------------------------------ what servers say


def completion(text: str | None = "hi", calls: Sequence[tuple[str, str]] = (), **more: Any) -> Said:
    """An answer of OpenAI's chat completions."""
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
    return Said(json=body)


def completion_stream(*deltas: Mapping[str, Any], reason: str = "stop") -> Said:
    """The same, in parts, with the usage at the end."""

    def event(choices: Sequence[Mapping[str, Any]], usage: Any = None) -> dict[str, Any]:
        frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return {**frame, "choices": choices, "usage": usage}

    events = [event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    events.append(event([{"index": 0, "delta": {}, "finish_reason": reason}]))
    events.append(event([], {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}))
    return Said(events=[*events, "[DONE]"])


def message(*content: Mapping[str, Any], reason: str = "end_turn") -> Said:
    """An answer of Anthropic's messages."""
    return Said(
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


def message_stream(*parts: str) -> Said:
    start = {**message().json, "stop_reason": None, "usage": {"input_tokens": 7, "output_tokens": 1}}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
        for part in parts
    ]
    return Said(
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


def refusal(status: int, **headers: str) -> Said:
    return Said(json={"error": {"message": "no", "type": "test"}}, status=status, headers=headers)


# ------------------------------------------------------------ asking


def call(server: Loopback | None = None, /, **what: Any) -> LLMCall:
    """A call of an OpenAI model, at this server if the manifest says so."""
    base_url = f"{server.url}/v1" if server else None
    given = {"name": "gpt-test", "provider": "openai", "messages": HELLO, "base_url": base_url}
    return LLMCall(**{**given, **what})


def claude(server: Loopback, **what: Any) -> LLMCall:
    return call(**{"name": "claude-test", "provider": "anthropic", "base_url": server.url, **what})


def ask(asked: LLMCall, replayed: bool = False, **environment: str) -> LLMReply:
    """The reply, with a key for both providers and what `environment` has besides."""
    keys = {"OPENAI_API_KEY": "sk-openai", "ANTHROPIC_API_KEY": "sk-anthropic"}
    return ask_with(Access({**keys, **environment}, replayed), asked)


def ask_with(access: Access, *calls: LLMCall) -> LLMReply:
    """The reply to the last of these calls."""

    async def main() -> LLMReply:
        providers = Providers(access)
        try:
            return [await providers.ask(each) for each in calls][-1]
        finally:
            await providers.close()

    return asyncio.run(main())


def sent(build: Callable[..., LLMCall] = call, **what: Any) -> Asked:
    """The request that a call becomes."""
    with loopback(message(text("hi")) if build is claude else completion()) as server:
        ask(build(server, **what))
        return server.asked[0]


def body(build: Callable[..., LLMCall] = call, **what: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = sent(build, **what).json
    return parsed


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


def test_a_stream_of_openai_comes_in_its_parts() -> None:
    stream = completion_stream({"role": "assistant", "content": ""}, {"content": "h"}, {"content": "i"})
    with loopback(stream) as server:
        reply = ask(call(server, params={"stream": True}))
        asked = server.asked[0].json
    assert (reply.text, reply.chunks, reply.finish_reason) == ("hi", ("h", "i"), "stop")
    assert reply.usage == {"input_tokens": 7, "output_tokens": 3}
    assert (asked["stream"], asked["stream_options"]) == (True, {"include_usage": True})


def test_a_stream_of_anthropic_comes_in_its_parts() -> None:
    with loopback(message_stream("h", "i")) as server:
        reply = ask(claude(server, params={"stream": True}))
        assert server.asked[0].json["stream"] is True
    assert (reply.text, reply.chunks, reply.finish_reason) == ("hi", ("h", "i"), "end_turn")
    assert reply.usage == {"input_tokens": 7, "output_tokens": 3}


def tool_stream(*arguments: str) -> Said:
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


def test_what_is_said_about_the_connection_is_not_sent() -> None:
    what = {"api_base": "x", "base_url": "x", "api_key": "x", "timeout": 30, "num_retries": 1}
    assert body(params={**what, "extra_headers": {"x-team": "a"}}).keys() == body().keys()
    assert sent(params={"extra_headers": {"x-team": "a"}}).headers["x-team"] == "a"


@pytest.mark.parametrize("build", [call, claude])
def test_a_parameter_of_no_use_is_told(build: Callable[..., LLMCall]) -> None:
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
    with loopback(Said(json=body)) as server:
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


# ------------------------------------------------------------ where providers are


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_the_environment_says_where_openai_is(variable: str) -> None:
    with loopback(completion()) as server:
        assert ask_with(Access({"OPENAI_API_KEY": "k", variable: f"{server.url}/v1"}), call()).text == "hi"


def test_the_environment_says_where_anthropic_is() -> None:
    with loopback(message(text("hi"))) as server:
        asked = call(name="claude-test", provider="anthropic")
        assert ask(asked, ANTHROPIC_BASE_URL=server.url).text == "hi"


def test_which_variables_said_where_providers_are_is_known() -> None:
    async def places(access: Access, *calls: LLMCall) -> dict[str, str]:
        providers = Providers(access)
        for each in calls:
            await providers.ask(each)
        await providers.close()
        return providers.places

    with loopback(completion()) as server:
        url = f"{server.url}/v1"
        access = Access({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "VLLM_BASE_URL": "unused"})
        assert asyncio.run(places(access, call())) == {"OPENAI_BASE_URL": url}
        assert asyncio.run(places(access, call(server))) == {}


def test_the_manifest_comes_before_the_environment() -> None:
    with loopback(completion("manifest")) as server:
        assert ask(call(server), OPENAI_BASE_URL=refusing_url()).text == "manifest"


@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "ollama", "some-gateway"])
def test_a_server_of_ones_own_needs_no_key_and_its_url_no_scheme_and_no_path(provider: str) -> None:
    with loopback(completion()) as server:
        address = server.url.removeprefix("http://")
        ask_with(Access({"OPENAI_API_KEY": "sk-openai"}), call(provider=provider, base_url=address))
        (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert "sk-openai" not in str(asked.headers)


def test_the_path_of_a_url_stays() -> None:
    with loopback(completion()) as server:
        ask(call(provider="vllm", base_url=f"{server.url}/llm/v2/"))
        assert server.asked[0].path == "/llm/v2/chat/completions"


def test_a_server_of_ones_own_may_have_a_key() -> None:
    with loopback(completion()) as server:
        ask(call(server, provider="some-gateway"), SOME_GATEWAY_API_KEY="k1")
        ask(call(server, provider="some-gateway", api_key="k2"), SOME_GATEWAY_API_KEY="k1")
        assert [each.headers["authorization"] for each in server.asked] == ["Bearer k1", "Bearer k2"]


@pytest.mark.parametrize(
    ("provider", "name", "model"),
    [
        ("", "gpt-test", "gpt-test"),
        ("", "openai/gpt-test", "gpt-test"),
        ("openai", "openai/gpt-test", "gpt-test"),
        ("openai_compatible", "meta/llama", "meta/llama"),
        ("", "meta/llama", "meta/llama"),
    ],
)
def test_the_name_of_a_model_may_begin_with_its_provider(provider: str, name: str, model: str) -> None:
    assert body(provider=provider, name=name)["model"] == model


@pytest.mark.parametrize("name", ["claude-test", "anthropic/claude-test"])
def test_without_a_provider_claude_is_anthropics(name: str) -> None:
    asked = sent(claude, provider="", name=name)
    assert (asked.path, asked.json["model"]) == ("/v1/messages", "claude-test")


# ------------------------------------------------------------ what is missing


def test_an_unknown_provider_is_told_with_those_that_are_known() -> None:
    with pytest.raises(ProviderError, match="did you mean 'openai'") as raised:
        ask(call(provider="openia"))
    assert "OPENIA_BASE_URL" in str(raised.value)
    with pytest.raises(ProviderError, match="known: openai, anthropic, openai_compatible, vllm, ollama"):
        ask(call(provider="zzz"))


def test_a_server_that_is_nowhere_is_told_with_its_variable() -> None:
    with pytest.raises(ProviderError, match="VLLM_BASE_URL"):
        ask(call(provider="vllm"))


@pytest.mark.parametrize(
    ("provider", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_is_told_with_its_variable(
    provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "a key of somebody else")
    with pytest.raises(KeyMissing, match=f"set {variable}"):
        ask_with(Access({}), call(provider=provider))


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("openai", "openai"),
        ("langchain_openai", "openai"),
        ("anthropic", "anthropic"),
        ("langchain_anthropic", "anthropic"),
    ],
)
def test_a_missing_package_is_told_with_the_extra_that_brings_it(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraMissing) as raised:
        ask(call(provider=extra))
    assert f'pip install "agent-scenarios[{extra}]"' in str(raised.value)
    assert repr(package) in str(raised.value)


# ------------------------------------------------------------ failures


def test_a_busy_provider_is_asked_again() -> None:
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
def test_what_the_client_raises_is_raised_under_its_own_name(
    build: Callable[..., LLMCall], client: Any, status: int, name: str
) -> None:
    with loopback(refusal(status, **NO_DELAY)) as server, pytest.raises(client.APIError) as raised:
        ask(build(server))
    assert type(raised.value) is getattr(client, name)
    assert not is_down(raised.value)


def test_a_refusal_that_langchain_warns_of_is_raised_all_the_same() -> None:
    refused = Said(json={"error": {"message": "Invalid schema for response_format"}}, status=400)
    with warnings.catch_warnings(), loopback(refused) as server:
        warnings.simplefilter("error")
        with pytest.raises(openai.BadRequestError):
            ask(call(server))


@pytest.mark.parametrize(("build", "client"), [(call, openai), (claude, anthropic)])
def test_a_provider_that_is_not_there_is_down(build: Callable[..., LLMCall], client: Any) -> None:
    what = {"base_url": refusing_url(), "params": {"max_retries": 0}}
    with pytest.raises(client.APIConnectionError) as raised:
        ask(build(Loopback([]), **what))
    assert type(raised.value) is client.APIConnectionError
    assert is_down(raised.value)


@pytest.mark.parametrize(("build", "client"), [(call, openai), (claude, anthropic)])
def test_a_provider_that_is_slow_is_not_down(build: Callable[..., LLMCall], client: Any) -> None:
    with silent_url() as url, pytest.raises(client.APITimeoutError) as raised:
        ask(build(Loopback([]), base_url=url, params={"timeout": 1, "max_retries": 0}))
    assert type(raised.value) is client.APITimeoutError
    assert not is_down(raised.value)


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError(), ConnectionError(), KeyMissing("no")])
def test_other_errors_do_not_tell_that_a_provider_is_down(error: Exception) -> None:
    assert not is_down(error)


@pytest.mark.parametrize(("build", "package"), [(call, "openai"), (claude, "anthropic")])
def test_an_error_of_ours_under_the_client_comes_out_as_it_is(
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
    """The transport that the clients of a package speak through."""
    (client,) = sys.modules[package].DefaultAsyncHttpxClient.__bases__
    return sys.modules[client.__module__.partition(".")[0]].AsyncHTTPTransport


@pytest.mark.parametrize(
    ("provider", "answer", "package"),
    [("openai", completion("hi"), "openai"), ("anthropic", message(text("hi")), "anthropic")],
)
def test_a_replay_needs_no_key_and_reads_no_other_environment(
    provider: str, answer: Said, package: str, monkeypatch: pytest.MonkeyPatch
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


def test_nothing_is_traced_and_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
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
