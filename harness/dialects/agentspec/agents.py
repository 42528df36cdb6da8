"""Agents. spec: "Agentic Components", "Agent", "RemoteAgent"."""

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
    """spec: "Agentic Components": a flow, an agent, a remote agent."""


class Agent(AgenticComponent, title="an Agent"):
    """spec: "Agent". Its goal is to fill its outputs, talking to the user where it must."""

    llm_config: Annotated[LlmConfig, ComponentField(LlmConfig)]
    system_prompt: str
    tools: list[Annotated[Tool, ComponentField(Tool)]] = Field(default_factory=list)

    def inferred_inputs(self) -> Sequence[Property]:
        """One input for each placeholder of the system prompt."""
        return text_properties(placeholders.names(self.system_prompt))


class RemoteAgent(AgenticComponent, title="a remote agent"):
    """spec: "RemoteAgent": its logic runs elsewhere."""


class OciAgent(RemoteAgent, title="an OciAgent"):
    """spec: "OciAgent"."""

    agent_endpoint_id: str
    client_config: Annotated[OciClientConfig, ComponentField(OciClientConfig)]


class OpenAiAgent(RemoteAgent, title="an OpenAiAgent"):
    """An agent that is defined at OpenAI (schema: OpenAiAgent)."""

    llm_config: Annotated[OpenAiConfig, ComponentField(OpenAiConfig)]
    remote_agent_id: str | None = None
