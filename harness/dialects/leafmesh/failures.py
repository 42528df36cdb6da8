"""Failures of agents: retries, escalation, failure of the run. spec: "EscalationConfig"; NOTES 6.3, 13."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.dialects.leafmesh.agents import BEGAN, AgentTimeout
from harness.dialects.leafmesh.connector_exchange import CallbackTimeout, ConnectorTimeout
from harness.dialects.leafmesh.document import Escalation
from harness.dialects.leafmesh.escalation import escalate
from harness.dialects.leafmesh.human_agent import HumanTimeout
from harness.dialects.leafmesh.parts import ARRIVALS, Arrivals, MeshParts
from harness.dialects.leafmesh.session import Call, Session, session_of
from harness.dialects.leafmesh.yields import RERUN, YieldContractFailure
from harness.engine.context import RunContext
from harness.errors import RunError
from harness.graph.events import Detour, NodeFailure, Restart
from harness.graph.model import Routes
from harness.graph.to_json import error_text

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
        _count_error(failure, session)
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


def _count_error(failure: NodeFailure, session: Session) -> None:
    session.errors += 1
    if is_timeout(failure.error):
        session.timeouts[failure.node] += 1
    else:
        session.timeouts.pop(failure.node, None)


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
