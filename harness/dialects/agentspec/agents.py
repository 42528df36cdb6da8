"""Agents, here and elsewhere, and teams: agents that talk to each other (25.4.2). spec: "Agentic Components"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator

from harness.dialects.agentspec.component import (
    Component,
    ComponentField,
    ComponentWithIO,
    by_title,
    text_properties,
)
from harness.dialects.agentspec.connections import Model, OciClientConfig, OpenAiConfig, RetryPolicy
from harness.dialects.agentspec.properties import Property, placeholder_names
from harness.dialects.agentspec.tools import Tool, ToolBox
from harness.dialects.agentspec.transforms import MessageTransform


class AgenticComponent(ComponentWithIO, title="an agent or a flow"):
    """Base class of flows, agents and remote agents. spec: "Agentic Components"."""


class Agent(AgenticComponent, title="an Agent"):
    """An agent. spec: "Agent". It converses with the user until its outputs are known.

    Without a human in the loop, it asks nobody.
    """

    llm_config: Annotated[Model, ComponentField(Model)]
    system_prompt: str
    tools: list[Annotated[Tool, ComponentField(Tool)]] = Field(default_factory=list)
    toolboxes: list[Annotated[ToolBox, ComponentField(ToolBox)]] = Field(default_factory=list)
    human_in_the_loop: bool = True
    transforms: list[Annotated[MessageTransform, ComponentField(MessageTransform)]] = Field(
        default_factory=list
    )

    @property
    def uses_tools(self) -> bool:
        """True if its model may call tools."""
        return bool(self.tools or self.toolboxes)

    def inferred_inputs(self) -> Sequence[Property]:
        """Return a string input for each placeholder of the system prompt."""
        return text_properties(placeholder_names(self.system_prompt))

    def changed(self, **fields: Any) -> Agent:
        """Return the agent with other values of some fields, by their keys in configurations."""
        own = {name: getattr(self, name) for name in Agent.model_fields}
        own |= {
            "inputs": [dict(item.schema) for item in self.inputs.values()],
            "outputs": [dict(item.schema) for item in self.outputs.values()],
        }
        del own["declared_inputs"], own["declared_outputs"]
        made = Agent.model_validate({**own, **fields})
        made.set_source(self._source, self.component_type)
        return made


class AgentSpecializationParameters(ComponentWithIO, title="AgentSpecializationParameters"):
    """The parameters of a SpecializedAgent, which an agent gets in addition (25.4.2)."""

    additional_instructions: str | None = None
    additional_tools: list[Annotated[Tool, ComponentField(Tool)]] | None = None
    human_in_the_loop: bool | None = None

    def inferred_inputs(self) -> Sequence[Property]:
        """Return a string input for each placeholder of the instructions."""
        return text_properties(placeholder_names(self.additional_instructions))


class SpecializedAgent(AgenticComponent, title="a SpecializedAgent"):
    """An agent with more instructions and tools (25.4.2)."""

    agent: Annotated[Agent, ComponentField(Agent)]
    agent_specialization_parameters: Annotated[
        AgentSpecializationParameters, ComponentField(AgentSpecializationParameters)
    ]

    @cached_property
    def merged(self) -> Agent:
        """The agent that runs: its instructions follow the system prompt after an empty line."""
        agent, more = self.agent, self.agent_specialization_parameters
        made = agent.changed(
            id=self.id,
            name=self.name,
            description=self.description,
            inputs=[dict(item.schema) for item in self.inputs.values()],
            outputs=[dict(item.schema) for item in self.outputs.values()],
            system_prompt="\n\n".join(filter(None, [agent.system_prompt, more.additional_instructions])),
            tools=[*agent.tools, *(more.additional_tools or ())],
            human_in_the_loop=agent.human_in_the_loop
            if more.human_in_the_loop is None
            else more.human_in_the_loop,
        )
        made.set_source(self._source, self.component_type)
        return made

    def inferred_inputs(self) -> Sequence[Property]:
        """Return the inputs of both."""
        return list({**self.agent_specialization_parameters.inputs, **self.agent.inputs}.values())

    def inferred_outputs(self) -> Sequence[Property]:
        """Return the outputs of both."""
        return list({**self.agent_specialization_parameters.outputs, **self.agent.outputs}.values())


class RemoteAgent(AgenticComponent, title="a remote agent"):
    """Base class of agents that run elsewhere. spec: "RemoteAgent"."""

    @property
    def retries(self) -> RetryPolicy | None:
        """The retry policy of its calls."""
        return None


class OciAgent(RemoteAgent, title="an OciAgent"):
    """A remote agent in OCI. spec: "OciAgent"."""

    agent_endpoint_id: str
    retry_policy: RetryPolicy | None = None
    client_config: Annotated[OciClientConfig, ComponentField(OciClientConfig)]

    @property
    def retries(self) -> RetryPolicy | None:
        return self.retry_policy


class A2AConnectionConfig(Component, title="an A2AConnectionConfig"):
    """The connection to an A2A server (25.4.2). Times are in seconds."""

    timeout: float = 600.0
    headers: dict[str, str] | None = None
    verify: bool = True
    key_file: str | None = None
    cert_file: str | None = None
    ssl_ca_cert: str | None = None
    retry_policy: RetryPolicy | None = None


class A2ASessionParameters(BaseModel, extra="forbid", strict=True, title="A2A session parameters"):
    """The limits of a session with an A2A agent, which have no effect. Times are in seconds."""

    timeout: float = 60.0
    poll_interval: float = 2.0
    max_retries: int = 5


class A2AAgent(RemoteAgent, title="an A2AAgent"):
    """A remote agent that is reached by the A2A protocol (25.4.2)."""

    agent_url: str
    connection_config: Annotated[A2AConnectionConfig, ComponentField(A2AConnectionConfig)]
    session_parameters: A2ASessionParameters = Field(default_factory=A2ASessionParameters)

    @property
    def retries(self) -> RetryPolicy | None:
        return self.connection_config.retry_policy


class OpenAiAgent(RemoteAgent, title="an OpenAiAgent"):
    """A remote agent at OpenAI (schema: OpenAiAgent)."""

    llm_config: Annotated[OpenAiConfig, ComponentField(OpenAiConfig)]
    remote_agent_id: str | None = None


HandoffMode = Literal["never", "optional", "always"]


class Team(AgenticComponent, title="a team of agents"):
    """Base class of teams. One agent talks to the user, at first the `lead`; the others answer to agents."""

    @property
    def sends_messages(self) -> bool:
        """True if its agents ask each other."""
        return True

    @property
    def hands_off(self) -> bool:
        """True if the agent that talks to the user may hand the conversation over."""
        return False

    @property
    def members(self) -> Sequence[AgenticComponent]:
        """The components that it consists of, each once, the lead first."""
        raise NotImplementedError

    @property
    def lead(self) -> Agent:
        """The agent that talks to the user first."""
        return speaker_of(self.members[0])

    def contacts(self) -> Mapping[Agent, Mapping[str, AgenticComponent]]:
        """Return all agents of the team, each with those whom it may address, by the name that it uses."""
        raise NotImplementedError

    @cached_property
    def inputs(self) -> Mapping[str, Property]:
        """Its own inputs, and those of its members, which callers give it as well."""
        found: dict[str, Property] = {}
        for member in self.members:
            found = {**member.inputs, **found}
        return {**found, **by_title(self.declared_inputs or ())}


def speaker_of(member: AgenticComponent) -> Agent:
    """Return the agent that answers for a member of a team."""
    if isinstance(member, Team):
        return member.lead
    found = member.merged if isinstance(member, SpecializedAgent) else member
    assert isinstance(found, Agent)
    return found


_Member = Annotated[AgenticComponent, ComponentField(AgenticComponent)]


class Swarm(Team, title="a Swarm"):
    """Agents of which each may address certain others. `handoff`: whether the conversation may be handed over."""

    first_agent: _Member
    relationships: list[Annotated[list[_Member], Field(min_length=2, max_length=2)]] = Field(min_length=1)
    handoff: HandoffMode = "optional"

    @field_validator("handoff", mode="before")
    @classmethod
    def _mode_of_flag(cls, given: Any) -> Any:
        return {True: "optional", False: "never"}[given] if isinstance(given, bool) else given

    @property
    def sends_messages(self) -> bool:
        return self.handoff != "always"

    @property
    def hands_off(self) -> bool:
        return self.handoff != "never"

    @property
    def members(self) -> Sequence[AgenticComponent]:
        return list(
            dict.fromkeys([self.first_agent, *(each for pair in self.relationships for each in pair)])
        )

    def contacts(self) -> Mapping[Agent, Mapping[str, AgenticComponent]]:
        found: dict[Agent, dict[str, AgenticComponent]] = {speaker_of(each): {} for each in self.members}
        for sender, recipient in self.relationships:
            found[speaker_of(sender)][recipient.name] = recipient
        return found


class ManagerWorkers(Team, title="a ManagerWorkers"):
    """A manager, who talks to the user, and workers, who answer to the manager. A worker may manage others."""

    group_manager: _Member
    workers: list[_Member] = Field(min_length=1)

    @property
    def members(self) -> Sequence[AgenticComponent]:
        return list(dict.fromkeys([self.group_manager, *self.workers]))

    def contacts(self) -> Mapping[Agent, Mapping[str, AgenticComponent]]:
        found: dict[Agent, Mapping[str, AgenticComponent]] = {
            self.lead: {worker.name: worker for worker in self.workers}
        }
        for worker in self.workers:
            inner = worker.contacts() if isinstance(worker, Team) else {speaker_of(worker): {}}
            found = {**inner, **found}
        return found
