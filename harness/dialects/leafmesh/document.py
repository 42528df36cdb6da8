"""The models of a mesh file, in the order of the field reference. Rules between fields are in other modules.

spec: "Complete Agent Config Field Reference".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictBool
from pydantic_core import PydanticCustomError

from harness.dialects.leafmesh.fields import (
    API,
    JSON,
    Count,
    DataStructure,
    Framework,
    Integration,
    Name,
    Number,
    Positive,
    Providers,
    Rate,
    Redis,
    Seconds,
    Section,
    Texts,
    Whole,
)
from harness.source.display import nearest
from harness.source.models import Mistake, mistaken

TYPES: Final = ("string", "number", "boolean", "list", "object")
"""The types of fields. spec: "`yields` and `inputs` Type Strings"."""
Provider = Literal["slack", "telegram", "discord", "whatsapp", "teams"]
Interface = Literal["default", "api", "webhook", "custom"]
Mutation = Literal["prompt_variation", "temperature_adjustment", "tool_selection"]

DEFAULT_MODEL: Final = "gpt-4o-mini"


# ---------------------------------------------------------------- agents


def _not_misspelt(written: str) -> str:
    """Refuse a type that resembles a known one. Any other unknown type is a warning; see `rules`."""
    if written not in TYPES and nearest(written, TYPES):
        expected = ", ".join(map(repr, TYPES))
        raise PydanticCustomError("literal_error", "unknown type", {"expected": expected})
    return written


FieldType = Annotated[str, AfterValidator(_not_misspelt)]


class Nested(Section, title="a nested field"):
    """spec: "Nested fields"."""

    type: FieldType = Field(examples=["type: object"])
    fields: dict[str, FieldType | Nested] = Field(default_factory=dict)


Fields = dict[str, FieldType | Nested]
"""spec: "`yields` and `inputs` Type Strings"."""


class CanCall(Section, title="an entry of can_call"):
    """spec: "`can_call` Format". A misspelt `condition` is refused: without one, the entry always holds."""

    refuses_misspellings = True

    agent: str = Field(examples=["agent: writer"])
    condition: str | StrictBool = True


class Memory(Section, title="a memory"):
    """spec: "Memory Config"."""

    strategy: Literal["recency", "relevance", "hybrid"] = "recency"
    limit: Whole = Field(default=10, ge=1, le=100)
    cross_session: bool = False
    cross_session_limit: Whole = Field(default=50, ge=1, le=500)
    relevance_weight: Rate = 0.6
    recency_weight: Rate = 0.4
    decay_hours: Positive = 24


class Knowledge(Section, title="a knowledge"):
    """spec: "Knowledge Config"."""

    serviceName: Name = Field(examples=["serviceName: handbook"])
    enabled: bool = True
    groupName: str | None = None


def _require_service(knowledge: bool | Knowledge) -> bool | Knowledge:
    if knowledge is True:
        raise mistaken(Mistake("knowledge: expected false, or a mapping with 'serviceName', found true"))
    return knowledge


NoneOrKnowledge = Annotated[bool | Knowledge, AfterValidator(_require_service)]


class Agent(Section):
    """The fields of every agent. spec: "AgentConfig — Core Fields (All Types)"."""

    model_config = ConfigDict(title="an agent")
    elsewhere: ClassVar[Mapping[str, str]] = {"type": "did you mean 'agent_type'?"}

    name: str = ""
    description: str | None = None
    agent_type: str = "llm"
    communication_type: Literal["dual", "chain", "execute"] = "dual"
    parallel: bool = False
    max_concurrent: Positive | None = None
    wake_up: str | None = None
    yields: Fields = Field(default_factory=dict)
    inputs: Fields = Field(default_factory=dict)
    can_call: list[CanCall] = Field(default_factory=list, examples=["can_call: [{agent: writer}]"])
    narration: str | None = None
    wait_for: str | list[str] = Field(default_factory=list, examples=["wait_for: reader AND checker"])
    wait_for_timeout: Positive = 60
    auto_store_response: bool = True
    auto_store_yields: bool = True
    memory: bool | Memory = False
    memory_limit: Whole = Field(default=10, ge=1, le=100)
    knowledge: NoneOrKnowledge = False
    enforce_yields: bool = False
    enforce_yields_retry: Count = 0
    is_human_powered: bool | None = None

    @property
    def enabled_knowledge(self) -> Knowledge | None:
        """The agent's knowledge, if it is enabled."""
        knowledge = self.knowledge
        return knowledge if isinstance(knowledge, Knowledge) and knowledge.enabled else None

    @property
    def memory_post_limit(self) -> int:
        """The number of memory posts in the context; `memory_limit` is the legacy field for it."""
        if isinstance(self.memory, Memory):
            is_older = "memory_limit" in self.model_fields_set and "limit" not in self.memory.model_fields_set
            return self.memory_limit if is_older else self.memory.limit
        return self.memory_limit if self.memory else 0


