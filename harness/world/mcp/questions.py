"""Answers to what an MCP server asks in the middle of a call: a person (elicitation), or a model (sampling).

An app's own client answers if it can; else `human` and `llm` stubs do, as calls of the node that called the tool.
Requests and results are in the wire spelling of the protocol. Source: MCP specification 2025-11-25, Client Features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.graph.effects import HumanCall, LLMCall, LLMReply, MCPCall
from harness.world.mcp.tools import MCPFailure

ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
_NOT_GIVEN: Final = ("decline", "cancel")
_PARAMS: Final = {"maxTokens": "max_tokens", "temperature": "temperature", "stopSequences": "stop"}
_STOPS: Final = {"length": "maxTokens", "max_tokens": "maxTokens"}


async def answer_question(call: MCPCall, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a request that the server of a call sends.

    Raises:
        MCPFailure: nothing can answer it.
    """
    if call.client is not None:
        return await call.client(method, params)
    if call.perform is None:
        raise MCPFailure(f"nobody answers {method} here")
    if method == ELICIT:
        schema = params.get("requestedSchema") or {}
        args = {"question": params.get("message", ""), "options": [*schema.get("properties", {})]}
        return _elicited(await call.perform(HumanCall(name=call.node, node=call.node, args=args)))
    return _sampled(await call.perform(_model_call(params, call.node)), params)


def _elicited(reply: Any) -> dict[str, Any]:
    """Return a person's answer: values by name, `decline`, or `cancel`; any other text accepts without values."""
    if isinstance(reply, Mapping):
        return dict(reply) if "action" in reply else {"action": "accept", "content": dict(reply)}
    return {"action": reply} if reply in _NOT_GIVEN else {"action": "accept", "content": {}}


def _model_call(params: Mapping[str, Any], node: str) -> LLMCall:
    from harness.graph.messages import to_messages

    told = [{"role": "system", "content": params["systemPrompt"]}] if params.get("systemPrompt") else []
    for each in params.get("messages", ()):
        content = each["content"] if isinstance(each["content"], list) else [each["content"]]
        told.append({"role": each["role"], "content": "".join(part.get("text", "") for part in content)})
    given = {name: params[key] for key, name in _PARAMS.items() if params.get(key) is not None}
    return LLMCall(name=sampled_model(params), node=node, messages=to_messages(told), params=given)


def sampled_model(params: Mapping[str, Any]) -> str:
    """Return the name of the model that a sampling request asks: its first hint, or `sampling`."""
    hints = (params.get("modelPreferences") or {}).get("hints") or [{}]
    return hints[0].get("name") or "sampling"


def _sampled(reply: LLMReply, params: Mapping[str, Any]) -> dict[str, Any]:
    stop = _STOPS.get(reply.finish_reason or "", "endTurn")
    content = {"type": "text", "text": reply.text}
    return {"role": "assistant", "content": content, "model": sampled_model(params), "stopReason": stop}
