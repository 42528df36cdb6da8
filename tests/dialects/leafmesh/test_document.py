"""The values of a mesh file: what each field takes, its ends of range and its default. NOTES 1.2, 1.5."""

from __future__ import annotations

import pytest

from harness.dialects.leafmesh.document import ExternalAgent, HumanAgent, LLMAgent
from tests.dialects.leafmesh.meshes import MESH, with_change
from tests.dialects.leafmesh.opener import Opener

# what stands in the sound mesh, what stands there instead, the message about it and where it points to
REFUSED = [
    # top level
    ("log_level: INFO", "log_level: info", "log_level: expected one of DEBUG, INFO, WARNING", "info"),
    ("managed_mesh", "p2p", "architecture: expected managed_mesh, found text 'p2p'", "p2p"),
    ("environment: development", "environment: test", "environment: expected one of development", "test"),
    ('version: "1.0.0"', "version: 1.0", "version: expected text, found the number 1.0", "1.0"),
    ("architecture: managed_mesh", "debug: maybe", "debug: expected true or false", "maybe"),
    ("log_level: INFO", "workflows: []", "unknown key 'workflows' in a mesh file", "workflows"),
    # infrastructure
    ("${REDIS_PORT:6379}", "${REDIS_PORT:many}", "port: expected a whole number", "${REDIS_PORT:many}"),
    ("${REDIS_PORT:6379}", "65536", "port: must be less than or equal to 65535", "65536"),
    ("ssl_cert_reqs: none", "ssl_cert_reqs: never", "ssl_cert_reqs: expected one of required", "never"),
    ('["http://h:1"]', "[localhost]", "cors_origins: expected an origin", "localhost"),
    ("{bird: {type: object,", "{bird: {type: int,", "type: expected one of object, string", "int"),
    ("{project: p}", "{location: l}", "missing key 'project' in vertex", "{location: l}"),
    ("{endpoint: \"https://f\"}", "{}", "missing key 'endpoint' in foundry", "{}"),
    ("server_type: openai", "server_type: vllm", "server_type: expected one of openai, ollama", "vllm"),
    ("timeout: 120", "timeout: 0", "timeout: must be greater than 0", "0"),
    # manager
    ("domain: generic", "domain: shop", "domain: expected one of generic, ecommerce", "shop"),
    ("mode: static", "mode: fast", "mode: expected one of static, learning", "fast"),
    ("memory_size: 1000", "memory_size: 1001", "memory_size: must be less than or equal to 1000", "1001"),
    ("confidence_threshold: 1.0", "confidence_threshold: 1.1", "confidence_threshold: must be less", "1.1"),
    ("confidence_threshold: 1.0", "confidence_threshold: true", "expected a number, found true", "true"),
    ("decay_days: 365", "fallback: none", "fallback: expected all, found text 'none'", "none"),
    ("max_retries: 0}\nentry", "max_retries: -1}\nentry", "max_retries: must be greater than or equal to 0", "-1"),
    ("method: PUT", "method: GET", "method: expected one of POST, PUT, PATCH", "GET"),
    ("provider: slack", "provider: irc", "provider: expected one of slack, telegram", "irc"),
    ("{type: human_agent, agent: warden}", "{agent: warden}", "missing key 'type'", "{agent: warden}"),
    ("type: human_agent", "type: pager", "type: expected one of human_agent, webhook, channel", "pager"),
    # entry points
    ("{name: ask, target: warden}", "{target: warden}", "missing key 'name' in an entry point", "{target: warden}"),
    ("name: ask, target: warden", "name: ask", "missing key 'target' in an entry point", "{name: ask}"),
    # every agent
    ("agent_type: llm", "agent_type: robot", "agent_type: expected one of llm, human, programmatic", "robot"),
    ("agent_type: llm", "communication_type: all", "communication_type: expected one of dual, chain", "all"),
    ("agent_type: llm", "max_concurrent: 0", "max_concurrent: must be greater than or equal to 1", "0"),
    ("wait_for_timeout: 1", "wait_for_timeout: 0", "wait_for_timeout: must be greater than or equal", "0"),
    ("enforce_yields_retry: 0", "enforce_yields_retry: -1", "enforce_yields_retry: must be greater", "-1"),
    ("enforce_yields_retry: 0", "memory_limit: 101", "memory_limit: must be less than or equal to 100", "101"),
    ("{kind: string,", "{kind: strng,", "kind: expected one of string, number, boolean, list", "strng"),
    ("{n: number}", "{n: numbr}", "n: expected one of string, number, boolean, list, object", "numbr"),
    ("{n: number}", "{n: {type: bool}}", "type: expected one of string, number, boolean, list, object", "bool"),
    ("{n: number}", "{n: {fields: {}}}", "missing key 'type' in a nested field", "{fields: {}}"),
    ("strategy: hybrid", "strategy: best", "strategy: expected one of recency, relevance, hybrid", "best"),
    ("limit: 100", "limit: 101", "limit: must be less than or equal to 100", "101"),
    ("limit: 100", "cross_session_limit: 501", "cross_session_limit: must be less than or equal to 500", "501"),
    ("limit: 100", "recency_weight: 1.01", "recency_weight: must be less than or equal to 1", "1.01"),
    ("decay_hours: 1", "decay_hours: 0", "decay_hours: must be greater than or equal to 1", "0"),
    ("{serviceName: docs}", "{groupName: g}", "missing key 'serviceName' in a knowledge", "{groupName: g}"),
    ("{serviceName: docs}", "true", "knowledge: expected false, or a mapping with 'serviceName'", "true"),
    ("- {agent: rota}", "- rota", "can_call[1]: expected a mapping, found text 'rota'", "rota"),
    ("- {agent: rota}", "- {condition: a}", "missing key 'agent' in an entry of can_call", "{condition: a}"),
    ("- {agent: rota}", "- {agent: rota, conditon: a}", "unknown key 'conditon' in an entry of can_call", "conditon"),
    ("deep: {type: object, fields: {n: number}}", "deep: {fields: {}}", "missing key 'type' in", "{fields: {}}"),
    # llm agents
    ("temperature: 2", "temperature: 2.01", "temperature: must be less than or equal to 2", "2.01"),
    ("temperature: 2", "temperature: -0.1", "temperature: must be greater than or equal to 0", "-0.1"),
    ("temperature: 2", "temperature: warm", "temperature: expected a number, found text 'warm'", "warm"),
    ("temperature: 2", "temperature: .nan", "temperature: must be less than or equal to 2, found the", ".nan"),
    ("temperature: 2", "max_tokens: 0", "max_tokens: must be greater than or equal to 1", "0"),
    ("temperature: 2", "max_completion_tokens: 0", "max_completion_tokens: must be greater", "0"),
    ("temperature: 2", "thinking_budget: 1023", "thinking_budget: must be greater than or equal", "1023"),
    ("temperature: 2", "thinking_budget: 32769", "thinking_budget: must be less than or equal", "32769"),
    ("temperature: 2", "optimization_strategy: best", "expected one of performance, cost, speed", "best"),
    ("temperature: 2", "tool_choice: ''", "tool_choice: must have at least 1 character", "''"),
    ("temperature: 2", "tool_call_timeout: 0", "tool_call_timeout: must be greater than 0", "0"),
    ("temperature: 2", "tool_call_timeout: 301", "tool_call_timeout: must be less than or equal to 300", "301"),
    ("max_tool_calls_per_message: 20", "max_tool_calls_per_message: 21", "must be less than or equal to 20", "21"),
    ("max_tool_calls_per_message: 20", "max_tool_calls_per_message: -1", "must be greater than or equal", "-1"),
    ("max_tool_calls_per_message: 20", "max_tool_calls_per_message: true", "expected a whole number", "true"),
    ("tools: [look]", "tools: look", "tools: expected a list, found text 'look'", "look"),
    ("care: kind", "care: 5", "care: expected text, found the number 5", "5"),
    # human agents
    ("human_interface: webhook", "human_interface: mail", "human_interface: expected one of default", "mail"),
    ("human_timeout_seconds: 3600", "human_timeout_seconds: 3601", "human_timeout_seconds: must be less", "3601"),
    ("human_timeout_seconds: 3600", "human_timeout_seconds: 0", "human_timeout_seconds: must be greater", "0"),
    ("fallback_response: {a: 1}", "fallback_response: no", "fallback_response: expected a mapping", "no"),
    ("channels: {slack:", "channels: {irc:", "irc: expected one of slack, telegram, discord", "irc"),
    # connectors
    ("framework: crewai", "framework: crew", "framework: expected one of crewai, langgraph", "crew"),
    ("integration: n8n", "integration: crewai", "integration: expected one of zapier, composio, n8n", "crewai"),
    ("mode: callback", "mode: async", "mode: expected one of sync, callback, found text 'async'", "async"),
    ("callback_timeout: 1", "callback_timeout: 0", "callback_timeout: must be greater than 0", "0"),
    ('{endpoint: "http://c", mode: callback, callback_timeout: 1}', "[]", "connector_config: expected", "[]"),
    # evolution
    ("population_size: 1", "population_size: 0", "population_size: must be greater than or equal to 1", "0"),
    ("mutation_rate: 1", "mutation_rate: 1.5", "mutation_rate: must be less than or equal to 1", "1.5"),
    ("mutation_rate: 1", "crossover_rate: -1", "crossover_rate: must be greater than or equal to 0", "-1"),
    ("[tool_selection]", "[flip]", "mutation_types[0]: expected one of prompt_variation", "flip"),
    ("weight: 2.0", "weight: -1", "weight: must be greater than or equal to 0", "-1"),
    ("weight: 2.0", "wieght: 1", "unknown key 'wieght' in a test scenario", "wieght"),
]  # fmt: skip


