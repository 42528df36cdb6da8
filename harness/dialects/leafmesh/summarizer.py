"""The Summarizer: reads narrations, and adds agents to those of the conditions. spec: "Narration Routing"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.templates import strip_code_fence
from harness.dialects.leafmesh.document import Agent, Mesh
from harness.dialects.leafmesh.models import llm_call
from harness.engine.context import RunContext
from harness.errors import WorldError
from harness.graph.effects import LLMReply
from harness.graph.model import State
from harness.graph.to_json import compact_json, error_text, from_json
from harness.source.suggest import did_you_mean

SUMMARIZER: Final = "summarizer"
"""The node name of its model calls. It is not an agent of the mesh and never in `path`. NOTES 2.3."""


def reads_narrations(mesh: Mesh) -> bool:
    """True if narrations have an effect. NOTES 12.4."""
    return mesh.manager.enabled and mesh.manager.can_intervene


async def recommended_agents(
    mesh: Mesh, name: str, output: Mapping[str, Any], state: State, run: RunContext
) -> list[str]:
    """Ask the Summarizer after an agent has settled; return the agents it recommends, in its order.

    If the call fails or the answer is malformed, the result is empty, with a warning.
    """
    agent = mesh.agents[name]
    call = llm_call(mesh.manager.model, mesh, _messages(mesh, name, agent, output))
    try:
        reply: LLMReply = await run.perform(call, state, SUMMARIZER)
    except WorldError:
        raise
    except Exception as error:
        run.warn(f"the Summarizer failed after agent '{name}', and calls nobody: {error_text(error)}")
        return []
    answer = from_json(strip_code_fence(reply.text))
    listed = answer.get("next_agents") if isinstance(answer, Mapping) else None
    if not isinstance(listed, list):
        run.warn(
            f"the Summarizer's answer after agent '{name}' has no list of next_agents, so it calls nobody"
        )
        return []
    known = [each for each in dict.fromkeys(map(str, listed)) if each in mesh.agents]
    for each in dict.fromkeys(map(str, listed)):
        if each not in mesh.agents:
            hint = did_you_mean(each, mesh.agents)
            run.warn(
                f"the Summarizer recommends '{each}' after agent '{name}', and there is no such agent"
                + (f" ({hint})" if hint else "")
            )
    return known


def _messages(mesh: Mesh, name: str, agent: Agent, output: Mapping[str, Any]) -> list[BaseMessage]:
    manager = mesh.manager
    parts = [
        f"You coordinate a mesh of agents (domain: {manager.domain}). An agent has settled. Answer with JSON: "
        '{"next_agents": [names of agents to call beside those that its conditions call]}.',
        f"AGENTS\n{', '.join(mesh.agents)}",
        f"NARRATION OF {name}\n{agent.narration}",
    ]
    if manager.prompt:
        parts.append(f"EVALUATION CRITERIA\n{manager.prompt}")
    return [
        SystemMessage(content="\n\n".join(parts)),
        HumanMessage(content=compact_json({"agent": name, "output": output})),
    ]
