"""Models on a server of one's own (`mesh.local` of LeafMesh) are asked at the whole address that is given.

They are really asked, over a socket, recorded and replayed. spec: "LocalModelConfig".
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from tests.recording.project import Project, told
from tests.world.loopback import CannedReply, Loopback, loopback, refusing_url
from tests.world.providers import completion

GENERATED = CannedReply(
    json={
        "model": "m",
        "response": "hi",
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 7,
        "eval_count": 3,
    }
)
ANSWERS = {"/v1/chat/completions": completion("hi"), "/api/generate": GENERATED}
MESH = """\
entry_points: [{name: ask, target: helper}]
agents:
  helper: {model: llama3, prompt: Be brief., max_tokens: 40}
"""
KEYS = "entry_point: ask\ninput: Hello\nexpect: {output: {response: hi}}"
SECRET = "vllm-key-7Rt0Lm2xP9"


def local(fields: str) -> str:
    return f"mesh: {{local: {{{fields}}}}}\n{MESH}"


def recorded(project: Project, mesh: str, keys: str = KEYS) -> Outcome:
    """Record a run of a mesh, which must pass, and return its replay, which must be equal."""
    project.write("mesh.yaml", mesh)
    scenario = project.scenario("mesh", keys)
    outcome = project.record(scenario)
    assert outcome.passed, outcome.observed.error
    replay = project.replay(scenario)
    assert told(replay) == told(outcome)
    return replay


def body(server: Loopback) -> Any:
    (asked,) = server.asked
    return asked.json


@pytest.mark.parametrize("path", ANSWERS)
@pytest.mark.parametrize("written", ["endpoint: 'URL'", "endpoint: 'URL', timeout: 20", ""])
def test_a_model_is_asked_at_the_whole_endpoint_and_replayed(
    project: Project, path: str, written: str
) -> None:
    with loopback(ANSWERS[path]) as server:
        url = f"{server.url}{path}"
        if not written:
            project.environment["LOCAL_MODEL_ENDPOINT"] = url
        replay = recorded(project, local(written.replace("URL", url)) if written else MESH)
    assert [(each.method, each.path) for each in server.asked] == [("POST", path)]
    assert replay.observed.usage["input_tokens"] == 7
    assert replay.observed.usage["output_tokens"] == 3
    assert body(server)["model"] == "llama3"


def test_ollama_gets_the_prompts_in_its_own_form(project: Project) -> None:
    with loopback(GENERATED) as server:
        recorded(project, local(f"endpoint: '{server.url}/api/generate'"))
    assert body(server) == {
        "model": "llama3",
        "system": "Be brief.",
        "prompt": "Hello",
        "stream": False,
        "options": {"temperature": 0.1, "num_predict": 40},
    }


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{type: object, required: [a]}", {"type": "object", "required": ["a"]}),
        ("{type: json_schema, json_schema: {name: n, schema: {type: object}}}", {"type": "object"}),
    ],
)
def test_ollama_gets_the_schema_of_the_answer(project: Project, written: str, expected: Any) -> None:
    answer = CannedReply(json={**GENERATED.json, "response": '{"a": 1}'})
    with loopback(answer) as server:
        mesh = local(f"endpoint: '{server.url}/api/generate'").replace(
            "40}", f"40, response_format: {written}}}"
        )
        recorded(project, mesh, KEYS.replace("{response: hi}", "{a: 1}"))
    assert body(server)["format"] == expected


@pytest.mark.parametrize("path", ANSWERS)
def test_the_headers_of_the_server_are_sent_and_their_secrets_are_not_kept(
    project: Project, path: str
) -> None:
    headers = "headers: {Authorization: 'Bearer ${VLLM_API_KEY:}', X-Team: red}"
    with loopback(ANSWERS[path]) as server:
        mesh = local(f"endpoint: '{server.url}{path}', {headers}")
        project.environment["VLLM_API_KEY"] = SECRET
        project.write("mesh.yaml", mesh)
        project.scenario("mesh", KEYS)
        project.replace("it.scenario.yaml", "manifest:", "env_passthrough: [VLLM_API_KEY]\nmanifest:")
        (scenario,) = load_file(project.folder / "it.scenario.yaml").scenarios
        outcome = project.record(scenario)
        assert outcome.passed, outcome.observed.error
        assert told(project.replay(scenario)) == told(outcome)
    (asked,) = server.asked
    assert (asked.headers["authorization"], asked.headers["x-team"]) == (f"Bearer {SECRET}", "red")
    assert project.recorded_files()
    assert not any(SECRET.encode() in each for each in project.recorded_files().values())


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/gateway", completion("hi")),
        ("/openai/deployments/x/chat/completions?api-version=1", completion("hi")),
        ("/api/generate?x=1", GENERATED),
    ],
)
def test_nothing_is_appended_to_an_endpoint(project: Project, path: str, answer: CannedReply) -> None:
    with loopback(answer) as server:
        recorded(project, local(f"endpoint: '{server.url}{path}'"))
    assert [each.path for each in server.asked] == [path]


def test_the_type_of_the_server_decides_unless_the_address_is_one_for_chats(project: Project) -> None:
    with loopback(GENERATED) as server:
        recorded(project, local(f"endpoint: '{server.url}/llm', server_type: ollama"))
    assert "prompt" in body(server)
    with loopback(completion("hi")) as server:
        recorded(project, local(f"endpoint: '{server.url}/v1/chat/completions', server_type: ollama"))
    assert "messages" in body(server)


def test_the_test_scenarios_of_a_mesh_are_recorded_with_the_variable_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = "{name: t, entry_point: ask, input: {message: Hello}, expected_outcome: {response: hi}}"
    project.write("config.yaml", f"{MESH}evolution: {{test_scenarios: [{test}]}}\n")
    with loopback(GENERATED) as server, monkeypatch.context() as patch:
        patch.setenv("LOCAL_MODEL_ENDPOINT", f"{server.url}/api/generate")
        result = CliRunner().invoke(cli, ["record", "config.yaml"])
        assert result.exit_code == 0, result.output
    replayed = CliRunner().invoke(cli, ["run", "config.yaml", "--json", "lines.jsonl"])
    assert replayed.exit_code == 0, replayed.output
    assert json.loads(project.read("lines.jsonl"))["verdict"] == "passed"


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (MESH, "nothing says where model 'llama3' is: set LOCAL_MODEL_ENDPOINT"),
        (
            local("server_type: textgen, endpoint: 'http://h/api/v1/generate'"),
            "of the type 'textgen', which cannot be asked",
        ),
        (
            local("endpoint: 'https://api-inference.huggingface.co/models/x'"),
            "of the type 'huggingface', which cannot",
        ),
        (local("endpoint: 'REFUSED/api/generate'"), "the provider of model 'llama3' cannot be reached"),
        (
            local("endpoint: 'REFUSED/v1/chat/completions'"),
            "the provider of model 'llama3' cannot be reached",
        ),
        (
            local("endpoint: 'REFUSED/api/generate'").replace("40}", "40, tools: [add]}"),
            "is offered tools, which /api/generate does not take",
        ),
    ],
)
def test_a_server_that_cannot_be_asked_ends_the_run(project: Project, mesh: str, message: str) -> None:
    project.write("mesh.yaml", mesh.replace("REFUSED", refusing_url()))
    outcome = project.record(project.scenario("mesh", KEYS))
    assert outcome.verdict == "error"
    assert outcome.observed.error is not None
    assert message in outcome.observed.error["message"]


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (
            CannedReply(status=404, json={"error": "model 'llama3' not found"}),
            "OllamaError",
            "status 404: model 'llama3'",
        ),
        (CannedReply(json={"choices": []}), "MalformedAnswerError", "has no text 'response'"),
    ],
)
def test_an_error_of_ollama_fails_the_agent(
    project: Project, answer: CannedReply, kind: str, message: str
) -> None:
    with loopback(answer) as server:
        project.write("mesh.yaml", local(f"endpoint: '{server.url}/api/generate'"))
        keys = f"entry_point: ask\ninput: Hello\nexpect: {{status: failed, error: {{type: {kind}}}}}"
        outcome = project.record(project.scenario("mesh", keys))
    assert outcome.passed, outcome.observed.error
    assert outcome.observed.error is not None
    assert message in outcome.observed.error["message"]
