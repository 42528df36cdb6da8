"""Recordings by real clients of real servers are replayed without the servers, with equal results."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
import vcr

from harness.scenario.outcome import Outcome
from tests.recording.project import KEY, Project, told
from tests.world.loopback import refusing_url


@dataclass(frozen=True)
class Case:
    """An agent, the keys of the scenario, the stubs to serve, and the expected result."""

    agent: str
    keys: str
    served: str
    output: Any
    calls: int  # of models


WEATHER = """
llm:
  - when: request.prompt.contains("umbrella")
    tool_calls: [{name: forecast, args: {city: Bergen}}]
    usage: {input_tokens: 92, output_tokens: 15}
    latency: 0.02
  - when: 'request.prompt == "Bergen: rain"'
    reply: "Yes, it rains."
    usage: {input_tokens: 131, output_tokens: 7}
    latency: 0.03
"""
UMBRELLA = "input: An umbrella?\ntools: {forecast: real}"

CATALOGUE = """
llm:
  - tool_calls: [{name: find, args: {author: Le Guin}}]
  - {when: 'request.prompt.contains("Dispossessed")', reply: The Dispossessed.}
mcp:
  catalogue:
    tools:
      - name: find
        description: Finds books by their author
        input_schema: {type: object, required: [author], properties: {author: {type: string}}}
        stubs: [{args: {author: Le Guin}, return: [{title: The Dispossessed, shelf: 7}], latency: 0.02}]
"""


def station(tool: str) -> Case:
    """A tool that calls an HTTP service in its own body."""
    return Case(
        "station",
        f"input: The wind?\ntools: {{{tool}: real}}",
        f"""
llm:
  - tool_calls: [{{name: {tool}, args: {{city: Kiel}}}}]
  - {{when: request.prompt == "12", reply: Twelve knots.}}
http: [{{method: GET, url: /station/Kiel, json: {{wind: 12}}, latency: 0.02}}]
""",
        "Twelve knots.",
        2,
    )


CASES = {
    "an OpenAI model and a tool": Case("weather", UMBRELLA, WEATHER, "Yes, it rains.", 2),
    "an Anthropic model and a tool": Case("outing", UMBRELLA, WEATHER, "Yes, it rains.", 2),
    "two tools in one reply": Case(
        "outing",
        "input: Where to?\ntools: {forecast: real}",
        """
llm:
  - {reply: I look., tool_calls: [{name: forecast, args: {city: Lisbon}}, {name: forecast, args: {city: Bergen}}]}
  - {reply: To Lisbon.}
""",
        "To Lisbon.",
        2,
    ),
    "a compatible server that the manifest names, and a form of the answer": Case(
        "label",
        "input: {crop: leek}",
        """
llm:
  - when: request.response_format != null && request.params.max_completion_tokens == 60
    model: barn-7b
    json: {text: Leek, beds: 3}
""",
        {"text": "Leek", "beds": 3},
        1,
    ),
    "a form of the answer in Yagra": Case(
        "sighting",
        "input: {place: Kiel}",
        "llm: [{json: {object: Vega, magnitude: 0}}]",
        {"place": "Kiel", "sighting": {"object": "Vega", "magnitude": 0.0}},
        1,
    ),
    "a streamed reply": Case(
        "speech",
        "input: {place: Lund}\nhandlers: {join: town_tools.join}",
        "llm: [{chunks: ['Vega ', 'is ', 'blue.'], usage: {input_tokens: 20, output_tokens: 3}}]",
        {"place": "Lund", "output": "Vega is blue.", "text": "Vega |is |blue."},
        1,
    ),
    "a request to an HTTP API": Case(
        "tide",
        "input: {harbour: brest}",
        """
http:
  - method: POST
    url: /tides/brest
    args: {json: {hours: 6}, query: {units: m}, headers: {x-station: "7"}}
    json: {high: 6.5}
    latency: 0.02
""",
        {"response": {"high": 6.5}},
        0,
    ),
    "a tool that uses httpx": station("by_httpx"),
    "a tool that uses httpx and is async": station("by_async_httpx"),
    "a tool that uses requests": station("by_requests"),
    "a tool that uses urllib": station("by_urllib"),
    "two such tools in one reply": Case(
        "station",
        "input: The wind?\ntools: {by_requests: real, by_async_httpx: real}",
        """
llm:
  - tool_calls: [{name: by_requests, args: {city: Kiel}}, {name: by_async_httpx, args: {city: Lund}}]
  - {reply: All calm.}
http:
  - {method: GET, url: /station/Kiel, json: {wind: 1}, latency: 0.05}
  - {method: GET, url: /station/Lund, json: {wind: 0}, latency: 0.02}
