"""The rules between the fields of a mesh: a sound one, and changes that break one rule each.

spec: "STRICT — fields by `agent_type`", "STRICT — `human_interface` rules", "Validation Rules"; NOTES 1.3 to 1.8.
"""

from __future__ import annotations

import pytest

from tests.dialects.leafmesh.meshes import with_change
from tests.dialects.leafmesh.opener import Opener

FIELDS = {
    "llm": (
        "model: m, prompt: p, temperature: 1, max_tokens: 1, max_completion_tokens: 1, reasoning: true,"
        "thinking: true, thinking_budget: 2048, enable_prompt_caching: true, response_format: {},"
        "optimization_strategy: cost,"
        "context_parts: {}, tools: [], tool_choice: auto, max_tool_calls_per_message: 1, tool_call_timeout: 1,"
        "allow_parallel_tool_calls: true, tool_categories: []"
    ),
    "human": (
        "human_interface: webhook, human_timeout_seconds: 1, human_context_template: t, human_prompt_template: t,"
        "fallback_on_timeout: true, fallback_response: {}, require_human_confirmation: true,"
        "human_escalation_triggers: [], operator_ids: [], webhook_config: {outbound_url: u}, channels: {}"
    ),
    "external": "framework: custom, connector_config: {}",
    "programmatic": "integration: n8n, connector_config: {webhook_url: u}",
}
"""The fields of each type, as the STRICT table has them."""
UNIVERSAL = (
    "description: d, communication_type: dual, parallel: true, max_concurrent: 1, wake_up: '@daily', yields: {},"
    "inputs: {}, can_call: [], narration: n, wait_for: [], wait_for_timeout: 1, auto_store_response: true,"
    "auto_store_yields: true, enforce_yields: true, enforce_yields_retry: 1, memory: true, knowledge: false,"
    "memory_limit: 1, is_human_powered: true"
)


def keys(fields: str) -> list[str]:
    return [
        field.split(":")[0] for field in fields.replace("{webhook_url: u}", "").replace(" ", "").split(",")
    ]


def mesh(fields: str) -> str:
    return f"entry_points: []\nagents:\n  a: {{{fields}}}\n"


@pytest.mark.parametrize("kind", FIELDS)
def test_the_fields_of_its_type_and_those_of_all_types_are_accepted(opener: Opener, kind: str) -> None:
    assert not opener.open(mesh(f"agent_type: {kind}, name: a, {FIELDS[kind]}, {UNIVERSAL}")).warnings


@pytest.mark.parametrize("kind", FIELDS)
def test_fields_of_other_types_are_refused_at_their_keys(opener: Opener, kind: str) -> None:
    needed = "framework: custom, " if kind == "external" else ""
    types_with_field: dict[str, list[str]] = {}
    for owner, theirs in FIELDS.items():
        for key in keys(theirs):
            if key not in keys(FIELDS[kind]):
                types_with_field.setdefault(key, []).append(owner)
    fields = ", ".join(f"{key}: {value(key)}" for key in types_with_field)
    found = opener.problems(mesh(f"agent_type: {kind}, {needed}{fields}"))
    assert [(problem.message, opener.place(problem)) for problem in found] == [
        (f"'{key}' of agent 'a' is not a field of {kind} agents", key) for key in types_with_field
    ]
    for problem, of in zip(found, types_with_field.values(), strict=True):
        assert all(owner in problem.hint for owner in of)


def value(key: str) -> str:
    """Any value that the field may have."""
    lists = ("tools", "tool_categories", "operator_ids", "human_escalation_triggers")
    return "[]" if key in lists else "{}" if key.endswith(("config", "channels", "parts", "format")) else "1"


def test_an_agent_without_a_type_is_an_llm_agent(opener: Opener) -> None:
    (problem,) = opener.problems(mesh("framework: crewai"))
    assert problem.message == "'framework' of agent 'a' is not a field of llm agents"


PROGRAM, CONFIG = "agent_type: programmatic", "connector_config"
WEBHOOK = "agent_type: human, human_interface: webhook"