def test_the_base_mesh_is_valid(opener: Opener) -> None:
    mesh_file = opener.open(MESH)
    assert not mesh_file.warnings
    assert list(mesh_file.connectors) == ["crew", "rota"]


@pytest.mark.parametrize(
    ("old", "new", "message", "place"), REFUSED, ids=[f"{new} for {old}" for old, new, *_ in REFUSED]
)
def test_a_value_is_refused_where_it_stands(
    opener: Opener, old: str, new: str, message: str, place: str
) -> None:
    (problem,) = opener.problems(with_change(old, new))
    assert message in problem.message
    assert opener.place(problem) == place


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("temperature: 2", 'temperature: "0.5"'),
        ("temperature: 2", "temperature: 0"),
        ("temperature: 2", "thinking_budget: 1024"),
        ("temperature: 2", "thinking_budget: 32768"),
        ("temperature: 2", "tool_call_timeout: 300"),
        ("temperature: 2", "model: bedrock/amazon.titan-text-premier-v1:0"),
        ("temperature: 2", "model: our own model"),
        ("temperature: 2", "reasoning: yes"),
        ("temperature: 2", "max_concurrent: null"),
        ("max_tool_calls_per_message: 20", "max_tool_calls_per_message: 0"),
        ("human_timeout_seconds: 3600", "human_timeout_seconds: 1"),
        ("limit: 100", "limit: 1"),
        ("{serviceName: docs}", "false"),
        ("{strategy: hybrid, limit: 100, decay_hours: 1}", "true"),
        ("confidence_threshold: 1.0", "confidence_threshold: 0"),
        ('"crew AND (rota OR warden?)"', "[crew, rota]"),
        ('"crew AND (rota OR warden?)"', '""'),
        ("agent_type: human\n", "agent_type: human\n    is_human_powered: false\n"),
    ],
)
def test_a_value_is_accepted(opener: Opener, old: str, new: str) -> None:
    assert not opener.open(with_change(old, new)).warnings


