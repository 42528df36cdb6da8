"""Failures of agents: retries, escalation, failure of the run. spec: "EscalationConfig"; NOTES 6.3, 13."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.dialects.leafmesh.agency import ARRIVALS, Arrivals, Handover, MeshParts, dispatch
from harness.dialects.leafmesh.agents import BEGAN, AgentTimeout, HumanTimeout, fill_template, message_call
from harness.dialects.leafmesh.connector_exchange import CallbackTimeout, ConnectorTimeout
from harness.dialects.leafmesh.document import Channel, Escalation, EscalationTarget, HumanAgent, Mesh
from harness.dialects.leafmesh.session import RERUN, Call, Session, YieldContractFailure, session_of
from harness.engine.context import RunContext
from harness.errors import RunError, WorldError
from harness.graph.effects import HTTPCall
from harness.graph.events import Detour, NodeFailure, Restart
from harness.graph.http_call import http_call
from harness.graph.model import Edge, Routes
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
    handover = Handover(failed, failed, caller, is_escalation=True)
    edges = [Edge(failure.node, agent, on_error=True) for agent in called if agent is not None]
    messages = [call for target in escalation.targets if (call := _message(target, failed, parts.mesh))]

    async def send() -> None:
        await gather(_send(call, failure, run) for call in messages)

    return Detour([dispatch(edge, handover) for edge in edges], send)


def _message(target: EscalationTarget, failed: dict[str, Any], mesh: Mesh) -> HTTPCall | None:
    values = {**failed, "message": failed["error_message"], "incident_id": failed["session_id"]}
    values |= dict.fromkeys(("severity", "severity_level"), "high")
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
    people = mesh.of(HumanAgent).values()
    held = (channel for agent in people for name, channel in agent.channels.items() if name == provider)
    return next(held, Channel())


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


FAILURE_COUNTS: Final = "__attempts__"
"""The state key under which a restarted node finds the `FailureCounts` of its call."""

_TIMEOUTS: Final = (AgentTimeout, HumanTimeout, ConnectorTimeout, CallbackTimeout)


class WaitForTimeout(RunError):
    """The join of a fan-in agent did not hold within its `wait_for_timeout`."""

    code = "wait-for-timeout"


@dataclass(frozen=True)
class FailureCounts:
    """The numbers of failed attempts of a call: contract violations, and other errors."""

    contracts: int = 0
    errors: int = 0


async def run_failure(
    parts: MeshParts, failures: Sequence[NodeFailure], run: RunContext
) -> NodeFailure | None:
    """Return the first failure that is neither handled nor tolerated; warn about the others. NOTES 13.4."""
    task = session_of(run).task
    chosen = None
    for failure in failures:
        call: Call = failure.state[ARRIVALS].call
        fan_ins = [name for name, join in parts.joins.items() if failure.node in join.members]
        if failure.handled:
            how = "the escalation handles it"
        elif without := [fan_in for fan_in in fan_ins if task.was_joined_without(call, fan_in)]:
            how = f"'{without[0]}' goes on without it"
        else:
            chosen = chosen or failure
            continue
        error = failure.error
        run.warn(f"agent '{failure.node}' failed with {type(error).__name__}: {error_text(error)} ({how})")
    return chosen


async def handle_failure(
    parts: MeshParts, failure: NodeFailure, run: RunContext
) -> Routes | Restart | Detour:
    """Decide what follows a failure: a retry, the targets of the escalation, or nothing. NOTES 6.3, 13.2."""
    session = session_of(run)
    error, attempts = failure.error, failure.state.get(FAILURE_COUNTS, FailureCounts())
    escalation = parts.mesh.manager.escalation if parts.mesh.manager.enabled else None
    if isinstance(error, YieldContractFailure):
        session.timeouts.pop(failure.node, None)
        if attempts.contracts < parts.mesh.agents[failure.node].enforce_yields_retry:
            attempts = replace(attempts, contracts=attempts.contracts + 1)
            return _restart(failure, attempts, error.rerun_context(attempts.contracts))
        session.errors += 1
    elif isinstance(error, WaitForTimeout):
        session.errors += 1
        arrivals: Arrivals = failure.state[ARRIVALS]
        arrivals.call = session.task.record_join_timeout(failure.node, arrivals.callers)
    else:
        session.errors += 1
        if is_timeout(error):
            session.timeouts[failure.node] += 1
        else:
            session.timeouts.pop(failure.node, None)
        if escalation is not None and _may_retry(failure, session, attempts, escalation):
            attempts = replace(attempts, errors=attempts.errors + 1)
            return _restart(failure, attempts, _rerun_context(error, attempts.errors))
    if escalation is None or failure.state[ARRIVALS].is_escalation:
        return ()
    return escalate(parts, escalation, failure, session, run)


def _restart(failure: NodeFailure, attempts: FailureCounts, rerun: dict[str, Any]) -> Restart:
    call = failure.state[ARRIVALS].call
    return Restart({FAILURE_COUNTS: attempts, BEGAN: call.began, RERUN: rerun})


def _rerun_context(error: Exception, attempt: int) -> dict[str, Any]:
    return {
        "previous_output": None,
        "error_type": type(error).__name__,
        "error_message": error_text(error),
        "attempt": attempt,
    }


def is_timeout(error: Exception) -> bool:
    """True for errors that count as timeouts. NOTES 13.2."""
    return isinstance(error, _TIMEOUTS) or type(error).__name__ == "timeout"


def _may_retry(
    failure: NodeFailure, session: Session, attempts: FailureCounts, escalation: Escalation
) -> bool:
    rules = escalation.auto_escalate
    if attempts.errors >= rules.max_retries or session.errors >= rules.max_errors_per_session:
        return False
    return not is_timeout(failure.error) or session.timeouts[failure.node] < rules.timeout_threshold
