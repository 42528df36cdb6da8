"""What a provider's answer says is read as it was written, streamed or not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.graph.effects import LLMCall, LLMReply
from harness.interception.messages import Response
from harness.world.failures import MalformedAnswerError, RemoteError
from harness.world.wire.format import ReplyFactory
from harness.world.wire.http import answer_to, format_of_path

URLS = {
    "chat": "https://api.openai.com/v1/chat/completions",
    "responses": "https://gateway.example/openai/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse",
    "ollama": "http://localhost:11434/api/chat",
}
CALL = LLMCall(name="m")

texts = st.text(st.characters(codec="utf-8"), max_size=30)
calls = st.fixed_dictionaries(
    {
        "id": st.just("call_7"),
        "name": st.just("look"),
        "args": st.dictionaries(texts, st.integers(), max_size=2),
    }
)
replies = st.builds(
    LLMReply,
    text=texts,
    tool_calls=st.lists(calls, max_size=2),
    usage=st.fixed_dictionaries({"input_tokens": st.integers(0, 99), "output_tokens": st.integers(0, 99)}),
)


@given(url=st.sampled_from(sorted(URLS.values())), reply=replies, streamed=st.booleans())
def test_an_answer_says_what_was_written(url: str, reply: LLMReply, streamed: bool) -> None:
    wire = format_of_path(url)
    assert wire is not None
    made = ReplyFactory().make(CALL, reply)
    body = b"".join(wire.events(made, {"stream_options": {"include_usage": True}}))
    if not streamed:
        body = json.dumps(wire.response_json(made, {})).encode()
    answer = answer_to(CALL, url, Response(200, body=body), "")
    assert answer.error is None
    said = (answer.value.text, list(answer.value.tool_calls), answer.value.usage)
    assert said == (reply.text, reply.tool_calls, reply.usage)


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
@pytest.mark.parametrize(
    "body", ["", "<html>", "{}", "[1]", '{"choices": [], "output": 7, "content": 7}', "data: 1"]
)
def test_what_is_no_answer_of_a_model_is_told(url: str, body: str) -> None:
    answer = answer_to(CALL, url, Response(200, body=body.encode()), "")
    assert isinstance(answer.error, MalformedAnswerError)


@pytest.mark.parametrize(
    ("response", "failure", "told"),
    [
        (Response(429, body=b"slow down"), "", "status 429: slow down"),
        (None, "ConnectError: refused", "refused"),
    ],
)
def test_a_refusal_is_an_error(response: Any, failure: str, told: str) -> None:
    error = answer_to(CALL, URLS["chat"], response, failure).error
    assert isinstance(error, RemoteError)
    assert told in str(error)
