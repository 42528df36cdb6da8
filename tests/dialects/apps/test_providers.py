"""The clients of model providers, as apps use them: each speaks its own wire format, offline, to `llm` stubs."""

import json
from typing import Any

import pytest

from harness.scenario.outcome import Outcome
from harness.world.wire import gemini
from tests.dialects.apps.conftest import RunApp, error_of
from tests.world.providers import needs

# Each client as three functions: `say(text)` returns text and usage, `stream(text)` the pieces, and `look(text)` the
# call of a tool.
CLIENTS = {
    "google.genai": """\
        from google import genai
        from google.genai import types
        client = genai.Client(http_options=types.HttpOptions(retry_options=types.HttpRetryOptions(attempts=3)))
        MODEL = "gemini-2.5-flash"

        def say(text):
            answer = client.models.generate_content(model=MODEL, contents=text)
            used = answer.usage_metadata
            return answer.text, used.prompt_token_count, used.candidates_token_count

        def stream(text):
            return [part.text for part in client.models.generate_content_stream(model=MODEL, contents=text)]

        def weather(city: str) -> str:
            "Tells the weather."

        def look(text):
            automatic = types.AutomaticFunctionCallingConfig(disable=True)
            config = types.GenerateContentConfig(tools=[weather], automatic_function_calling=automatic)
            (call,) = client.models.generate_content(model=MODEL, contents=text, config=config).function_calls
            return call.name, call.args
        """,
    "boto3": """\
        import boto3
        client = boto3.client("bedrock-runtime", region_name="eu-central-1")

        def ask(text, ask=client.converse, **more):
            said = [{"role": "user", "content": [{"text": text}]}]
            return ask(modelId="eu.amazon.nova-lite-v1:0", messages=said, **more)

        def say(text):
            answer = ask(text)
            (block,) = answer["output"]["message"]["content"]
            return block["text"], answer["usage"]["inputTokens"], answer["usage"]["outputTokens"]

        def stream(text):
            events = ask(text, client.converse_stream)["stream"]
            return [part["contentBlockDelta"]["delta"]["text"] for part in events if "contentBlockDelta" in part]

        def look(text):
            schema = {"json": {"type": "object", "properties": {"city": {"type": "string"}}}}
            tools = {"tools": [{"toolSpec": {"name": "weather", "inputSchema": schema}}]}
            (block,) = ask(text, toolConfig=tools)["output"]["message"]["content"]
            return block["toolUse"]["name"], block["toolUse"]["input"]
        """,
    "mistralai": """\
        import os
        from mistralai.client import Mistral
        from mistralai.client.utils import BackoffStrategy, RetryConfig
        patient = RetryConfig("backoff", BackoffStrategy(1000, 8000, 2, 60000), False)
        client = Mistral(api_key=os.environ["MISTRAL_API_KEY"], retry_config=patient)

        def ask(text, ask=client.chat.complete, **more):
            return ask(model="mistral-small-latest", messages=[{"role": "user", "content": text}], **more)

        def say(text):
            answer = ask(text)
            return answer.choices[0].message.content, answer.usage.prompt_tokens, answer.usage.completion_tokens

        def stream(text):
            parts = [part.data.choices[0].delta.content for part in ask(text, client.chat.stream)]
            return [part for part in parts if part]

        def look(text):
            schema = {"type": "object", "properties": {"city": {"type": "string"}}}
            tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
            (call,) = ask(text, tools=tools).choices[0].message.tool_calls
            return call.function.name, json.loads(call.function.arguments)
        """,
    "groq": """\
        from groq import Groq
        client = Groq()

        def ask(text, **more):
            said = [{"role": "user", "content": text}]
            return client.chat.completions.create(model="llama-3.3-70b-versatile", messages=said, **more)

        def say(text):
            answer = ask(text)
            return answer.choices[0].message.content, answer.usage.prompt_tokens, answer.usage.completion_tokens

        def stream(text):
            return [said for part in ask(text, stream=True) if (said := part.choices[0].delta.content)]

        def look(text):
            schema = {"type": "object", "properties": {"city": {"type": "string"}}}
            tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
            (call,) = ask(text, tools=tools).choices[0].message.tool_calls
            return call.function.name, json.loads(call.function.arguments)
        """,
    "ollama": """\
        import ollama

        def say(text):
            answer = ollama.chat("llama3.2", [{"role": "user", "content": text}])
            return answer.message.content, answer.prompt_eval_count, answer.eval_count

        def stream(text):
            return [part.response for part in ollama.generate("llama3.2", text, stream=True) if part.response]

        def weather(city: str) -> str:
            "Tells the weather."

        def look(text):
            answer = ollama.chat("llama3.2", [{"role": "user", "content": text}], tools=[weather])
            (call,) = answer.message.tool_calls
            return call.function.name, dict(call.function.arguments)
        """,
}
LANGCHAIN = """\
        from langchain_core.tools import tool

        @tool
        def weather(city: str) -> str:
            "Tells the weather."

        def say(text):
            answer = client.invoke(text)
            return answer.text, answer.usage_metadata["input_tokens"], answer.usage_metadata["output_tokens"]

        def stream(text):
            return [text for part in client.stream(text) if (text := part.text)]

        def look(text):
            (call,) = client.bind_tools([weather]).invoke(text).tool_calls
            return call["name"], call["args"]
        """