def test_the_defaults_are_those_of_the_reference(opener: Opener) -> None:
    text = """\
agents:
  plain: {}
  human: {agent_type: human}
  outside: {agent_type: external, framework: custom}
entry_points: []
"""
    mesh = opener.open(text).mesh
    plain, human, outside = mesh.agents["plain"], mesh.agents["human"], mesh.agents["outside"]
    assert isinstance(plain, LLMAgent)
    assert isinstance(human, HumanAgent)
    assert isinstance(outside, ExternalAgent)
    assert (plain.agent_type, plain.model, plain.temperature, plain.max_tokens) == (
        "llm",
        "gpt-4o-mini",
        0.1,
        800,
    )
    assert (plain.communication_type, plain.parallel, plain.max_concurrent) == ("dual", False, None)
    assert (plain.wait_for_timeout, plain.tool_call_timeout, plain.max_tool_calls_per_message) == (
        60,
        30.0,
        5,
    )
    assert (plain.enforce_yields, plain.enforce_yields_retry, plain.memory_post_limit) == (False, 0, 0)
    assert (human.human_interface, human.human_timeout_seconds, human.fallback_on_timeout) == (
        "api",
        300,
        True,
    )
    assert (mesh.name, mesh.log_level, mesh.redis.port, mesh.mesh.call_timeout) == (
        "default_mesh",
        "INFO",
        6379,
        30,
    )
    assert (mesh.manager.enabled, mesh.manager.routing.mode, mesh.manager.escalation) == (
        True,
        "static",
        None,
    )
    assert (mesh.evolution.population_size, mesh.evolution.generations, mesh.evolution.elite_size) == (
        20,
        50,
        2,
    )


@pytest.mark.parametrize("agents", ["{summarizer: {}}", "{other: {}}"])
def test_without_entry_points_the_default_one_leads_to_the_summarizer_if_it_is_an_agent(
    opener: Opener, agents: str
) -> None:
    mesh_file = opener.open(f"agents: {agents}")
    there = "summarizer" in agents
    assert [(entry.name, entry.target) for entry in mesh_file.mesh.entry_points] == [
        ("default_entry", "summarizer")
    ] * there
    assert [warning.code for warning in mesh_file.warnings] == ["no-entry-point"] * (not there)