# what is written of an agent, the message, and the place
AGENTS = [
    ("agent_type: external", "missing key 'framework' in an external agent", "{agent_type: external}"),
    ("agent_type: external, framework: null", "framework: expected one of crewai", "null"),
    (f"{PROGRAM}, {CONFIG}: {{a: 1}}", f"'{CONFIG}' of agent 'a' needs an 'integration'", CONFIG),
    (f"{PROGRAM}, integration: null, {CONFIG}: {{}}", "needs an 'integration'", CONFIG),
    *[
        (f"agent_type: human, {interface}{key}: {{}}", f"'{key}' of agent 'a' does nothing with", key)
        for interface in ("", "human_interface: default, ", "human_interface: api, ", "human_interface: custom, ")
        for key in ("webhook_config", "channels")
    ],
    (WEBHOOK, "needs webhook_config.outbound_url or channels", "webhook"),
    (f"{WEBHOOK}, channels: {{}}", "nowhere to send to", "webhook"),
    (f"{WEBHOOK}, webhook_config: {{outbound_url: ''}}", "nowhere to send to", "webhook"),
    ("name: b", "the name 'b' is not the key of its agent, 'a'", "b"),
    ("response_format: {type: text}", "or a list of different types, found text 'text'", "text"),
    ("response_format: {type: json_schema}", "needs a mapping 'schema' inside 'json_schema'", "{type: json_schema}"),
    ("response_format: {type: json_schema, json_schema: {schema: {minimum: x}}}", "is not a JSON Schema", "x"),
    ("response_format: {$ref: '#/$defs/pot', $defs: {pott: {}}}", "'#/$defs/pot' leads nowhere", "'#/$defs/pot'"),
    ("response_format: {items: {$ref: '#/items'}}", "the reference '#/items' leads in a circle", "'#/items'"),
    (
        "response_format: {title: t, items: {$ref: '#/title'}}",
        "'#/title' leads to something that is not a schema",
        "'#/title'",
    ),
    ("can_call: [{agent: b}]", "can_call: there is no agent 'b'", "b"),
    ("can_call: [{agent: a, condition: 1}]", "condition: expected text or true or false, found the number 1", "1"),
    ("can_call: [{agent: a, condition: 0.0}]", "expected text or true or false, found the number 0.0", "0.0"),
    ("can_call: [{agent: a, condition: x = 1}]", "the condition `x = 1` cannot be read: unexpected '='", "="),
    ("can_call: [{agent: a, condition: ''}]", "the condition `` cannot be read: it is empty", "''"),
    ("can_call: [{agent: a, condition: '  x =='}]", "cannot be read: it ends too early", "'"),
    ("can_call: [{agent: a, condition: __import__('os')}]", "cannot be read: unexpected '('", "("),
    ("can_call: [{agent: a, condition: 'x != []'}]", "unexpected '[' (an empty list is false: `not x`", "["),
    ("can_call: [{agent: a, condition: 'x not in [1]'}]", "unexpected 'not' (compare with each value", "n"),
    ("wait_for: a AND (b OR a)", "wait_for: there is no agent 'b'", "b"),
    ("wait_for: [a, b?]", "wait_for: there is no agent 'b'", "b"),
    ("wait_for: a AND", "the wait_for `a AND` cannot be read: it ends too early", "}"),
    ("wait_for: [a, b c]", "the wait_for `b c` cannot be read: unexpected 'c'", "c"),
    ("wait_for: [a, '']", "the wait_for `` cannot be read: it is empty", "''"),
    ("wait_for: [a, ' a OR']", "the wait_for `a OR` cannot be read: it ends too early", "'"),
    ("wait_for: a AND AND a", "cannot be read: unexpected 'AND'", "A"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "message", "place"), AGENTS)
def test_an_agent_that_breaks_a_rule(opener: Opener, fields: str, message: str, place: str) -> None:
    (problem,) = opener.problems(mesh(fields))
    assert message in problem.message
    assert opener.place(problem) == place


NEEDED = [
    ("external", "crewai", "{}", "'endpoint'"),
    ("external", "langgraph", "{graph_id: g}", "'endpoint'"),
    ("external", "autogen", "{endpoint: ''}", "'endpoint'"),
    ("external", "a2a", "{endpoint: e}", "'url'"),
    ("external", "mcp", "{command: npx}", "'tool_name'"),
    ("external", "mcp", "{tool_name: t, url: u}", "'command'"),
    ("external", "mcp", "{tool_name: t, transport: http, command: c}", "'url'"),
    ("external", "composio", "{}", "'action'"),
    ("programmatic", "n8n", "{}", "'webhook_url'"),
    ("programmatic", "zapier", "{mcp_key: k}", "'connection' or 'action'"),
]


@pytest.mark.parametrize(("kind", "connector", "config", "needed"), NEEDED)
def test_a_connector_without_an_address_is_refused(
    opener: Opener, kind: str, connector: str, config: str, needed: str
) -> None:
    field = "framework" if kind == "external" else "integration"
    errors = opener.problems(mesh(f"agent_type: {kind}, {field}: {connector}, connector_config: {config}"))
    (problem,) = (error for error in errors if error.severity == "error")
    assert (
        problem.message == f"connector_config of agent 'a' needs {needed}: it is a connector for {connector}"
    )
    assert opener.place(problem) == "connector_config"


def test_an_mcp_server_at_a_url_needs_the_transport_that_takes_it(opener: Opener) -> None:
    config = "connector_config: {tool_name: t, url: u}"
    problem = opener.problems(mesh(f"agent_type: external, framework: mcp, {config}"))[0]
    assert "write `transport: http`" in problem.hint


