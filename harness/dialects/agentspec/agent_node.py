"""The AgentNode: an agent, a remote agent or a flow as a node of a flow. spec: AgentNode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import BaseMessage

from harness.dialects.agentspec.agents import Agent
from harness.dialects.agentspec.data_flow import UnfitValue
from harness.dialects.agentspec.flows import AgentNode
from harness.dialects.agentspec.llm_calls import llm_call
from harness.dialects.agentspec.visit import NodeResult, Visit
from harness.graph.effects import LLMReply
from harness.graph.messages import to_messages


async def run_agent(visit: Visit) -> NodeResult:
    """Run the agent in this conversation until its outputs are known; the model then chooses among branches."""
    node = visit.node
    assert isinstance(node, AgentNode)
    result = await visit.run_inside(node.agent, visit.inputs)
    if isinstance(node.agent, Agent) and len(node.branches) > 1:
        conversation = [*visit.state["messages"], *result.messages]
        return replace(result, branch=await _chosen(visit, node.agent, conversation, node.branches))
    return result


async def _chosen(
    visit: Visit, agent: Agent, conversation: Sequence[BaseMessage], branches: Sequence[str]
) -> str:
    """schema: "If branches are configured, the agent will be prompted to select a branch"."""
    question = f"How does the flow go on? Answer with one of these and nothing else: {', '.join(branches)}"
    call = llm_call(agent.llm_config, [*conversation, *to_messages(question)])
    reply: LLMReply = await visit.ctx.perform(call)
    branch = reply.text.strip()
    if branch not in branches:
        raise UnfitValue(f"{visit.node}: '{branch}' is none of its branches ({', '.join(branches)})")
    return branch
