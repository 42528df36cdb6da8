"""Escalation of a final failure to its targets. spec: "EscalationTarget"; NOTES 13.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from harness.dialects.leafmesh.channels import message_call
from harness.dialects.leafmesh.document import Channel, Escalation, EscalationTarget, HumanAgent, Mesh
from harness.dialects.leafmesh.parts import ARRIVALS, Handover, MeshParts, dispatch
from harness.dialects.leafmesh.session import Session
from harness.dialects.leafmesh.templates import fill_template
from harness.engine.context import RunContext
from harness.errors import WorldError
from harness.graph.effects import HTTPCall, http_call
from harness.graph.events import Detour, NodeFailure
from harness.graph.model import Edge
from harness.graph.to_json import error_text
from harness.time.gather import gather

TEMPLATE_FIELDS: Final = (
    *("error_type", "error_message", "agent_name", "session_id", "retry_exhausted"),
    *("message", "severity", "severity_level", "incident_id"),
)
"""The fields that `payload_template` and `message_template` may use."""


def called_agent(target: EscalationTarget, mesh: Mesh) -> str | None:
    """Return the agent that a target of type `human_agent` calls; None for other types."""
    if target.type != "human_agent":
        return None
    if target.agent is not None:
        return target.agent
    return next((entry.target for entry in mesh.entry_points if entry.name == target.entry_point), None)


def escalation_edges(mesh: Mesh) -> list[Edge]:
    """Return the edges from every agent to the agents that an escalation calls."""
    if not mesh.manager.enabled or mesh.manager.escalation is None:
        return []
    called = dict.fromkeys(called_agent(target, mesh) for target in mesh.manager.escalation.targets)
    return [
        Edge(name, agent, on_error=True)
        for name in mesh.agents
        for agent in called
        if agent is not None and agent != name
    ]


def escalate(
    parts: MeshParts, escalation: Escalation, failure: NodeFailure, session: Session, run: RunContext
) -> Detour:
    """Return the calls of all targets, in one wave; messages are sent concurrently with them."""
    error = failure.error
    failed: dict[str, Any] = {
        "error_type": type(error).__name__,
        "error_message": error_text(error),
        "agent_name": failure.node,
        "session_id": session.id,
        "retry_exhausted": True,
    }
    called = dict.fromkeys(called_agent(target, parts.mesh) for target in escalation.targets)
    caller = failure.state[ARRIVALS].call
    routes = [
        dispatch(
            Edge(failure.node, agent, on_error=True), Handover(failed, failed, caller, is_escalation=True)
        )
        for agent in called
        if agent is not None
    ]
    messages = [call for target in escalation.targets if (call := _message(target, failed, parts.mesh))]

    async def send() -> None:
        await gather(_send(call, failure, run) for call in messages)

    return Detour(routes, send)


def _message(target: EscalationTarget, failed: dict[str, Any], mesh: Mesh) -> HTTPCall | None:
    values = {
        **failed,
        "message": failed["error_message"],
        "severity": "high",
        "severity_level": "high",
        "incident_id": failed["session_id"],
    }
    if target.type == "webhook":
        body = failed if target.payload_template is None else fill_template(target.payload_template, values)
        return http_call(target.method, target.url or "", json=body, headers=target.headers)
    if target.type == "channel" and target.provider is not None:
        template = target.message_template or "{{agent_name}} failed with {{error_type}}: {{message}}"
        channel = _channel(target.provider, mesh)
        to = target.channel_id or channel.post_channel or ""
        return message_call(target.provider, channel, to, {"text": fill_template(template, values)})
    return None


def _channel(provider: str, mesh: Mesh) -> Channel:
    """Return the first channel of the provider that a human agent configures, which holds the token."""
    channels: Sequence[Channel] = [
        channel
        for agent in mesh.agents.values()
        if isinstance(agent, HumanAgent)
        for name, channel in agent.channels.items()
        if name == provider
    ]
    return channels[0] if channels else Channel()


async def _send(call: HTTPCall, failure: NodeFailure, run: RunContext) -> None:
    """Send a message; a failure is only a warning."""
    try:
        reply = await run.perform(call, failure.state, failure.node)
        problem = f"status {reply.status}" if reply.status >= 400 else ""
    except WorldError:
        raise
    except Exception as error:
        problem = error_text(error)
    if problem:
        run.warn(f"the escalation of agent '{failure.node}' could not reach {call.name}: {problem}")
