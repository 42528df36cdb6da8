"""The models of agents. spec: "Agentic Components", "Agent", "RemoteAgent"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from harness.dialects.agentspec import placeholders
from harness.dialects.agentspec.component import ComponentField, ComponentWithIO, text_properties
from harness.dialects.agentspec.llm_configs import LlmConfig, OciClientConfig, OpenAiConfig
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.tools import Tool


class AgenticComponent(ComponentWithIO, title="an agent or a flow"):
    """Base class of flows, agents and remote agents. spec: "Agentic Components"."""


class Agent(AgenticComponent, title="an Agent"):
    """An agent. spec: "Agent". It converses with the user until its outputs are known."""

    llm_config: Annotated[LlmConfig, ComponentField(LlmConfig)]
    system_prompt: str
    tools: list[Annotated[Tool, ComponentField(Tool)]] = Field(default_factory=list)

    def inferred_inputs(self) -> Sequence[Property]:
        """Return a string input for each placeholder of the system prompt."""
        return text_properties(placeholders.names(self.system_prompt))


class RemoteAgent(AgenticComponent, title="a remote agent"):
    """Base class of agents that run elsewhere. spec: "RemoteAgent"."""


class OciAgent(RemoteAgent, title="an OciAgent"):
    """A remote agent in OCI. spec: "OciAgent"."""

    agent_endpoint_id: str
    client_config: Annotated[OciClientConfig, ComponentField(OciClientConfig)]


class OpenAiAgent(RemoteAgent, title="an OpenAiAgent"):
    """A remote agent at OpenAI (schema: OpenAiAgent)."""

    llm_config: Annotated[OpenAiConfig, ComponentField(OpenAiConfig)]
    remote_agent_id: str | None = None
