"""A compiled agent, and the session of one run, which its nodes share."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.dialects.sherma import document as doc
from harness.dialects.sherma.hooks import Hooks
from harness.dialects.sherma.installed_hooks import InstalledHook
from harness.dialects.sherma.server_hooks import InstalledServer
from harness.dialects.sherma.skills import Skills
from harness.dialects.sherma.tools import ToolRegistry
from harness.dialects.sherma.versions import find_version
from harness.engine.context import NodeContext, RunContext
from harness.errors import ExpressionError, Span
from harness.expressions.cel import compile as compile_cel
from harness.graph.effects import MCPEndpoint
from harness.graph.messages import MessageLog
from harness.graph.model import State
from harness.graph.vocabulary import NestedGraph

CallAgent = Callable[[str, NodeContext], Awaitable[str | None]]
"""Sends text to an agent and returns its text, or None if it has none or paused."""


@dataclass(frozen=True)
class SubAgent:
    """A declared sub-agent.

    call           sends text to it, as an `agent` effect
    url            address of a remote agent
    description    shown to models
    inside         the graph of a local manifest
    is_python      True for a Python object
    is_unimported  True for a Python object that was not imported
    """

    id: str
    version: str
    call: CallAgent
    url: str | None = None
    description: str = ""
    inside: NestedGraph | None = None
    is_python: bool = False
    is_unimported: bool = False


@dataclass(frozen=True)
class MCPDeclaration:
    """A declared MCP server, its endpoint, and its location in the manifest."""

    server: doc.MCPServer
    endpoint: MCPEndpoint
    span: Span


@dataclass(frozen=True)
class Agent:
    """A compiled agent of a manifest.

    variables         the CEL variables besides `state`
    remote_skills     skills whose cards are fetched when a run begins
    folders           folders that modules are imported from
    schema_places     locations of `input_schema` and `output_schema`
    expression_place  finds the location of a failed expression of a node
    """

    name: str
    definition: doc.Agent
    manifest: doc.Manifest
    variables: Mapping[str, Any]
    tools: ToolRegistry
    skills: Skills
    llms: Mapping[str, doc.LLM]
    sub_agents: tuple[SubAgent, ...]
    hooks: tuple[InstalledHook | InstalledServer, ...] = ()
    mcp_servers: tuple[MCPDeclaration, ...] = ()
    remote_skills: tuple[tuple[doc.Skill, Span], ...] = ()
    folders: tuple[Path, ...] = ()
    schema_places: Mapping[str, Span] = field(default_factory=dict)
    expression_place: Callable[[str, ExpressionError], Span | None] = lambda _node, _error: None

    def sub_agent(self, id_: str, version: str) -> SubAgent:
        """Return the sub-agent that a call_agent node names. The rules have checked that there is one."""
        declared = {agent.version: agent for agent in self.sub_agents if agent.id == id_}
        found = find_version(declared, version)
        assert found is not None
        return declared[found]

    def evaluate(self, expression: str, state: State, **names: Any) -> Any:
        """Evaluate a CEL expression. It is parsed here, so a syntax error fails the node, not the load.

        Raises:
            ExpressionError: it cannot be parsed or evaluated.
        """
        bindings = {**self.variables, **names, "state": state}
        return compile_cel(expression, null_as_false=True).evaluate(bindings)


@dataclass
class AgentSession:
    """The state of one run of an agent: its hook instances, and its tools including those of MCP servers.

    invocation   input and config of the current invocation, and the models that hooks configured
    hook_copies  parts of the manifest that hooks have seen
    """

    agent: Agent
    hooks: Hooks
    tools: ToolRegistry
    invocation: dict[str, Any] = field(default_factory=dict)
    hook_copies: dict[str, Any] = field(default_factory=dict)

    def copy_for_hooks(self, name: str, definition: Any) -> Any:
        """Return a copy of a part of the manifest, made once per run."""
        if name not in self.hook_copies:
            self.hook_copies[name] = definition.model_copy(deep=True)
        return self.hook_copies[name]

    @classmethod
    def of(cls, run: RunContext) -> AgentSession:
        """Return the session of a run."""
        session: AgentSession = run.resources["session"]
        return session


def hook_state(state: State) -> dict[str, Any]:
    """Return the state for hooks: copies, which they may change; `messages` is a list."""
    return {name: _copy(value) for name, value in state.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, MessageLog):
        return [message.model_copy(deep=True) for message in value]
    try:
        return copy.deepcopy(value)
    except Exception:  # a hook stored something that cannot be copied, such as a lock
        return value
