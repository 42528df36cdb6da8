"""The AgentNode: an agent, a remote agent or a flow as a step of a flow. spec: AgentNode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from harness.dialects.agentspec.agents import Agent, AgenticComponent
from harness.dialects.agentspec.conversation import Handed, added
from harness.dialects.agentspec.data_flow import UnfitValue
from harness.dialects.agentspec.flows import NEXT, AgentNode, Flow
from harness.dialects.agentspec.visit import NodeResult, Visit
from harness.graph.effects import LLMCall
from harness.graph.messages import to_messages


async def run_agent(visit: Visit) -> NodeResult:
    """The agent goes on with the conversation until its outputs are known; its calls are the node's own."""
    node = visit.node
    assert isinstance(node, AgentNode)
    agent: AgenticComponent = node.agent
    ending = await visit.ctx.run_inside(
        visit.graphs.of(agent),
        Handed(visit.inputs, visit.state["messages"]),
        calls_as_self=not isinstance(agent, Flow),
        leaving=lambda state: {"messages": added(visit.state, state)},
    )
    outputs: Any = ending.output if agent.gives else {}
    messages = added(visit.state, ending.state)
    branches = node.leaves_by
    branch = NEXT
    if isinstance(agent, Agent) and len(branches) > 1:
        branch = await _chosen(visit, agent, ending.state["messages"], branches)
    return NodeResult(outputs, branch, messages)


async def _chosen(
    visit: Visit, agent: Agent, messages: Sequence[BaseMessage], branches: Sequence[str]
) -> str:
    """schema: "If branches are configured, the agent will be prompted to select a branch"."""
    question = f"How does the flow go on? Answer with one of these and nothing else: {', '.join(branches)}"
    reply = await visit.ctx.perform(
        LLMCall(
            name=agent.llm_config.model_id,
            provider=agent.llm_config.called,
            params=agent.llm_config.parameters,
            messages=(*messages, *to_messages(question)),
        )
    )
    branch = str(reply.text).strip()
    if branch not in branches:
        raise UnfitValue(f"{visit.node}: '{branch}' is none of its branches ({', '.join(branches)})")
    return branch
