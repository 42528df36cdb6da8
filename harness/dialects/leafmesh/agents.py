"""One run of an agent of any type: its input, its own work, its yields. NOTES 3, 4, 6, 13.5."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.kit.manifest import fill, placeholders
from harness.dialects.leafmesh import document as doc
from harness.dialects.leafmesh.agency import ARRIVALS, INPUT, Arrivals, MeshParts
from harness.dialects.leafmesh.connector_exchange import exchange, integrations_run_in
from harness.dialects.leafmesh.decorators import RawOutput, as_mapping, post_process
from harness.dialects.leafmesh.document import Channel, HumanAgent
from harness.dialects.leafmesh.llm_agent import call_model
from harness.dialects.leafmesh.session import (
    CALLER_OUTPUT,
    FROM_CALLER,
    RERUN,
    UPSTREAM,
    Call,
    Start,
    YieldContractFailure,
    fill_missing,
    session_of,
    user_message,
    violations,
)
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import HTTPCall, HTTPReply, HumanCall, ScriptCall
from harness.graph.http_call import http_call
from harness.graph.model import NodeFunction, State, Update
from harness.graph.to_json import as_text, error_text, to_json

_ADDRESSES: Final = {
    "slack": "https://slack.com/api/chat.postMessage",
    "telegram": "https://api.telegram.org/bot/sendMessage",
    "discord": "https://discord.com/api/v10/channels/{to}/messages",
    "whatsapp": "https://graph.facebook.com/v19.0/{to}/messages",
    "teams": "https://smba.trafficmanager.net/teams/v3/conversations/{to}/activities",
}
"""The public API addresses of the providers. Tokens are sent in headers only, never in an address."""

_SCHEMES: Final = {"discord": "Bot"}


def message_call(provider: str, channel: Channel, to: str, body: Mapping[str, Any]) -> HTTPCall:
    """Return the request that posts `body` to the channel `to` of a provider."""
    headers = {}
    if channel.bot_token:
        headers["Authorization"] = f"{_SCHEMES.get(provider, 'Bearer')} {channel.bot_token}"
    json = {"channel": to, **body} if to else dict(body)
    return http_call("POST", _ADDRESSES[provider].format(to=to), json=json, headers=headers)


_MISSING: Final = object()
_FIELD: Final = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


def template_fields(template: Any) -> list[str]:
    """Return the fields that a template, or a mapping of templates, uses."""
    return [found[1] for found in placeholders(template, _FIELD)]


def fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill a template, or a mapping of templates. Placeholders of unknown fields are kept."""

    def text_of(found: re.Match[str]) -> str:
        value = _value(found[1], values)
        return found.group() if value is _MISSING else as_text(value)

    return fill(template, _FIELD, text_of)


def _value(name: str, values: Mapping[str, Any]) -> Any:
    value: Any = values
    for key in name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value


class HumanTimeout(HarnessError):
    """Nobody answered within `human_timeout_seconds`, and there is no fallback."""

    code = "human-timeout"


class WebhookDeliveryError(HarnessError):
    """The request to the human could not be delivered."""

    code = "webhook-delivery"


async def ask_human(agent: HumanAgent, start: Start, ctx: NodeContext) -> RawOutput:
    """Return the human's reply: the input if the agent was entered directly, else the answer to a request.

    Raises:
        WebhookDeliveryError, HumanTimeout: see these classes.
    """
    if start.is_entered:
        reply: Any = start.input
    else:
        request = start.plain_input

        if agent.human_interface == "webhook":
            await ctx.once("delivered", partial(_deliver, agent, start, request, ctx))
        reply = await _ask(agent, start, request, ctx)
    return RawOutput(output_of(reply, ctx.name, start.caller))


def output_of(reply: Any, name: str, caller: str) -> dict[str, Any]:
    """Return the output of a human agent for a reply. spec: "How from_agent Routing Works"; NOTES 10.4."""
    fields = dict(reply) if isinstance(reply, Mapping) else {"message": reply}
    defaults: dict[str, Any] = {"message": "", "decision": "", "data": {}}
    for key, default in defaults.items():
        given = (fields.get(each) for each in (f"human_{key}", key))
        fields[f"human_{key}"] = next((value for value in given if value not in (None, "")), default)
    return {**fields, "human_initiated": True, "source_agent": name, "from_agent": caller}


async def _ask(agent: HumanAgent, start: Start, request: Mapping[str, Any], ctx: NodeContext) -> Any:
    """Ask with a `human` stub; if the scenario has none, pause the run. NOTES 10.3, 10.5, 10.6."""
    value: dict[str, Any] = {"agent": ctx.name, "from_agent": start.caller, "input": dict(request)}
    if agent.human_prompt_template is not None:
        value["prompt"] = fill_template(agent.human_prompt_template, request)
        await ctx.once("prompted", partial(_warn_of_unfilled, agent.human_prompt_template, request, ctx))
    if start.rerun is not None:
        value[RERUN] = start.rerun
    effect = HumanCall(name=ctx.name, args={"value": to_json(value)})
    # Without stubs, the answer may come from a recording or a terminal.
    if not ctx.run.world.answers_for(effect) and not ctx.has_answer(effect):
        return await ctx.pause(value)
    limit, what = agent.human_timeout_seconds, f"human agent '{ctx.name}'"
    late = HumanTimeout(f"nobody answered {what} within {limit} s")
    try:
        return await with_timeout(lambda: _perform(effect, ctx), ctx, limit, what, late=late)
    except HumanTimeout as error:
        if agent.fallback_on_timeout:
            ctx.because(error, "default")
            return agent.fallback_response or {}
        raise


