"""The names a scenario can refer to: models, tools, MCP servers and sub-agents, including those of skills."""

from __future__ import annotations

from collections.abc import Iterator

from harness.dialects.sherma.agent import Agent
from harness.dialects.sherma.server_hooks import InstalledServer
from harness.dialects.sherma.tools import Origin, Tool
from harness.graph.model import Node
from harness.graph.vocabulary import KINDS, NODE, Vocabulary

_CALLING = ("call_agent", "tool_node")
"""Node types that call sub-agents. With hooks, any node may."""


def vocabulary(agent: Agent, nodes: tuple[Node, ...]) -> Vocabulary:
    """Return the names of an agent's graph."""
    tools = list(_tools(agent))
    cards = [skill.card for skill in agent.skills.skills]
    inside = [sub.inside for sub in agent.sub_agents if sub.inside is not None]
    calling = [node.name for node in nodes if agent.hooks or node.kind in _CALLING]
    return Vocabulary(
        names={
            "llm": [llm.model_name for llm in agent.llms.values()],
            "tool": [tool.id for tool in tools],
            "server": [
                *(declared.server.id for declared in agent.mcp_servers),
                *(server.id for card in cards for server in card.mcps.values()),
                *(hook.server for hook in agent.hooks if isinstance(hook, InstalledServer) and hook.server),
            ],
            "agent": list(dict.fromkeys(sub.id for sub in agent.sub_agents)),
        },
        aliases={"tool": {tool.name: tool.id for tool in tools if tool.name != tool.id}},
        open=dict(_open(agent)),
        inside=dict.fromkeys(calling, inside) if inside else {},
    )


def _tools(agent: Agent) -> Iterator[Tool]:
    """Yield the tools whose calls are `tool` effects; sub-agents are `agent` effects, MCP tools `mcp`."""
    for tool in agent.tools.all():
        if tool.origin in (Origin.MANIFEST, Origin.SKILL):
            yield tool


def _open(agent: Agent) -> Iterator[tuple[str, str]]:
    if agent.hooks:
        yield from dict.fromkeys(KINDS, "a hook may add any").items()
    if agent.remote_skills:
        yield from dict.fromkeys(
            ("tool", "server"), "the cards of remote skills are fetched when it runs"
        ).items()
    if any(sub.is_python for sub in agent.sub_agents):
        yield "llm", "a sub-agent is Python code"
    if any(sub.is_unimported for sub in agent.sub_agents):
        yield from dict.fromkeys((NODE, *KINDS), "a sub-agent is Python code that was not imported").items()
    if not all(tool.has_known_name for tool in agent.tools.all()):
        yield "tool", "a tool was not imported"
