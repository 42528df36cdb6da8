"""What versions after 25.4.1 bring: the checks of these fields and component types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.dialects.agentspec.plugins import serialize
from harness.dialects.agentspec.tool_calls import request
from harness.dialects.agentspec.tools import RemoteTool
from tests.dialects.agentspec.configurations import MODEL, agent
from tests.dialects.agentspec.loader import Loader

CONFIGS = Path(__file__).parent / "cases/configs"


@pytest.mark.parametrize(
    ("policy", "place", "code"),
    [
        ("{max_attempts: -1}", "-1", "bad-value"),
        ("{request_timeout: 0}", "0", "bad-value"),
        ("{jitter: some}", "some", "bad-value"),
        ("{attempts: 3}", "attempts", "unknown-key"),
        ("{initial_retry_delay: 9}", "{initial_retry_delay: 9}", "bad-value"),
    ],
)
def test_a_retry_policy_is_checked(loader: Loader, policy: str, place: str, code: str) -> None:
    model = MODEL.replace("model_id: m", f"model_id: m, retry_policy: {policy}")
    problem = loader.problem(agent(llm_config=model).replace("25.4.1", "26.1.2"))
    assert (problem.code, loader.place(problem)) == (code, place)


def test_a_retry_policy_in_an_earlier_version_is_refused_with_the_version_to_write(loader: Loader) -> None:
    model = MODEL.replace("model_id: m", "model_id: m, retry_policy: {max_attempts: 3}")
    problem = loader.problem(agent(llm_config=model, human_in_the_loop="false").replace("25.4.1", "25.4.2"))
    assert (problem.code, loader.place(problem)) == ("later-version", "retry_policy")
    assert problem.hint == "say agentspec_version: 26.1.2"


def test_a_run_may_pause_only_where_a_person_is_asked(loader: Loader) -> None:
    asks = agent(outputs="[{title: n, type: integer}]").replace("25.4.1", "25.4.2")
    assert loader.graph(asks).may_pause
    assert not loader.graph(asks + "human_in_the_loop: false\n").may_pause
    confirmed = "tools: [{component_type: ServerTool, name: pay, requires_confirmation: true}]\n"
    assert loader.graph(asks + "human_in_the_loop: false\n" + confirmed).may_pause


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        (
            "name: done, outputs: [{title: r, type: integer}]",
            "name: done, outputs: [{title: l, type: integer}]",
            "duplicate-property",
            "output 'l' of Flow 'right' is also an output of another of its flows",
        ),
        (
            "{component_type: StartNode, id: right_start, name: start, inputs: [{title: q, type: string}]}",
            "{component_type: StartNode, id: right_start, name: start, inputs: [{title: q, type: integer}]}",
            "property-type",
            "input 'q' of Flow 'right' is integer, in another flow string",
        ),
    ],
    ids=["output", "input"],
)
def test_flows_side_by_side_fit_each_other(
    loader: Loader, old: str, new: str, code: str, message: str
) -> None:
    text = (
        (CONFIGS / "side_by_side.yaml")
        .read_text(encoding="utf-8")
        .replace("    outputs: [{title: r, type: integer}]\n", "")
    )
    assert text.count(old) == 1
    told = {(problem.code, problem.message) for problem in loader.problems(text.replace(old, new))}
    assert (code, f"ParallelFlowNode 'both': {message}") in told


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("{title: found, type: string, default: none}]", "{title: found, type: string}]", "missing-default"),
        ("title: found,", "title: caught_exception_info,", "duplicate-property"),
        ("name: done,", "name: done, branch_name: caught_exception_branch,", "duplicate-branch"),
    ],
    ids=["default", "output", "branch"],
)
def test_a_flow_is_only_caught_with_defaults_and_free_names(
    loader: Loader, old: str, new: str, code: str
) -> None:
    head, table, parts = (CONFIGS / "caught.yaml").read_text(encoding="utf-8").partition("  risky:\n")
    text = head + table + parts.replace(old, new)
    assert text != head + table + parts
    told = [problem for problem in loader.problems(text) if problem.code == code]
    assert [problem.message.split(":")[0] for problem in told] == ["CatchExceptionNode 'attempt'"]


def test_a_node_that_catches_has_a_branch_more(loader: Loader) -> None:
    graph = loader.graph((CONFIGS / "caught.yaml").read_text(encoding="utf-8"))
    assert {edge.condition for edge in graph.edges if edge.source == "attempt"} == {
        "next",
        "caught_exception_branch",
    }
    assert graph.warnings == ()


def test_sensitive_headers_are_sent_with_the_others(loader: Loader) -> None:
    tool = "component_type: RemoteTool, name: t, url: 'http://x.test', http_method: GET, headers: {a: '1'}"
    text = agent(tools=f"[{{{tool}, sensitive_headers: {{b: '2'}}}}]").replace("25.4.1", "25.4.2")
    [remote] = loader.agent(text).tools
    assert isinstance(remote, RemoteTool)
    assert request(remote, {}).args["headers"] == {"a": "1", "b": "2"}


def test_a_header_is_not_given_twice(loader: Loader) -> None:
    tool = "component_type: RemoteTool, name: t, url: 'http://x.test', http_method: GET, headers: {a: '1'}"
    problem = loader.problem(
        agent(tools=f"[{{{tool}, sensitive_headers: {{a: '2'}}}}]").replace("25.4.1", "25.4.2")
    )
    assert (problem.code, loader.place(problem)) == ("bad-value", "'2'")


@pytest.mark.parametrize("api", ["chat_completions", "responses"])
def test_a_model_may_have_either_api(loader: Loader, api: str) -> None:
    model = MODEL.replace("model_id: m", f"model_id: m, api_type: {api}")
    assert loader.graph(agent(llm_config=model).replace("25.4.1", "25.4.2")).warnings == ()


def test_a_model_has_no_other_api(loader: Loader) -> None:
    model = MODEL.replace("model_id: m", "model_id: m, api_type: oci")
    problem = loader.problem(agent(llm_config=model).replace("25.4.1", "25.4.2"))
    assert (problem.code, loader.place(problem)) == ("bad-value", "oci")


def test_a_misspelt_type_is_compared_with_those_of_the_version(loader: Loader) -> None:
    text = "agentspec_version: 25.4.1\ncomponent_type: ParallelMapNod\nname: x\n"
    assert "ParallelMapNode" not in loader.problem(text).hint
    assert "ParallelMapNode" in loader.problem(text.replace("25.4.1", "25.4.2")).hint


@pytest.mark.parametrize(
    ("config", "old", "new", "code", "message"),
    [
        (
            "desk.yaml",
            "Agent, name: guard, description: Opens doors",
            "Agent, name: teller, description: Opens doors",
            "duplicate-name",
            "Swarm 'desk': two of its agents are called 'teller', by which they are addressed",
        ),
        (
            "desk.yaml",
            "{$component_ref: teller}, {$component_ref: auditor}",
            "{$component_ref: auditor}, {$component_ref: auditor}",
            "bad-value",
            "Swarm 'desk': Agent 'auditor' is related to itself",
        ),
        (
            "desk.yaml",
            "{component_type: Agent, name: guard, description: Opens doors, llm_config: {$component_ref: model}, "
            "system_prompt: You guard.}",
            "{component_type: OpenAiAgent, name: guard,"
            " llm_config: {component_type: OpenAiConfig, name: o, model_id: o}}",
            "unsupported",
            "Swarm 'desk': the OpenAiAgent 'guard' is not supported as one of its agents",
        ),
        (
            "crew.yaml",
            "workers:\n  - component_type: Agent",
            "workers:\n  - {$component_ref: boss}\n  - component_type: Agent",
            "bad-value",
            "ManagerWorkers 'crew': its manager is one of its workers",
        ),
    ],
    ids=["names", "itself", "kind", "manager"],
)
def test_the_agents_of_a_team_fit(
    loader: Loader, config: str, old: str, new: str, code: str, message: str
) -> None:
    text = (CONFIGS / config).read_text(encoding="utf-8")
    assert text.count(old) == 1
    text = text.replace(old, new)
    if "$component_ref: boss" in new:
        head, boss = text.split("group_manager: ", 1)
        boss, rest = boss.split("\n", 1)
        text = f"{head}group_manager: {{$component_ref: boss}}\n{rest}  boss: {boss}\n"
    assert (code, message) in {(problem.code, problem.message) for problem in loader.problems(text)}


@pytest.mark.parametrize("listed", ["", "inputs: []\n", "inputs: [{title: day, type: string}]\n"])
def test_a_team_has_the_inputs_of_its_agents_too(loader: Loader, listed: str) -> None:
    text = (CONFIGS / "crew.yaml").read_text(encoding="utf-8")
    graph = loader.graph(text.replace("name: crew\n", f"name: crew\n{listed}"))
    assert graph.warnings == ()
    wanted = {"place", "message", *(["day"] if "day" in listed else [])}
    assert set((graph.declared().input or {})["properties"]) == wanted


@pytest.mark.parametrize(
    ("pairs", "code", "place"),
    [
        ("[]", "bad-value", "[]"),
        ("[[{$component_ref: clerk}]]", "bad-value", "[{$component_ref: clerk}]"),
        ("[{$component_ref: clerk}]", "wrong-type", "{$component_ref: clerk}"),
        (
            "[[{$component_ref: clerk}, {$component_ref: model}]]",
            "wrong-component",
            "{$component_ref: model}",
        ),
    ],
)
def test_relationships_are_pairs_of_agents(loader: Loader, pairs: str, code: str, place: str) -> None:
    text = (CONFIGS / "desk.yaml").read_text(encoding="utf-8")
    head, rest = text.split("relationships:\n")
    written = rest[rest.index("$referenced") :]
    problem = loader.problem(f"{head}relationships: {pairs}\n{written}")
    assert (problem.code, loader.place(problem)) == (code, place)


@pytest.mark.parametrize(("flag", "condition"), [("true", "handoff_conversation"), ("false", "send_message")])
def test_a_handoff_may_be_a_flag(loader: Loader, flag: str, condition: str) -> None:
    text = (CONFIGS / "desk.yaml").read_text(encoding="utf-8")
    graph = loader.graph(text.replace("name: desk\n", f"name: desk\nhandoff: {flag}\n"))
    conditions = {edge.condition for edge in graph.edges if edge.source == "clerk_tools" and edge.condition}
    assert condition in conditions
    assert ("handoff_conversation" in conditions) == (flag == "true")


@pytest.mark.parametrize("config", ["desk.yaml", "crew.yaml", "crew_in_flow.yaml"])
def test_a_team_is_written_back(loader: Loader, config: str) -> None:
    read = loader.configuration((CONFIGS / config).read_text(encoding="utf-8"))
    written = serialize(read.root, read.plugins, version="25.4.2")
    again = loader.configuration(json.dumps(written), json=True)
    assert serialize(again.root, again.plugins, version="25.4.2") == written


MODELS = {
    "any": (
        "{component_type: LlmConfig, name: m, model_id: g, provider: xai, url: far, api_key: k}",
        "xai",
        "far",
    ),
    "gemini": (
        "{component_type: GeminiConfig, name: m, model_id: g, provider: google, url: null,"
        " auth: {component_type: GeminiAIStudioAuthConfig, name: a, api_key: {$component_ref: secret}}}",
        "google",
        None,
    ),
    "database": (
        "{component_type: DbmsVectorChainLlmConfig, name: m, model_id: g, provider: cohere, url: far,"
        " credential_name: c, connection_config: {component_type: MTlsOracleDatabaseConnectionConfig, name: c,"
        " user: {$component_ref: u}, password: p, dsn: d, wallet_location: w, wallet_password: p}}",
        "cohere",
        "far",
    ),
}


@pytest.mark.parametrize(("model", "provider", "url"), MODELS.values(), ids=MODELS)
def test_models_of_later_versions_are_called_by_their_provider(
    loader: Loader, model: str, provider: str, url: str | None
) -> None:
    read = loader.agent(agent(llm_config=model).replace("25.4.1", "26.3.1"))
    call = read.llm_config.call([])
    assert (call.name, call.provider, call.base_url) == ("g", provider, url)


@pytest.mark.parametrize(
    ("model", "code", "message"),
    [
        (
            "{component_type: DbmsVectorChainLlmConfig, name: m, model_id: g, provider: x, url: far}",
            "bad-value",
            "'m': either host or credential_name is needed",
        ),
        (
            "{component_type: GeminiConfig, name: m, model_id: g, provider: other,"
            " auth: {component_type: GeminiVertexAIAuthConfig, name: a}}",
            "unsupported",
            "'provider' other than text 'google', of Agent Spec 26.1.2, is not supported",
        ),
    ],
)
def test_models_of_later_versions_are_checked(loader: Loader, model: str, code: str, message: str) -> None:
    problem = loader.problem(agent(llm_config=model).replace("25.4.1", "26.3.1"))
    assert (problem.code, problem.message) == (code, message)


def test_a_provider_of_a_later_version_works_with_a_warning(loader: Loader) -> None:
    client = "{component_type: OciClientConfigWithInstancePrincipal, name: c, service_endpoint: e}"
    model = (
        "{component_type: OciGenAiConfig, name: m, model_id: g, compartment_id: c, provider: XAI,"
        f" client_config: {client}}}"
    )
    [warning] = loader.graph(agent(llm_config=model)).warnings
    assert (warning.code, loader.place(warning), warning.hint) == (
        "later-version",
        "XAI",
        "say agentspec_version: 26.1.2",
    )


def test_a_transport_may_authenticate_by_oauth(loader: Loader) -> None:
    oauth = (
        "{component_type: OAuthConfig, name: o, redirect_uri: here, scopes: [a],"
        " client: {component_type: OAuthClientConfig, name: c, type: pre_registered, client_id: {$component_ref: i}}}"
    )
    transport = f"{{component_type: SSETransport, name: s, url: far, auth: {oauth}}}"
    tools = f"[{{component_type: MCPTool, name: t, client_transport: {transport}}}]"
    assert loader.graph(agent(tools=tools).replace("25.4.1", "26.1.2")).warnings == ()
    assert {problem.code for problem in loader.problems(agent(tools=tools))} == {"later-version"}


@pytest.mark.parametrize(
    ("fields", "code", "place"),
    [
        ("max_num_messages: null", "bad-value", None),
        ("max_num_messages: 5", "bad-value", None),
        ("max_num_messages: 10", "bad-value", None),
        ("min_num_messages: 0", "bad-value", "0"),
        ("datastore: {$component_ref: model}", "wrong-component", "{$component_ref: model}"),
        (
            "datastore: {component_type: InMemoryCollectionDatastore, name: d, datastore_schema: {c: {}}}",
            "bad-schema",
            "{}",
        ),
    ],
)
def test_a_transform_is_checked(loader: Loader, fields: str, code: str, place: str | None) -> None:
    kind = "component_type: ConversationSummarizationTransform, name: t, llm: {$component_ref: model}"
    transform = f"{{{kind}, {fields}}}"
    text = agent(transforms=f"[{transform}]", llm_config="{$component_ref: model}").replace(
        "25.4.1", "26.1.2"
    )
    problem = loader.problem(f"{text}$referenced_components: {{model: {MODEL}}}\n")
    assert problem.code == code
    assert place is None or loader.place(problem) == place


ORACLE = "connection_config: {component_type: %s, name: c, user: {$component_ref: u}, password: {$component_ref: p}}"


@pytest.mark.parametrize(
    "datastore",
    [
        "component_type: InMemoryCollectionDatastore",
        f"component_type: OracleDatabaseDatastore, {ORACLE % 'TlsOracleDatabaseConnectionConfig'}",
        f"component_type: OracleDatabaseDatastore, {ORACLE % 'MTlsOracleDatabaseConnectionConfig'}",
    ],
)
def test_summaries_may_be_kept_in_any_datastore(loader: Loader, datastore: str) -> None:
    kept = f"{{{datastore}, name: d, datastore_schema: {{kept: {{type: object, properties: {{}}}}}}}}"
    kind = "component_type: MessageSummarizationTransform, name: t, cache_collection_name: kept"
    transform = f"{{{kind}, llm: {{$component_ref: model}}, datastore: {kept}}}"
    written = agent(transforms=f"[{transform}]", llm_config="{$component_ref: model}")
    text = f"{written}$referenced_components: {{model: {MODEL}}}\n"
    assert loader.graph(text.replace("25.4.1", "26.1.2")).warnings == ()
    assert {problem.hint for problem in loader.problems(text)} == {"say agentspec_version: 26.1.2"}
