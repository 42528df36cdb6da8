"""Human agents: requests, replies, timeouts. spec: "Human-in-the-Loop (HITL)"; NOTES 10."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.dialects.kit.attempts import with_timeout
from harness.dialects.leafmesh.agent_function import RawOutput
from harness.dialects.leafmesh.channels import message_call
from harness.dialects.leafmesh.document import HumanAgent
from harness.dialects.leafmesh.session import Start
from harness.dialects.leafmesh.templates import fill_template, missing_fields
from harness.dialects.leafmesh.yields import RERUN
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import HTTPCall, HTTPReply, HumanCall, http_call
from harness.graph.to_json import error_text, to_json


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

        async def deliver() -> None:
            if agent.human_interface == "webhook":
                await _deliver(agent, start, request, ctx)

        await ctx.once("delivered", deliver)
        reply = await _ask(agent, start, request, ctx)
    return RawOutput(output_of(reply, ctx.name, start.caller))


def output_of(reply: Any, name: str, caller: str) -> dict[str, Any]:
    """Return the output of a human agent for a reply. spec: "How from_agent Routing Works"; NOTES 10.4."""
    fields = dict(reply) if isinstance(reply, Mapping) else {"message": reply}
    return {
        **fields,
        "human_message": _first_value(fields, "human_message", "message", otherwise=""),
        "human_decision": _first_value(fields, "human_decision", "decision", otherwise=""),
        "human_data": _first_value(fields, "human_data", "data", otherwise={}),
        "human_initiated": True,
        "source_agent": name,
        "from_agent": caller,
    }


def _first_value(fields: Mapping[str, Any], *keys: str, otherwise: Any) -> Any:
    """Return the value of the first key that is neither missing, null nor empty text."""
    return next((fields[key] for key in keys if fields.get(key) not in (None, "")), otherwise)


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
    except HumanTimeout:
        if agent.fallback_on_timeout:
            return agent.fallback_response or {}
        raise


async def _warn_of_unfilled(template: str, request: Mapping[str, Any], ctx: NodeContext) -> None:
    for field in missing_fields(template, request):
        shown = f"'{{{{{field}}}}}'"
        ctx.warn(
            f"human_prompt_template of '{ctx.name}': its input does not fill {shown}, which stays as it is"
        )


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
            refusal = await _try_delivery(call, ctx, webhook.outbound_timeout)
            if not refusal:
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