MODELS = {
    "langchain_google_genai": "ChatGoogleGenerativeAI(model='gemini-2.5-flash')",
    "langchain_aws": "ChatBedrockConverse(model='amazon.nova-lite-v1:0', region_name='eu-central-1')",
    "langchain_groq": "ChatGroq(model='llama-3.3-70b-versatile')",
    "langchain_mistralai": "ChatMistralAI(model='mistral-small-latest')",
    "langchain_ollama": "ChatOllama(model='llama3.2')",
}
CLIENTS |= {
    package: f"        from {package} import {made.partition('(')[0]}\n        client = {made}\n{LANGCHAIN}"
    for package, made in MODELS.items()
}
ERRORS = {
    "groq": "AuthenticationError",
    "langchain_groq": "AuthenticationError",
    "langchain_mistralai": "HTTPStatusError",
    "mistralai": "SDKError",
    "boto3": "ClientError: An error occurred (UnrecognizedClientException)",
    "langchain_aws": "ClientError: An error occurred (UnrecognizedClientException)",
    "google.genai": "ClientError",
    "langchain_google_genai": "GoogleAuthenticationError",
    "langchain_ollama": "ResponseError",
    "ollama": "ResponseError",
}
HASTY = {"langchain_mistralai", "langchain_ollama", "ollama"}
"""Clients that do not try again after such an answer."""


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """The package of a client."""
    package: str = request.param
    needs(package)
    return package


@pytest.fixture
def ask(client: str, run_app: RunApp) -> Any:
    """Run an agent that returns an expression of the client's functions, against these stubs."""

    def outcome(expression: str, stubs: str) -> Outcome:
        head, tail = "        import json\n", "\n        def agent(text):\n            return "
        agent = f"{head}{CLIENTS[client]}{tail}repr({expression})\n"
        keys = f"{{name: it, input: hi, timeout: 1000, llm: {stubs}}}"
        (one,) = run_app(f"manifest: app.py:agent\nscenarios:\n  - {keys}", {"app.py": agent}).values()
        return one

    return outcome


def test_an_answer_has_its_text_and_its_usage(ask: Any) -> None:
    outcome = ask("say(text)", "[{reply: Hello., usage: {input_tokens: 12, output_tokens: 3}}]")
    assert outcome.observed.output == repr(("Hello.", 12, 3)), error_of(outcome)


def test_a_stream_arrives_in_its_pieces(ask: Any) -> None:
    assert ask("stream(text)", "[{chunks: [Hel, lo.]}]").observed.output == repr(["Hel", "lo."])


def test_a_tool_is_called(ask: Any) -> None:
    schema = 'request.tools[0].schema.properties.city.type == "string"'
    outcome = ask(
        "look(text)", f"[{{tool_calls: [{{name: weather, args: {{city: Rome}}}}], when: '{schema}'}}]"
    )
    assert outcome.observed.output == repr(("weather", {"city": "Rome"})), error_of(outcome)


def test_the_client_itself_waits_and_tries_again(ask: Any, client: str) -> None:
    outcome = ask("say(text)[0]", "[{error: rate_limit}, {error: server_error}, Hello.]")
    if client in HASTY:
        assert [call["ok"] for call in outcome.observed.calls] == [False]
        return
    assert outcome.observed.output == repr("Hello."), error_of(outcome)
    assert [call["ok"] for call in outcome.observed.calls] == [False, False, True]
    assert outcome.observed.latency["total"] > 0.5


def test_an_error_is_the_client_s_own(ask: Any, client: str) -> None:
    outcome = ask("say(text)", "[{error: auth}]")
    error = outcome.observed.error or {}
    assert f"{error['type']}: {error['message']}".startswith(ERRORS[client])


WAITING = """
        async def agent(text):
            said = [part.text async for part in client.astream(text)]
            (call,) = (await client.bind_tools([weather]).ainvoke(text)).tool_calls
            return repr(("".join(said), call["name"], call["args"]))
"""


@pytest.mark.parametrize("client", MODELS, indirect=True)
def test_a_client_in_a_loop_is_answered_as_one_that_blocks(client: str, run_app: RunApp) -> None:
    stubs = "[{chunks: [Hel, lo.]}, {tool_calls: [{name: weather, args: {city: Rome}}]}]"
    scenario = f"manifest: app.py:agent\nscenarios: [{{name: it, input: hi, llm: {stubs}}}]"
    (outcome,) = run_app(scenario, {"app.py": CLIENTS[client] + WAITING}).values()
    assert outcome.observed.output == repr(("Hello.", "weather", {"city": "Rome"})), error_of(outcome)