@pytest.mark.parametrize(
    ("connector", "variable", "field"),
    [
        ("crewai", "CREWAI_ENDPOINT", "endpoint"),
        ("langgraph", "LANGGRAPH_ENDPOINT", "endpoint"),
        ("langgraph", "LANGCHAIN_ENDPOINT", "endpoint"),
        ("autogen", "AUTOGEN_ENDPOINT", "endpoint"),
        ("a2a", "A2A_AGENT_URL", "url"),
        ("n8n", "N8N_WEBHOOK_URL", "webhook_url"),
    ],
)
@pytest.mark.parametrize("config", ["", ", connector_config: {{}}", ", connector_config: {{{field}: ''}}"])
def test_a_variable_stands_in_for_an_address_that_is_missing_or_empty(
    opener: Opener, connector: str, variable: str, field: str, config: str
) -> None:
    text = mesh(f"agent_type: external, framework: {connector}{config.format(field=field)}")
    mesh_file = opener.open(text, {variable: "http://from.env"})
    assert getattr(mesh_file.connectors["a"], field) == "http://from.env"
    hint = opener.problems(text)[0].hint
    assert variable in hint
    assert hint.endswith(" under 'env' in the scenario")


def test_what_is_written_goes_before_a_variable_and_the_first_variable_before_the_second(
    opener: Opener,
) -> None:
    env = {"LANGGRAPH_ENDPOINT": "first", "LANGCHAIN_ENDPOINT": "second", "LANGGRAPH_API_KEY": "key"}
    text = mesh("agent_type: external, framework: langgraph, connector_config: {endpoint: written}")
    connector = opener.open(text, env).connectors["a"]
    assert (connector.endpoint, connector.api_key) == ("written", "key")  # type: ignore[attr-defined]
    bare = opener.open(text.replace("written", "''"), env).connectors["a"]
    assert bare.endpoint == "first"  # type: ignore[attr-defined]


# what stands in the sound mesh, what stands there instead, the message, and the place
BETWEEN = [
    ("{name: ask, target: warden}", "{name: ask, target: wardn}", "there is no agent 'wardn'", "wardn"),
    ("{name: ask,", "{name: go,", "a second entry point 'go' (first in line 27)", "go"),
    ("kind == 'x' and not n > 2", "kind = 'x'", "the condition `kind = 'x'` cannot be read", "="),
    (
        "- {type: human_agent, agent: warden}",
        "- {type: human_agent}",
        "needs 'agent' or 'entry_point'",
        "{type",
    ),
    ("agent: warden}", "agent: wardn}", "the escalation target's agent: there is no agent 'wardn'", "wardn"),
    ("agent: warden}", "entry_point: gone}", "there is no entry point 'gone'", "gone"),
    ('url: "http://h", method', "method", "an escalation target of type webhook needs 'url'", "{type"),
    ('channel_id: "#a", ', "", "an escalation target of type channel needs 'channel_id'", "{type"),
    ("\n  last:", "\n  __start__:", "'__start__' is not a name for an agent", "__start__"),
    ("\n  last:", "\n  guide:", "key 'guide' is given twice", "guide"),
    ("\n  last:", "\n  5:", "this key is read as a number, not as text", "5"),
    ("\n  last:", "\n  on:", "this key is read as a boolean, not as text", "on"),
]


@pytest.mark.parametrize(("old", "new", "message", "place"), BETWEEN)
def test_a_mesh_that_breaks_a_rule(opener: Opener, old: str, new: str, message: str, place: str) -> None:
    (problem,) = opener.problems(with_change(old, new))
    assert message in problem.message
    assert opener.place(problem).startswith(place)


