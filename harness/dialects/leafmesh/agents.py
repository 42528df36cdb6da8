"""One run of an agent of any type: its input, its own work, its yields. NOTES 3, 4, 6, 13.5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.leafmesh import document as doc
from harness.dialects.leafmesh.agent_function import RawOutput
from harness.dialects.leafmesh.connector_agents import call_connector
from harness.dialects.leafmesh.human_agent import ask_human
from harness.dialects.leafmesh.integrations import integrations_run_in
from harness.dialects.leafmesh.llm_agent import call_model
from harness.dialects.leafmesh.parts import ARRIVALS, INPUT, Arrivals, MeshParts
from harness.dialects.leafmesh.programmatic import run_function
from harness.dialects.leafmesh.session import CALLER_OUTPUT, UPSTREAM, Call, Start, session_of
from harness.dialects.leafmesh.user_message import user_message
from harness.dialects.leafmesh.yields import RERUN, YieldContractFailure, fill_missing, violations
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.model import NodeFunction, State, Update

RESULT: Final = "__settled__"
"""The key of the routing-only value that passes an agent's `AgentResult` to its router."""
BEGAN: Final = "__began__"
"""The state key under which a restarted node finds the number of its call's first start."""


class AgentTimeout(HarnessError):
    """The agent's own work took longer than `manager.agent_timeout_threshold`."""

    code = "agent-timeout"


@dataclass(frozen=True)
class AgentResult:
    """The result of an agent that settled: its call, its output, and the inputs `@compose` shaped, by agent."""

    call: Call
    output: dict[str, Any]
    shaped: Mapping[str, Any] = field(default_factory=dict)
    user_message: str = ""


def node_function(name: str, agent: doc.Agent, parts: MeshParts) -> NodeFunction:
    """Return the node function of an agent."""

    async def run(state: State, ctx: NodeContext) -> Update:
        async def begin() -> Start:
            return _start(name, agent, parts, state, ctx)

        start = await ctx.once("start", begin)
        with integrations_run_in(ctx, parts.env, start.context["session_id"]):
            raw = await _own_work(agent, parts, start, ctx)
        output = _apply_yields(name, agent, _as_mapping(raw.value), ctx)
        result = AgentResult(start.call, output, raw.shaped, user_message(start) if agent.memory else "")
        return Update({name: output} if agent.auto_store_response else {}, routing_values={RESULT: result})

    return run


def _as_mapping(value: Any) -> dict[str, Any]:
    """Return an output as a mapping; any other value becomes `{result: value}`. NOTES 4.1."""
    return dict(value) if isinstance(value, Mapping) else {"result": value}


def _start(name: str, agent: doc.Agent, parts: MeshParts, state: State, ctx: NodeContext) -> Start:
    session = session_of(ctx.run)
    arrivals: Arrivals = state[ARRIVALS]
    members = parts.joins[name].members if name in parts.joins else frozenset()
    joined = frozenset(caller.agent for caller in arrivals.callers if caller.agent in members) or None
    call = arrivals.call = session.task.record_start(name, state.get(BEGAN), joined)
    for handover in arrivals.handovers:
        if handover.caller is not None and handover.position is not None:
            handover.caller.callees[handover.position] = call
    given = dict(state[INPUT])
    last = arrivals.handovers[-1]
    caller = last.caller.agent if last.caller is not None else ""
    if last.previous_start is not None:
        caller = last.previous_start.caller
    elif last.caller_output is not None:
        given[UPSTREAM] = dict(session.task.upstream_yields)
        given[CALLER_OUTPUT] = last.caller_output
    rerun = state.get(RERUN, last.rerun)
    if rerun is not None:
        given[RERUN] = rerun
    context = {
        "session_id": session.id,
        "agent_name": name,
        "from_agent": caller,
        "prepared_data": {},
        "memory_posts": session.last_posts(name, agent.memory_post_limit),
    }
    is_entered = last.caller is None and last.previous_start is None
    session.starts[name] = Start(call, given, caller, is_entered, rerun, context)
    return session.starts[name]


async def _own_work(agent: doc.Agent, parts: MeshParts, start: Start, ctx: NodeContext) -> RawOutput:
    """Do the agent's own work, limited in time for all types but `human`. NOTES 13.5."""

    async def work() -> RawOutput:
        match agent:
            case doc.LLMAgent():
                return await call_model(agent, parts, start, ctx)
            case doc.HumanAgent():
                return await ask_human(agent, start, ctx)
            case _ if ctx.name in parts.connectors:
                return await call_connector(agent, parts, start, ctx)
            case _:
                return await run_function(parts, start, ctx)

    if isinstance(agent, doc.HumanAgent):
        return await work()
    limit, what = parts.mesh.manager.agent_timeout_threshold, f"agent '{ctx.name}'"
    late = AgentTimeout(f"{what} worked longer than {limit} s (agent_timeout_threshold)")
    return await with_timeout(work, ctx, limit, what, late=late)


def _apply_yields(name: str, agent: doc.Agent, output: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
    """Return the output after the yields check: filled in (lenient), or unchanged (strict).

    Raises:
        YieldContractFailure: the agent is strict, and its output violates its yields.
    """
    if agent.enforce_yields:
        broken = dict(violations(agent.yields, output))
        if broken:
            raise YieldContractFailure(name, output, broken)
        return output
    result, notes = fill_missing(agent, output)
    for note in notes:
        ctx.warn(f"agent '{name}': {note}")
    return result