async def _warn_of_unfilled(template: str, request: Mapping[str, Any], ctx: NodeContext) -> None:
    for name in dict.fromkeys(template_fields(template)):
        if _value(name, request) is _MISSING:
            what = f"human_prompt_template of '{ctx.name}'"
            ctx.warn(f"{what}: its input does not fill '{{{{{name}}}}}', which stays as it is")


async def _perform(effect: HumanCall, ctx: NodeContext) -> Any:
    try:
        return await ctx.perform(effect)
    except TimeoutError as error:
        if ctx.is_fatal(error):
            raise
        await asyncio.Event().wait()  # `error: timeout` means a person who never answers


async def _deliver(agent: HumanAgent, start: Start, request: Mapping[str, Any], ctx: NodeContext) -> None:
    """Send the request: to the channels in order until one accepts it, else to the webhook. NOTES 10.2."""
    body: dict[str, Any] = {
        "session_id": start.context["session_id"],
        "agent_name": ctx.name,
        "from_agent": start.caller,
        "data": to_json(request),
    }
    if start.rerun is not None:
        body[RERUN] = to_json(start.rerun)
    for provider, channel in agent.channels.items():
        if not await _try_delivery(message_call(provider, channel, channel.post_channel or "", body), ctx):
            return
    webhook = agent.webhook_config
    refusal = "no channel took it"
    if webhook is not None and webhook.outbound_url:
        call = http_call("POST", webhook.outbound_url, json=body, headers=webhook.outbound_headers)
        for attempt in range(webhook.max_retries + 1):
            if attempt:
                await ctx.sleep(webhook.retry_delay)
            if not (refusal := await _try_delivery(call, ctx, webhook.outbound_timeout)):
                return
    raise WebhookDeliveryError(f"the request of human agent '{ctx.name}' cannot be delivered: {refusal}")


async def _try_delivery(call: HTTPCall, ctx: NodeContext, limit_s: float | None = None) -> str:
    """Send a request; return the reason why it was not delivered, or ""."""
    try:
        reply: HTTPReply = await with_timeout(lambda: ctx.perform(call), ctx, limit_s, call.name)
    except Exception as error:
        if ctx.is_fatal(error):
            raise
        return error_text(error)
    return f"{call.name} answered with status {reply.status}" if reply.status >= 400 else ""


async def run_function(parts: MeshParts, start: Start, ctx: NodeContext) -> RawOutput:
    """Return the result of the agent's function, or of a stub under `scripts:`.

    Raises:
        UnscriptedCall: the agent has neither.
        Exception: any exception of the function.
    """
    function = parts.agency.functions.get(ctx.name)
    shaped: dict[str, Any] = {}

    async def real() -> Any:
        assert function is not None
        returned = await function.run(None, start.input, start.context)
        shaped.update(returned.shaped)
        return returned.value

    hint = f"or write a function `{ctx.name}` in a file that auto_discover finds"
    effect = ScriptCall(name=ctx.name, args=start.input, real=real if function else None, hint=hint)
    return RawOutput(await ctx.perform(effect), shaped)


async def call_connector(agent: doc.Agent, parts: MeshParts, start: Start, ctx: NodeContext) -> RawOutput:
    """Call the external system, and pass its response through the agent's function if there is one.

    Raises:
        ConnectorError, ConnectorTimeout, CallbackTimeout: see `exchange`.
        Exception: any exception of the function.
    """
    arguments = {  # the input, reduced to the declared `inputs`. NOTES 9.2
        key: to_json(value)
        for key, value in start.plain_input.items()
        if key not in FROM_CALLER and (not agent.inputs or key in agent.inputs)
    }
    data = arguments if start.rerun is None else {**arguments, RERUN: to_json(start.rerun)}
    connector, session_id = parts.connectors[ctx.name], start.context["session_id"]
    response = await exchange(connector, ctx, data=data, arguments=arguments, session_id=session_id)
    return await post_process(parts.agency.functions.get(ctx.name), response, start, response)


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
        start = await ctx.once("start", partial(_start, name, agent, parts, state, ctx))
        with integrations_run_in(ctx, parts.env, start.context["session_id"]):
            raw = await _own_work(agent, parts, start, ctx)
        output = _apply_yields(name, agent, dict(as_mapping(raw.value)), ctx)
        result = AgentResult(start.call, output, raw.shaped, user_message(start) if agent.memory else "")
        return Update({name: output} if agent.auto_store_response else {}, routing_values={RESULT: result})

    return run


async def _start(name: str, agent: doc.Agent, parts: MeshParts, state: State, ctx: NodeContext) -> Start:
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
    if not agent.enforce_yields:
        output, notes = fill_missing(agent, output)
        for note in notes:
            ctx.warn(f"agent '{name}': {note}")
    elif broken := dict(violations(agent.yields, output)):
        raise YieldContractFailure(name, output, broken)
    return output