CRON = "*/5 0-6,22 * jan-mar mon"
DOUBTS = [
    ("method: PUT,", "channel_id: c,", "'channel_id' does nothing in an escalation target", "channel_id"),
    (
        "{{session_id}}",
        "{{sesion_id}}",
        "payload_template: nothing fills '{{sesion_id}}'",
        '{a: "{{sesion_id}}"}',
    ),
    ('"{{message}}"', '"{{mesage}}"', "message_template: nothing fills '{{mesage}}'", '"{{mesage}}"'),
    (CRON, "0 9 * *", "is not a cron expression: it has 4 fields instead of 5", '"0 9 * *"'),
    (CRON, "60 * * * *", "is not a cron expression: '60' is not a valid minute", '"60 * * * *"'),
    (CRON, "0 9 * * 1-8", "'1-8' is not a valid day of the week", '"0 9 * * 1-8"'),
    (CRON, "0 9 0 * *", "'0' is not a valid day of the month", '"0 9 0 * *"'),
    ("entry_point: go,", "entry_point: gone,", "a test scenario enters 'gone', which is neither", "gone"),
    ("entry_point: go, ", "", "a test scenario enters 'test', which is neither", None),
    (
        "type: object, fields: {n: number}",
        "type: list, fields: {n: number}",
        "'fields' does nothing in a",
        "fields",
    ),
    ("fields: {n: number}", "fields: {n: {type: list, fields: {k: list}}}", "a field of type list", "fields"),
    (
        "{kind: string,",
        "{kind: integer,",
        "unknown type 'integer' in yields: nothing is checked against it",
        "integer",
    ),
    ("fields: {n: number}", "fields: {n: {type: array}}", "unknown type 'array' in yields", "array"),
    ("yields: {kind:", "inputs: {x: any}\n    yields: {kind:", "unknown type 'any' in inputs", "any"),
    ("\n  last:", "\n  summarizer:", "has the name of the Summarizer", "summarizer"),
    (
        "response_format: {type: object,",
        "response_format: {requierd: [a],",
        "'requierd' is not a keyword",
        "requierd",
    ),
    (
        "response_format: {type: object,",
        "response_format: {$ref: 'http://h',",
        "leads out of the schema",
        "'http://h'",
    ),
]


@pytest.mark.parametrize(("old", "new", "message", "place"), DOUBTS)
def test_probable_mistakes_are_warnings(
    opener: Opener, old: str, new: str, message: str, place: str | None
) -> None:
    (warning,) = opener.open(with_change(old, new)).warnings
    assert message in warning.message
    assert place is None or opener.place(warning) == place


def test_all_errors_are_reported_at_once_in_file_order(opener: Opener) -> None:
    text = """\
agents:
  a: {agent_type: human, tools: [], human_timeout_seconds: 0}
  b: {can_call: [{agent: c, condition: x = 1}]}
  c: {agent_type: external, framework: n8n}
entry_points: [{name: go, target: d}]
workflows: {}
"""
    places = [problem.span for problem in opener.problems(text)]
    assert [(place.line, place.column) for place in places if place] == [
        (2, 26), (2, 60), (3, 42), (4, 6), (5, 35), (6, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (mesh("can_call: [a]"), "write can_call: [{agent: writer}]"),
        (mesh("can_call: [{}]"), "write agent: writer"),
        (mesh("wait_for: 5"), "write wait_for: reader AND checker"),
        (mesh("knowledge: {}"), "write serviceName: handbook"),
        (mesh("yields: {a: {}}"), "write type: object"),
        ("agents: {a: {}}\nentry_points: [{target: a}]", "write name: order"),
        ("agents: {a: {}}\nentry_points: [{name: a}]", "write target: intake"),
        ("agents: {a: {}}\nentry_points: []\nauto_discover: {}", "write directory: agency"),
    ],
)
def test_hints_show_how_to_write_a_missing_key(opener: Opener, text: str, hint: str) -> None:
    (problem,) = opener.problems(text)
    assert problem.hint == hint


def test_a_misspelt_key_is_reported_with_the_missing_key(opener: Opener) -> None:
    problems = opener.problems(mesh("agent_type: external, framwork: n8n"))
    assert [(problem.severity, problem.hint) for problem in problems] == [
        ("error", ""),
        ("warning", "did you mean 'framework'?"),
    ]
    assert problems[0].code == "missing-key"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "the file is empty", (1, 1)),
        ("- a\n", "expected a mapping, found a list", (1, 1)),
        ("mesh\n", "expected a mapping, found text 'mesh'", (1, 1)),
        ("name: x\n", "the mesh has no agents", (1, 1)),
        ("name: x\nagents: {}\n", "the mesh has no agents", (2, 1)),
        ("agents:\n", "agents: expected a mapping, found nothing", (1, 8)),
        ("agents: [{name: a}]\n", "agents: expected a mapping, found a list", (1, 9)),
        ("agents: {a: 5}\nentry_points: []\n", "a: expected a mapping, found the number 5", (1, 13)),
        ("agents: {a: {}}\nentry_points: {a: b}\n", "entry_points: expected a list", (2, 15)),
        (
            "agents: {a: {}}\nentry_points: [a]\n",
            "entry_points[0]: expected a mapping, found text 'a'",
            (2, 16),
        ),
        ("agents: {a: {prompt: 'x\n", "this ' is never closed", (1, 22)),
        ("agents: " + "[" * 200, "nested more than 100 levels deep", (1, 108)),
        ("agents: {a: {}}\nentry_points: []\n---\na: b\n", "a second YAML document in one file", (3, 1)),
    ],
)
def test_malformed_files(opener: Opener, text: str, message: str, place: tuple[int, int]) -> None:
    (problem,) = opener.problems(text)
    assert message in problem.message
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == place
