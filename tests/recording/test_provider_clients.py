"""What the clients of model providers send is recorded without their keys, and replayed to them without any."""

from dataclasses import dataclass, field

import pytest

from harness.scenario.load import load_file
from harness.serve import Serving
from tests.recording.project import Project
from tests.recording.test_apps import problems
from tests.world.providers import needs

KEY = "planted-4711-Vq7xWz"
AGENT = """\
{client}

def agent(text):
    return say(text) + stream(text)
"""
SCENARIO = """\
harness: 1
manifest: agent.py:agent
scenarios:
  - name: it
    cassette: it
    input: hi
    timeout: 600
    expect:
      output: Hello. Goodbye.
      calls: [{llm: "*", ok: false}, {llm: "*"}, {llm: "*"}]
      usage: {llm_calls: 3, input_tokens: 17, output_tokens: 9}
"""
SERVED = """
llm:
  - {error: {kind: rate_limit, retry_after: 0.01}}
  - {reply: Hello., usage: {input_tokens: 10, output_tokens: 3}}
  - {chunks: [" Good", bye.], usage: {input_tokens: 7, output_tokens: 6}}
"""


@dataclass(frozen=True)
class Client:
    """A client, as `say(text)` and `stream(text)`. `variables` are its key and its address, `{url}`."""

    code: str
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self, server: Serving) -> dict[str, str]:
        return {name: value.format(url=server.url) for name, value in self.variables.items()}


CLIENTS = {
    "google.genai": Client(
        """\
from google import genai
from google.genai import types
fast = types.HttpRetryOptions(attempts=2, initial_delay=0.01, jitter=0)
client = genai.Client(http_options=types.HttpOptions(retry_options=fast))

def say(text):
    return client.models.generate_content(model="gemini-2.5-flash", contents=text).text

def stream(text):
    parts = client.models.generate_content_stream(model="gemini-2.5-flash", contents=text)
    return "".join(part.text for part in parts)
""",
        {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "{url}"},
    ),
    "boto3": Client(
        """\
import boto3
client = boto3.client("bedrock-runtime", region_name="eu-central-1")

def ask(text, ask):
    return ask(modelId="amazon.nova-lite-v1:0", messages=[{"role": "user", "content": [{"text": text}]}])

def say(text):
    return ask(text, client.converse)["output"]["message"]["content"][0]["text"]

def stream(text):
    events = ask(text, client.converse_stream)["stream"]
    return "".join(event["contentBlockDelta"]["delta"]["text"] for event in events if "contentBlockDelta" in event)
""",
        {
            "AWS_ACCESS_KEY_ID": f"AKIA{KEY}",
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_SESSION_TOKEN": f"session-{KEY}",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "{url}",
        },
    ),
    "mistralai": Client(
        """\
import os
from mistralai.client import Mistral
from mistralai.client.utils import BackoffStrategy, RetryConfig
fast = RetryConfig("backoff", BackoffStrategy(10, 20, 2, 1000), False)
client = Mistral(api_key=os.environ["MISTRAL_API_KEY"], server_url=os.environ["MISTRAL"], retry_config=fast)

def ask(text, ask):
    return ask(model="mistral-small-latest", messages=[{"role": "user", "content": text}])

def say(text):
    return ask(text, client.chat.complete).choices[0].message.content

def stream(text):
    parts = ask(text, client.chat.stream)
    return "".join(part.data.choices[0].delta.content or "" for part in parts)
""",
        {"MISTRAL_API_KEY": KEY, "MISTRAL": "{url}/mistral"},
    ),
    "groq": Client(
        """\
from groq import Groq
client = Groq()

def ask(text, **more):
    said = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="llama-3.3-70b-versatile", messages=said, **more)

def say(text):
    return ask(text).choices[0].message.content

def stream(text):
    options = {"stream_options": {"include_usage": True}}
    parts = [part for part in ask(text, stream=True, extra_body=options) if part.choices]
    return "".join(part.choices[0].delta.content or "" for part in parts)
""",
        {"GROQ_API_KEY": KEY, "GROQ_BASE_URL": "{url}"},
    ),
    "ollama": Client(
        """\
import ollama

def ask(text, **options):
    return ollama.Client().chat("llama3.2", [{"role": "user", "content": text}], **options)

def say(text):
    try:
        ask(text)
    except ollama.ResponseError:
        return ask(text).message.content

def stream(text):
    return "".join(part.message.content for part in ask(text, stream=True))
""",
        {"OLLAMA_API_KEY": KEY, "OLLAMA_HOST": "{url}"},
    ),
}
CLIENTS["httpx"] = Client(
    """\
import httpx, json, os

def ask(text, method, **query):
    url = f"{os.environ['GEMINI']}/v1beta/models/gemini-2.5-flash:{method}"
    body = {"contents": [{"parts": [{"text": text}]}]}
    return httpx.post(url, params={"key": os.environ["GEMINI_API_KEY"], **query}, json=body)

def say(text):
    ask(text, "generateContent")  # it has to wait
    return ask(text, "generateContent").json()["candidates"][0]["content"]["parts"][0]["text"]

def stream(text):
    lines = ask(text, "streamGenerateContent", alt="sse").text.splitlines()
    parts = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    return "".join(part["candidates"][0]["content"]["parts"][0]["text"] for part in parts)
""",
    {"GEMINI_API_KEY": KEY, "GEMINI": "{url}"},
)


@pytest.mark.parametrize("package", CLIENTS)
def test_a_recording_is_free_of_keys_and_replays_without_them(project: Project, package: str) -> None:
    needs(package)
    client = CLIENTS[package]
    project.write("agent.py", AGENT.format(client=client.code))
    path = project.write("it.scenario.yaml", SCENARIO)
    with project.serving(SERVED) as server:
        project.environment |= client.environment(server)
        (scenario,) = load_file(path).scenarios
        recorded = project.record(scenario)
    assert problems(recorded) == []
    assert not [name for name, content in project.recorded_files().items() if KEY.encode() in content]
    replayed = project.replay(scenario)
    assert problems(replayed) == []
    assert [call["kind"] for call in replayed.observed.calls] == ["llm"] * 3
