"""Flows and agents made with the official SDK. Together they are made of every component type of the language."""

from tests.dialects.agentspec.sdk_cases import agents, flows, maps, models, tools
from tests.dialects.agentspec.sdk_cases.case import CASES, Case

__all__ = ["CASES", "Case", "agents", "flows", "maps", "models", "tools"]