STRUCTURED = """
        from pydantic import BaseModel

        class Sky(BaseModel):
            colour: str

        def agent(text):
            return client.with_structured_output(Sky).invoke(text).colour
"""


@pytest.mark.parametrize("client", MODELS, indirect=True)
def test_structured_output_is_json_however_it_is_asked_for(client: str, run_app: RunApp) -> None:
    scenario = "manifest: app.py:agent\nscenarios: [{name: it, input: hi, llm: [{json: {colour: blue}}]}]"
    (outcome,) = run_app(scenario, {"app.py": CLIENTS[client] + STRUCTURED}).values()
    assert outcome.observed.output == "blue", error_of(outcome)


FILTERED = {
    "google.genai": (
        "client.models.generate_content(model=MODEL, contents=text).candidates[0].finish_reason.name",
        "SAFETY",
    ),
    "langchain_google_genai": ("client.invoke(text).response_metadata['finish_reason']", "SAFETY"),
    "boto3": ("ask(text)['stopReason']", "content_filtered"),
    "langchain_aws": ("client.invoke(text).response_metadata['stopReason']", "content_filtered"),
}


@pytest.mark.parametrize("client", FILTERED, indirect=True)
def test_what_a_filter_stops_is_an_answer_that_says_so(ask: Any, client: str) -> None:
    expression, reason = FILTERED[client]
    assert ask(expression, "[{error: content_filter}]").observed.output == repr(reason)


INVOKED = """\
    from langchain_aws import ChatBedrock
    client = ChatBedrock(model="anthropic.claude-3-haiku-20240307-v1:0", region_name="eu-central-1")
    def agent(text):
        return client.invoke(text).text
"""


def test_a_client_of_another_protocol_is_answered_at_the_chat_model(run_app: RunApp) -> None:
    needs("langchain_aws")
    scenario = "manifest: app.py:agent\nscenarios: [{name: it, input: hi, llm: [Hello.]}]"
    (outcome,) = run_app(scenario, {"app.py": INVOKED}).values()
    assert outcome.observed.output == "Hello.", error_of(outcome)


def test_requests_that_count_tokens_need_no_stub_and_may_have_one(run_app: RunApp) -> None:
    counting = """\
        import json
        from urllib.request import Request, urlopen
        BODY = {"model": "m", "messages": [{"role": "user", "content": "x" * 33}]}

        def count(base):
            asked = ("/v1/responses/input_tokens", "/v1/messages/count_tokens", "/v1beta/models/m:countTokens")
            answers = [urlopen(Request(base + path, json.dumps(BODY).encode())) for path in asked]
            numbers = [json.load(each) for each in answers]
            return [numbers[0]["input_tokens"], numbers[1]["input_tokens"], numbers[2]["totalTokens"]]
        """
    scenarios = """\
        manifest: counting.py:count
        dialect: python
        scenarios:
          - {name: estimated, input: "https://models.example", expect: {call_counts: {http: 3}}}
          - name: told
            input: "https://models.example"
            http: [{url: "*/count_tokens", json: {input_tokens: 7}}]
        """
    outcomes = run_app(scenarios, {"counting.py": counting})
    assert outcomes["estimated"].passed, outcomes["estimated"]
    assert outcomes["estimated"].observed.output == [10, 10, 10]  # 38 characters, of all texts
    assert outcomes["told"].observed.output == [10, 7, 10]


def test_a_stream_of_gemini_that_is_not_asked_for_as_events_is_one_array(run_app: RunApp) -> None:
    streaming = """\
        import json
        from urllib.request import Request, urlopen
        BODY = json.dumps({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}).encode()

        def agent(query):
            url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent"
            with urlopen(Request(url + query, BODY)) as response:
                kind, body = response.headers["content-type"], response.read().decode()
            lines = [each.removeprefix("data: ") for each in body.splitlines() if each]
            parts = json.loads(body) if body.startswith("[") else map(json.loads, lines)
            texts = [each["candidates"][0]["content"]["parts"][0]["text"] for each in parts]
            return {"kind": kind.partition(";")[0], "texts": texts}
        """
    scenarios = """\
        manifest: app.py:agent
        dialect: python
        defaults: {llm: [{chunks: [Good, " day"]}]}
        scenarios:
          - {name: array, input: "", expect: {output: {kind: application/json, texts: [Good, " day"]}}}
          - {name: keyed, input: "?key=x", expect: {output: {kind: application/json, texts: [Good, " day"]}}}
          - {name: events, input: "?alt=sse", expect: {output: {kind: text/event-stream, texts: [Good, " day"]}}}
        """
    outcomes = run_app(scenarios, {"app.py": streaming})
    assert {name: one.checks for name, one in outcomes.items() if not one.passed} == {}


def test_a_recorded_array_of_gemini_is_read_as_its_parts() -> None:
    parts = [{"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in ("Good", " day")]
    read = gemini.framing.parts(json.dumps(parts).encode())
    assert gemini.answer(gemini.joined(read)).text == "Good day"
