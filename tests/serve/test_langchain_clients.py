"""The server is tested with LangChain's clients, which most agents use."""

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from harness.serve import Serving

Serve = Callable[[str], Serving]
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _nothing_left_open() -> Iterator[None]:
    """Collect clients that nobody closes, which would warn in another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def from_openai(server: Serving, **more: Any) -> ChatOpenAI:
    options: Any = {"base_url": server.openai_url, "api_key": "any", "max_retries": 0, "stream_usage": True}
    return ChatOpenAI(model="gpt-4o", **options, **more)


def through_responses(server: Serving) -> ChatOpenAI:
    return from_openai(server, use_responses_api=True)


def from_anthropic(server: Serving) -> ChatAnthropic:
    options: Any = {"base_url": server.anthropic_url, "api_key": "any", "max_retries": 0}
    return ChatAnthropic(model_name="claude-x", **options)


def from_gemini(server: Serving) -> Any:
    google = pytest.importorskip("langchain_google_genai")
    return google.ChatGoogleGenerativeAI(model="gemini-x", api_key="any", base_url=server.url, max_retries=1)


def from_ollama(server: Serving) -> Any:
    return pytest.importorskip("langchain_ollama").ChatOllama(model="llama-x", base_url=server.url)


def from_bedrock(server: Serving) -> Any:
    keys: dict[str, Any] = {
        "aws_access_key_id": "any",
        "aws_secret_access_key": "any",
        "region_name": "eu-west-1",
    }
    keys |= {"disable_streaming": False}  # it knows which models stream
    aws = pytest.importorskip("langchain_aws")
    return aws.ChatBedrockConverse(model="amazon.nova-x-v1:0", endpoint_url=server.url, **keys)


def from_groq(server: Serving) -> Any:
    return pytest.importorskip("langchain_groq").ChatGroq(model="x", api_key="any", base_url=server.url)


def from_mistral(server: Serving) -> Any:
    mistral = pytest.importorskip("langchain_mistralai")
    return mistral.ChatMistralAI(model="x", api_key="any", endpoint=f"{server.url}/mistral/v1")


OTHERS = [from_gemini, from_ollama, from_bedrock, from_groq, from_mistral]
MODELS = [from_openai, through_responses, from_anthropic, *OTHERS]


@tool
def find(q: str) -> str:
    """Finds things."""
    return q


class Intent(BaseModel):
    """A request for information."""

    intent: str


@pytest.mark.parametrize("model", MODELS)
def test_a_reply_with_its_usage(serve: Serve, model: Callable[[Serving], Any]) -> None:
    stub = "{reply: Refund issued., usage: {input_tokens: 12, output_tokens: 3}}"
    said: AIMessage = model(serve(f"llm: [{stub}]")).invoke("I was charged twice")
    assert said.text == "Refund issued."
    assert said.usage_metadata is not None
    assert (said.usage_metadata["input_tokens"], said.usage_metadata["output_tokens"]) == (12, 3)


@pytest.mark.parametrize("model", MODELS)
def test_a_turn_of_tools(serve: Serve, model: Callable[[Serving], Any]) -> None:
    server = serve("""
llm:
  - {tool_calls: [{name: find, args: {q: pears}}], when: 'request.tools[0].schema.required == ["q"]'}
  - {reply: Three., when: 'request.messages[2].content == "3" && request.messages[1].tool_calls[0].args.q == "pears"'}
""")
    bound = model(server).bind_tools([find])
    asked = HumanMessage("how many pears?")
    called: AIMessage = bound.invoke([asked])
    [call] = called.tool_calls
    assert (call["name"], call["args"]) == ("find", {"q": "pears"})
    assert call["id"] == "call_1" or model is from_ollama  # it makes ids itself
    result = ToolMessage("3", tool_call_id=call["id"])
    assert bound.invoke([asked, called, result]).text == "Three."


@pytest.mark.parametrize("model", MODELS)
def test_a_stream_adds_up(serve: Serve, model: Callable[[Serving], Any]) -> None:
    server = serve("llm: [{reply: Let me look., tool_calls: [{name: find, args: {q: pears}}]}]")

    async def whole() -> AIMessageChunk:
        chunks = [chunk async for chunk in model(server).bind_tools([find]).astream("hi")]
        assert len(chunks) > 3
        total: AIMessageChunk = chunks[0]
        for chunk in chunks[1:]:
            total += chunk
        return total

    said = asyncio.run(whole())
    assert said.text == "Let me look."
    assert [(call["name"], call["args"]) for call in said.tool_calls] == [("find", {"q": "pears"})]
    assert said.usage_metadata is not None
    assert said.usage_metadata["output_tokens"] == 5


@pytest.mark.parametrize("model", [from_openai, through_responses, from_gemini, from_ollama])
def test_structured_output(serve: Serve, model: Callable[[Serving], Any]) -> None:
    condition = "request.response_format.json_schema.name == 'Intent'"
    server = serve(f'llm: [{{json: {{intent: billing}}, when: "{condition}"}}]')
    assert model(server).with_structured_output(Intent).invoke("hi") == Intent(intent="billing")
