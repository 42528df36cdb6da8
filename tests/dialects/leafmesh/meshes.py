"""A valid mesh with every section and every agent type, and variants of it with one part replaced."""

MESH = """\
name: "fair"
version: "1.0.0"
architecture: managed_mesh
environment: development
log_level: INFO
redis: {host: "${REDIS_HOST:localhost}", port: ${REDIS_PORT:6379}, ssl_cert_reqs: none}
api: {cors_origins: ["http://h:1"]}
data_structures: {bird: {type: object, properties: {ring: {type: string}}, required: [ring]}}
mesh:
  call_timeout: 30
  bedrock: {region: r}
  vertex: {project: p}
  foundry: {endpoint: "https://f"}
  local: {server_type: openai, timeout: 120}
manager:
  domain: generic
  routing: {mode: static, memory_size: 1000, confidence_threshold: 1.0, decay_days: 365}
  human_input_rules: {max_agent_requests: 5}
  human_response_rules: {approval: {auto_escalate: false}}
  escalation:
    targets:
      - {type: human_agent, agent: warden}
      - {type: webhook, url: "http://h", method: PUT, payload_template: {a: "{{session_id}}"}}
      - {type: channel, provider: slack, channel_id: "#a", message_template: "{{message}}"}
    auto_escalate: {max_retries: 0}
entry_points:
  - {name: go, target: guide, condition: "kind == 'x' and not n > 2"}
  - {name: ask, target: warden}
agents:
  guide:
    agent_type: llm
    name: guide
    temperature: 2
    max_tool_calls_per_message: 20
    prompt: "Greet ${WHO:the: guest}."
    context_parts: {care: kind, own: words}
    tools: [look]
    response_format: {type: object, properties: {a: {type: string}}}
    yields: {kind: string, deep: {type: object, fields: {n: number}}}
    memory: {strategy: hybrid, limit: 100, decay_hours: 1}
    knowledge: {serviceName: docs}
    wake_up: "*/5 0-6,22 * jan-mar mon"
    can_call:
      - {agent: crew, condition: "calling_agent_response.kind == 'x'"}
      - {agent: rota}
    narration: Sometimes the warden.
  warden:
    agent_type: human
    human_interface: webhook
    human_timeout_seconds: 3600
    webhook_config: {outbound_url: "http://h", max_retries: 0}
    channels: {slack: {bot_token: "${SLACK:}", own: 1}}
    fallback_response: {a: 1}
  crew:
    agent_type: external
    framework: crewai
    connector_config: {endpoint: "http://c", mode: callback, callback_timeout: 1}
  rota:
    agent_type: programmatic
    integration: n8n
    connector_config: {webhook_url: "http://n"}
  last:
    wait_for: "crew AND (rota OR warden?)"
    wait_for_timeout: 1
    enforce_yields: true
    enforce_yields_retry: 0
evolution:
  population_size: 1
  mutation_rate: 1
  mutation_types: [tool_selection]
  test_scenarios: [{name: t, entry_point: go, input: {message: hi}, expected_outcome: {a: 1}, weight: 2.0}]
"""


def with_change(old: str, new: str) -> str:
    """Return the mesh with one part replaced; the part must occur exactly once."""
    assert MESH.count(old) == 1, old
    return MESH.replace(old, new)