class LLMAgent(Agent, title="an llm agent"):
    """spec: "LLM Agent Fields"."""

    agent_type: Literal["llm"] = "llm"
    model: str = DEFAULT_MODEL
    prompt: str | None = None
    temperature: Number = Field(default=0.1, ge=0, le=2)
    max_tokens: Positive = 800
    max_completion_tokens: Positive | None = None
    reasoning: bool = False
    thinking: bool = False
    thinking_budget: Whole | None = Field(default=None, ge=1024, le=32768)
    enable_prompt_caching: bool = False
    response_format: JSON | None = None
    optimization_strategy: Literal["performance", "cost", "speed"] | None = None
    context_parts: Texts | None = None
    tools: list[str] = Field(default_factory=list)
    tool_choice: str = Field(default="auto", min_length=1)
    max_tool_calls_per_message: Whole = Field(default=5, ge=0, le=20)
    tool_call_timeout: Number = Field(default=30.0, gt=0, le=300)
    allow_parallel_tool_calls: bool = True
    tool_categories: list[str] = Field(default_factory=list)


class WebhookConfig(Section, title="a webhook_config"):
    """spec: "WebhookConfig"."""

    outbound_url: str | None = None
    outbound_headers: Texts = Field(default_factory=dict)
    outbound_timeout: Positive = 30
    inbound_endpoint: str | None = None
    inbound_auth_token: str | None = None
    response_mapping: Texts = Field(default_factory=dict)
    max_retries: Count = 3
    retry_delay: Count = 5


class Channel(Section, title="a channel"):
    """spec: "ChannelConfig". Providers have additional fields."""

    allows_any_key = True

    bot_token: str | None = None
    signing_secret: str | None = None
    listen_channels: list[str] = Field(default_factory=list)
    post_channel: str | None = None
    verify_token: str | None = None


class HumanAgent(Agent, title="a human agent"):
    """spec: "Human Agent Fields"."""

    agent_type: Literal["human"]
    human_interface: Interface = "api"
    human_timeout_seconds: Whole = Field(default=300, ge=1, le=3600)
    human_context_template: str | None = None
    human_prompt_template: str | None = None
    fallback_on_timeout: bool = True
    fallback_response: dict[str, Any] | None = None
    require_human_confirmation: bool = False
    human_escalation_triggers: list[str] = Field(default_factory=list)
    operator_ids: list[str] = Field(default_factory=list)
    webhook_config: WebhookConfig | None = None
    channels: dict[Provider, Channel] = Field(default_factory=dict)


class ProgrammaticAgent(Agent, title="a programmatic agent"):
    """spec: "Programmatic Agent Fields"."""

    agent_type: Literal["programmatic"]
    integration: Integration | None = None
    connector_config: dict[str, Any] = Field(default_factory=dict)


class ExternalAgent(Agent, title="an external agent"):
    """spec: "External Agent Fields"."""

    agent_type: Literal["external"]
    framework: Framework
    connector_config: dict[str, Any] = Field(default_factory=dict)


AGENT_TYPES: Final[dict[str, type[Agent]]] = {
    "llm": LLMAgent,
    "human": HumanAgent,
    "programmatic": ProgrammaticAgent,
    "external": ExternalAgent,
}
"""The models of agents, by `agent_type`."""


Kind = TypeVar("Kind", bound=Agent)


def _with_type(agent: Any) -> Any:
    """Return the agent with its type, `llm` by default."""
    return {"agent_type": "llm", **agent} if isinstance(agent, dict) else agent


AnyAgent = Annotated[
    LLMAgent | HumanAgent | ProgrammaticAgent | ExternalAgent,
    Field(discriminator="agent_type"),
    BeforeValidator(_with_type),
]


# --------------------------------------------------------------- manager


class EscalationTarget(Section, title="an escalation target"):
    """spec: "EscalationTarget"."""

    type: Literal["human_agent", "webhook", "channel"]
    agent: str | None = None
    entry_point: str | None = None
    url: str | None = None
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: Texts = Field(default_factory=dict)
    payload_template: dict[str, Any] | None = None
    provider: Provider | None = None
    channel_id: str | None = None
    message_template: str | None = None


class AutoEscalate(Section, title="an auto_escalate"):
    """spec: "`auto_escalate` Fields"."""

    max_retries: Count = 3
    max_errors_per_session: Positive = 5
    timeout_threshold: Positive = 2


class Escalation(Section, title="an escalation"):
    """spec: "EscalationConfig"."""

    targets: list[EscalationTarget] = Field(default_factory=list)
    auto_escalate: AutoEscalate = Field(default_factory=AutoEscalate)


class Routing(Section, title="a routing"):
    """spec: "`routing` Fields". It has no effect in a simulated run."""

    mode: Literal["static", "learning"] = "static"
    memory_size: Whole = Field(default=100, ge=1, le=1000)
    confidence_threshold: Rate = 0.7
    fallback: Literal["all"] = "all"
    decay_days: Whole = Field(default=30, ge=1, le=365)