""",
        "All calm.",
        2,
    ),
    "an MCP server over HTTP": Case("library", "input: Le Guin?", CATALOGUE, "The Dispossessed.", 2),
    "an MCP server in a child process": Case("archive", "input: Le Guin?", CATALOGUE, "The Dispossessed.", 2),
    "a sub-agent": Case(
        "desk", UMBRELLA, WEATHER + "  - {when: 'request.prompt == \"Sum it up.\"', reply: Rain.}", "Rain.", 3
    ),
}


def record_and_replay(project: Project, case: Case) -> tuple[Outcome, Outcome]:
    scenario = project.scenario(case.agent, case.keys)
    with project.serving(case.served) as server:
        recorded = project.record(scenario)
    assert recorded.observed.error is None
    assert server.unused() == []
    return recorded, project.replay(scenario)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_recorded_runs_are_replayed(project: Project, case: Case) -> None:
    recorded, replayed = record_and_replay(project, case)
    assert recorded.observed.output == case.output
    assert recorded.observed.usage["llm_calls"] == case.calls
    assert recorded.observed.warnings == []
    assert told(replayed) == told(recorded)
    assert replayed.digest


# ------------------------------------------------------------ side by side

SLOW_FIRST = """
llm:
  - {when: 'request.prompt.contains("Kiel")', chunks: [Sun., " Sea."], latency: 0.5}
  - {when: 'request.prompt.contains("Lund")', chunks: [Snow.], latency: 0.4}