# a section, a key that it does not have, and what was meant
UNKNOWN = [
    ("redis: {", "redis: {hots: a, ", "hots", "in redis", "did you mean 'host'?"),
    ("{region: r}", "{regoin: r}", "regoin", "in bedrock", "did you mean 'region'?"),
    ("domain: generic", "modle: gpt-4o", "modle", "in a manager", "did you mean 'model'?"),
    ("{mode: static,", "{moode: static,", "moode", "in a routing", "did you mean 'mode'?"),
    ("name: guide\n", "naration: x\n", "naration", "in an llm agent", "did you mean 'narration'?"),
    ("name: guide\n", "type: human\n", "type", "in an llm agent", "did you mean 'agent_type'?"),
    ("name: guide\n", "mood_lamp: x\n", "mood_lamp", "in an llm agent", ""),
    ("{outbound_url:", "{max_retry: 1, outbound_url:", "max_retry", "webhook_config", "did you mean 'max_retries'?"),
    ("callback_timeout: 1", "api_kee: a", "api_kee", "connector_config for crewai", "did you mean 'api_key'?"),
    ("callback_timeout: 1", "workflow_id: 1", "workflow_id", "connector_config for crewai", ""),
    ("{name: ask,", "{nmae: a, name: ask,", "nmae", "in an entry point", "did you mean 'name'?"),
    ("- {agent: rota}", "- {agent: rota, priority: 1}", "priority", "in an entry of can_call", ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "place", "section", "hint"), UNKNOWN)
def test_an_unknown_key_below_the_top_is_ignored_with_a_warning(
    opener: Opener, old: str, new: str, place: str, section: str, hint: str
) -> None:
    (warning,) = opener.open(with_change(old, new)).warnings
    assert (warning.code, warning.severity, warning.hint) == ("unknown-key", "warning", hint)
    assert opener.place(warning) == place
    assert section in warning.message


def test_notes_report_settings_without_effect(opener: Opener) -> None:
    mesh = MESH.replace("mode: static", "mode: learning").replace("    enforce_yields: true\n", "")
    notes = opener.open(mesh.replace("    enforce_yields_retry: 0\n", "")).notes
    assert {note.severity for note in notes} == {"note"}
    assert [note.message.removesuffix(" changes nothing in a simulated run") for note in notes] == [
        f"'{name}'"
        for name in (
            "environment", "log_level", "redis", "api", "data_structures", "mesh", "manager.domain",
            "manager.routing.mode: learning", "manager.human_input_rules", "manager.human_response_rules",
            "memory.strategy: hybrid", "wake_up",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "notes"),
    [
        (
            "a: {narration: n}}\nmanager: {enabled: false, prompt: p, escalation: {}}",
            [
                "'narration' of agent 'a' changes nothing without `manager.enabled: true`",
                "'manager.prompt' changes nothing without a `narration` of an agent for it to read",
                "'manager.escalation' changes nothing without `manager.enabled: true`",
            ],
        ),
        (
            "a: {narration: n}}\nmanager: {can_intervene: false}",
            ["'narration' of agent 'a' changes nothing without `manager.can_intervene: true`"],
        ),
        (
            "a: {}}\nmanager: {model: m}",
            ["'manager.model' changes nothing without a `narration` of an agent"],
        ),
        ("a: {narration: n}}\nmanager: {model: m, prompt: p, escalation: {}}", []),
        (
            "a: {agent_type: human, knowledge: {serviceName: s}}}",
            ["'knowledge' of agent 'a' changes nothing in a simulated run: only llm agents look it up"],
        ),
        ("a: {agent_type: human, knowledge: {serviceName: s, enabled: false}}}", []),
        (
            "a: {agent_type: human, is_human_powered: true}}",
            ["'is_human_powered' changes nothing in a simulated run"],
        ),
        (
            "a: {agent_type: external, framework: n8n, connector_config: {webhook_url: u, callback_timeout: 5}}}",
            ["'callback_timeout' of agent 'a' changes nothing without `mode: callback`"],
        ),
        (
            "a: {agent_type: external, framework: mcp, connector_config: {tool_name: t, command: c, url: u}}}",
            ["'url' of agent 'a' changes nothing without `transport: http`"],
        ),
        (
            "a: {agent_type: external, framework: mcp, connector_config: "
            "{tool_name: t, transport: http, url: u, args: [], env: {}}}}",
            [
                "'args' of agent 'a' changes nothing without `transport: stdio`",
                "'env' of agent 'a' changes nothing without `transport: stdio`",
            ],
        ),
    ],
)
def test_notes_report_settings_that_nothing_reads(opener: Opener, written: str, notes: list[str]) -> None:
    found = [note.message for note in opener.open(f"entry_points: []\nagents: {{{written}").notes]
    assert len(found) == len(notes)
    assert all(note.startswith(start) for note, start in zip(found, notes, strict=True))


def test_a_note_counts_its_places(opener: Opener) -> None:
    text = "agents: {a: {thinking: true}, b: {thinking: false}, c: {thinking: true}}\nentry_points: []"
    (note,) = opener.open(text).notes
    assert note.message.endswith("run, here and at 1 more")
    assert str(note.span).endswith(":1:14")