class HumanInputRules(Section, title="human_input_rules"):
    """spec: "`human_input_rules` (Defaults)". This and the next three sections have no effect in a run."""

    max_concurrent_requests: Count = 3
    max_agent_requests: Count = 5
    enable_request_queuing: bool = True


class TimeoutRules(Section, title="timeout_rules"):
    """spec: "`timeout_rules` (Defaults)"."""

    max_timeouts_before_escalation: Count = 2
    timeout_escalation_enabled: bool = True
    escalation_notify_managers: bool = True


class WorkflowPauseRules(Section, title="workflow_pause_rules"):
    """spec: "`workflow_pause_rules` (Defaults)"."""

    max_pause_duration_minutes: Count = 30
    max_concurrent_paused_workflows: Count = 2
    pause_monitoring_enabled: bool = True


class HumanResponseRule(Section, title="a rule of human_response_rules"):
    """spec: "`human_response_rules` (Defaults)"."""

    requires_manager_review: bool = False
    auto_escalate: bool = False


class Manager(Section, title="a manager"):
    """spec: "ManagerConfig"; "The Manager can also have knowledge"."""

    enabled: bool = True
    model: str = DEFAULT_MODEL
    domain: Literal["generic", "ecommerce", "data_analysis"] = "generic"
    prompt: str | None = None
    can_intervene: bool = True
    coordination_rules: dict[str, Any] = Field(default_factory=dict)
    chain_completion_timeout: Seconds = 60.0
    health_check_interval: Positive = 60
    agent_timeout_threshold: Positive = 180
    escalation: Escalation | None = None
    routing: Routing = Field(default_factory=Routing)
    knowledge: NoneOrKnowledge = False
    human_input_rules: HumanInputRules = Field(default_factory=HumanInputRules)
    timeout_rules: TimeoutRules = Field(default_factory=TimeoutRules)
    workflow_pause_rules: WorkflowPauseRules = Field(default_factory=WorkflowPauseRules)
    human_response_rules: dict[str, HumanResponseRule] = Field(default_factory=dict)


# ------------------------------------------------------------- top level


class EntryPoint(Section, title="an entry point"):
    """spec: "Entry Points"."""

    name: Name = Field(examples=["name: order"])
    target: str = Field(examples=["target: intake"])
    description: str | None = None
    condition: str | StrictBool = "always"


class AutoDiscover(Section, title="an auto_discover"):
    """spec: "Top-Level Config", `auto_discover`."""

    directory: str = Field(examples=["directory: agency"])
    pattern: str = "*.py"
    recursive: bool = True


class TestScenario(Section, extra="forbid", title="a test scenario"):
    """spec: "`test_scenarios` — Scenario Dict Fields". `timeout` is in virtual seconds."""

    name: str | None = None
    entry_point: str = "test"
    input: Any = "Test scenario input"
    expected_outcome: dict[str, Any] = Field(default_factory=dict)
    weight: Number = Field(default=1.0, ge=0)
    timeout: Seconds = 30.0


class Evolution(Section, title="an evolution"):
    """spec: "EvolutionConfig"."""

    enabled: bool = False
    strategy: str = "genetic"
    population_size: Positive = 20
    generations: Positive = 50
    mutation_rate: Rate = 0.1
    crossover_rate: Rate = 0.7
    elite_size: Positive = 2
    mutation_types: list[Mutation] = Field(default_factory=lambda: list(get_args(Mutation)))
    fitness_function: str = "task_completion_rate"
    selection_method: str = "tournament"
    test_scenarios: list[TestScenario] = Field(default_factory=list)


class Mesh(Section, extra="forbid", title="a mesh file"):
    """A whole mesh file. spec: "Top-Level Config (LeafMeshConfig)". Unknown keys are refused."""

    name: str = "default_mesh"
    version: str = "1.0.0"
    architecture: Literal["managed_mesh"] = "managed_mesh"
    debug: bool = False
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    environment: Literal["development", "production"] = "development"
    redis: Redis = Field(default_factory=Redis)
    manager: Manager = Field(default_factory=Manager)
    mesh: Providers = Field(default_factory=Providers)
    agents: dict[str, AnyAgent] = Field(default_factory=dict)
    entry_points: list[EntryPoint] = Field(
        default_factory=lambda: [EntryPoint(name="default_entry", target="summarizer")]
    )
    data_structures: dict[str, DataStructure] = Field(default_factory=dict)
    auto_discover: AutoDiscover | None = None
    evolution: Evolution = Field(default_factory=Evolution)
    api: API = Field(default_factory=API)

    def of(self, kind: type[Kind]) -> dict[str, Kind]:
        """Return the agents of one type, by name."""
        return {name: agent for name, agent in self.agents.items() if isinstance(agent, kind)}

    def entry(self, name: str) -> EntryPoint | None:
        """Return the entry point with this name; the name of an agent enters that agent. NOTES 3.1."""
        named = next((entry for entry in self.entry_points if entry.name == name), None)
        return named or (EntryPoint(name=name, target=name) if name in self.agents else None)