"""


@pytest.mark.parametrize(
    ("agent", "keys", "answers"),
    [
        (
            "places",
            "input: {}\nhandlers: {nothing: town_tools.nothing}",
            {"north": "Sun. Sea.", "south": "Snow."},
        ),
        (
            "shelf",
            "input: {iterated_word: [Kiel, Lund]}",
            {"collected_generated_text": ["Sun. Sea.", "Snow."]},
        ),
    ],
)
def test_calls_that_overlap_are_replayed_overlapping_in_the_order_of_their_answers(
    project: Project, agent: str, keys: str, answers: Any
) -> None:
    recorded, replayed = record_and_replay(project, Case(agent, keys, SLOW_FIRST, answers, 2))
    assert recorded.observed.output == answers
    one_by_one = sum(call["latency"] for call in recorded.observed.calls)
    assert 0.5 <= recorded.observed.latency["total"] <= one_by_one - 0.4
    assert told(replayed) == told(recorded)


# ------------------------------------------------------------ judges


@pytest.mark.parametrize("asked", ["rubric: It answers.", "metric: faithfulness"])
def test_a_judge_is_recorded_like_any_other_model(project: Project, asked: str) -> None:
    keys = UMBRELLA + f"\nexpect: {{judge: [{{{asked}, model: gpt-4o, threshold: 0.7}}]}}"
    grade = """  - {model: gpt-4o, json: {reason: It does., grade: 0.9}}"""
    scenario = project.scenario("weather", keys)
    with project.serving(WEATHER + grade):
        recorded = project.record(scenario)
    assert recorded.observed.grades == {"0": (0.9, "It does.")}
    assert told(project.replay(scenario)) == told(recorded)


# ------------------------------------------------------------ places and keys


@pytest.mark.parametrize("elsewhere", ["http://other.test/v1", "https://127.0.0.1:9/v1"])
def test_where_the_models_are_when_it_is_replayed_does_not_matter(
    project: Project, monkeypatch: pytest.MonkeyPatch, elsewhere: str
) -> None:
    scenario = project.scenario("weather", UMBRELLA)
    with project.serving(WEATHER):
        recorded = project.record(scenario)
    monkeypatch.setenv("OPENAI_BASE_URL", elsewhere)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    assert told(project.replay(scenario)) == told(recorded)


def test_the_cassette_has_the_address_of_models_but_no_key(project: Project) -> None:
    scenario = project.scenario("weather", UMBRELLA)
    with project.serving(WEATHER) as server:
        project.record(scenario)
    assert f"OPENAI_BASE_URL: {server.openai_url}" in project.read("cassettes/it/meta.yaml")
    assert all(KEY not in data.decode() for data in project.recorded_files().values())


# ------------------------------------------------------------ vcrpy alone


@contextmanager
def cassette_of_vcrpy(project: Project) -> Iterator[None]:
    with vcr.use_cassette(str(project.cassettes / "it/http.yaml"), record_mode="none"):
        yield


def test_vcrpy_alone_replays_the_cassette_to_the_bare_openai_client(project: Project) -> None:
    scenario = project.scenario("weather", UMBRELLA)
    with project.serving(WEATHER) as server:
        project.record(scenario)
    with (
        closing(openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0)) as client,
        cassette_of_vcrpy(project),
    ):
        replies = [client.chat.completions.create(model="gpt-4o-mini", messages=[]) for _ in range(2)]
    messages = [reply.choices[0].message.to_dict() for reply in replies]
    assert messages[0]["tool_calls"][0]["function"]["name"] == "forecast"  # type: ignore[index]
    assert messages[1]["content"] == "Yes, it rains."


def test_vcrpy_alone_replays_the_cassette_to_the_bare_anthropic_client(project: Project) -> None:
    scenario = project.scenario("outing", UMBRELLA)
    with project.serving(WEATHER) as server:
        project.record(scenario)
    with (
        closing(anthropic.Anthropic(base_url=server.anthropic_url, api_key="any", max_retries=0)) as client,
        cassette_of_vcrpy(project),
    ):
        replies = [client.messages.create(model="claude-sonnet", max_tokens=9, messages=[]) for _ in range(2)]
    blocks = [reply.content[0].to_dict() for reply in replies]
    assert blocks[0]["name"] == "forecast"
    assert blocks[1]["text"] == "Yes, it rains."


def test_vcrpy_alone_replays_a_stream(project: Project) -> None:
    scenario = project.scenario("speech", CASES["a streamed reply"].keys)
    with project.serving(CASES["a streamed reply"].served) as server:
        project.record(scenario)
    with (
        closing(openai.OpenAI(base_url=server.openai_url, api_key="any", max_retries=0)) as client,
        cassette_of_vcrpy(project),
    ):
        parts = list(client.chat.completions.create(model="gpt-4o-mini", messages=[], stream=True))
    texts = [part.choices[0].delta.content for part in parts if part.choices]
    assert "".join(text for text in texts if text) == "Vega is blue."


# ------------------------------------------------------------ what goes wrong


def test_a_model_that_its_client_calls_deprecated_answers_all_the_same(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    deprecated = anthropic.resources.messages.messages.DEPRECATED_MODELS
    monkeypatch.setitem(deprecated, "claude-sonnet", "the end of the year")
    recorded, replayed = record_and_replay(project, CASES["an Anthropic model and a tool"])
    assert recorded.passed
    assert told(replayed) == told(recorded)


def test_the_back_off_of_a_client_is_the_same_on_replay(project: Project) -> None:
    keys = "input: Hello!\ntools: {forecast: real}"
    served = "llm: [{error: {kind: rate_limit, retry_after: 0.7}}, Hello.]"
    recorded, replayed = record_and_replay(project, Case("weather", keys, served, "Hello.", 1))
    assert recorded.observed.output == "Hello."
    assert recorded.observed.latency["total"] >= 0.7  # by itself it waits at most 0.5 s
    assert project.recorded_files()["it/http.yaml"].decode().count("code: 429") == 1
    assert told(replayed) == told(recorded)


@pytest.mark.parametrize("agent", ["weather", "outing"])
def test_a_client_that_waits_at_random_waits_as_long_when_replayed(project: Project, agent: str) -> None:
    served = "llm: [{error: server_error}, Hello.]"
    recorded, replayed = record_and_replay(project, Case(agent, "input: Hello!", served, "Hello.", 1))
    assert recorded.observed.output == "Hello."
    assert recorded.observed.latency["total"] > 0.3
    assert told(replayed) == told(recorded)


def test_a_request_that_was_given_up_is_never_answered_when_replayed(project: Project) -> None:
    keys = "input: {place: Kiel}\nhandlers: {guess: town_tools.guess}"
    recorded, replayed = record_and_replay(project, Case("lookout", keys, "llm: [{error: timeout}]", None, 1))
    assert recorded.observed.path == ["look", "guess"]
    assert recorded.observed.latency["total"] == 1.0
    assert "timed out after 1 s" in recorded.observed.output["output"]
    assert told(replayed) == told(recorded)


@pytest.mark.parametrize(
    ("error", "named"),
    [
        ("auth", "AuthenticationError"),
        ("invalid_request", "BadRequestError"),
        ("context_length", "BadRequestError"),
        ("malformed", "Error"),
    ],
)
@pytest.mark.parametrize("agent", ["weather", "outing"])
def test_errors_of_a_provider_are_replayed(project: Project, agent: str, error: str, named: str) -> None:
    scenario = project.scenario(
        agent, f"input: Hello!\nexpect: {{status: failed, error: {{type: {{$contains: {named}}}}}}}"
    )
    with project.serving(f"llm: [{{error: {{kind: {error}, message: not today}}}}]"):
        recorded = project.record(scenario)
    assert recorded.verdict == "passed", recorded.observed.error
    assert told(project.replay(scenario)) == told(recorded)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("status: 404, text: unknown harbour", "completed"),
        ("status: 503, json: {error: maintenance}, headers: {retry-after: '9'}", "completed"),
        ("status: 204", "completed"),
        ("status: 302, headers: {location: /elsewhere}", "completed"),
        ("error: connection", "failed"),
        ("error: malformed", "completed"),
    ],
)
def test_errors_of_an_http_api_are_replayed(project: Project, answer: str, status: str) -> None:
    scenario = project.scenario("tide", f"input: {{harbour: brest}}\nexpect: {{status: {status}}}")
    with project.serving(f"http: [{{method: POST, url: /tides/brest, {answer}}}]"):
        recorded = project.record(scenario)
    assert recorded.verdict == "passed"
    assert told(project.replay(scenario)) == told(recorded)


def test_a_refused_connection_is_replayed(project: Project) -> None:
    project.replace("tide.yaml", "http://served.test", refusing_url())
    scenario = project.scenario("tide", "input: {harbour: brest}\nexpect: {status: failed}")
    recorded = project.record(scenario)
    assert recorded.observed.error is not None
    assert recorded.observed.error["type"] == "ConnectError"
    assert recorded.verdict == "passed"
    assert told(project.replay(scenario)) == told(recorded)
