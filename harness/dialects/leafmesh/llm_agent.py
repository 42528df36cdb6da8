"""LLM agents: messages, the tool loop, structured output. spec: "LLM Agent Fields"; NOTES 7, 14."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.templates import strip_code_fence
from harness.dialects.leafmesh.agent_function import RawOutput, post_process
from harness.dialects.leafmesh.document import LLMAgent
from harness.dialects.leafmesh.knowledge import retrieve
from harness.dialects.leafmesh.models import agent_llm_call
from harness.dialects.leafmesh.parts import MeshParts
from harness.dialects.leafmesh.session import Start
from harness.dialects.leafmesh.tools import Toolbox
from harness.dialects.leafmesh.user_message import user_message
from harness.engine.callables import contained
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import LLMReply
from harness.graph.to_json import as_text
from harness.interception.real_effects import within_effect
from harness.matchers.json_schema import schema_errors

CONTEXT_PARTS: Final[Mapping[str, str]] = {
    "care": "EMPATHY & TONE",
    "sentiment_analysis": "SENTIMENT ANALYSIS",
    "guardrails": "SAFETY GUARDRAILS",
    "flows": "FLOW INSTRUCTIONS",
}
"""The labels of the built-in context parts, in message order. spec: "`context_parts` Keys"."""


MOST_TURNS: Final = 200
"""The most model calls in one run of an agent; stops stub lists that call a tool forever."""


class TooManyTurns(HarnessError):
    """The model still asks for tools after `MOST_TURNS` calls."""

    code = "too-many-turns"


class ResponseFormatError(HarnessError):
    """The final reply is not JSON that matches the agent's `response_format`."""

    code = "response-format"


async def call_model(agent: LLMAgent, parts: MeshParts, start: Start, ctx: NodeContext) -> RawOutput:
    """Call the model until it asks for no more tools, then pass its reply to the agent's function.

    Raises:
        ResponseFormatError, TooManyTurns: see these classes.
        Exception: the model call or the function failed.
    """
    function = parts.agency.functions.get(ctx.name)
    if function is not None and function.has_processors:
        run_processors = function.run_processors
        prepared = await contained(within_effect(lambda: run_processors(start.input, start.context)))
        start.context["prepared_data"] = prepared
    user = user_message(start)
    knowledge = agent.enabled_knowledge
    retrieved = "" if knowledge is None else await retrieve(knowledge, user, ctx)
    tools = Toolbox(agent, parts, ctx)
    messages = [*_system_messages(agent, start, retrieved), HumanMessage(content=user)]
    text = await _tool_loop(agent, parts, messages, tools, ctx)
    reply = _parse_reply(agent, text, ctx)
    output = reply if isinstance(reply, Mapping) else {"response": reply}
    return await post_process(function, reply, start, output)


def _system_messages(agent: LLMAgent, start: Start, retrieved: str) -> list[BaseMessage]:
    """Return the system messages, in order. NOTES 7.1."""
    given = agent.context_parts or {}
    labels = {
        **CONTEXT_PARTS,
        **{key: key.replace("_", " ").upper() for key in given if key not in CONTEXT_PARTS},
    }
    texts = [agent.prompt] if agent.prompt else []
    texts += [_labelled(label, given[key]) for key, label in labels.items() if key in given]
    prepared = start.context["prepared_data"]
    if prepared.get("business_context"):
        texts.append(_labelled("BUSINESS CONTEXT", as_text(prepared["business_context"])))
    if posts := start.context["memory_posts"]:
        texts.append(_labelled("MEMORY", "\n".join(f"{post['role']}: {post['content']}" for post in posts)))
    if retrieved:
        texts.append(_labelled("KNOWLEDGE", retrieved))
    if start.rerun is not None:
        texts.append(_correction(start.rerun))
    return [SystemMessage(content=text) for text in texts]


def _labelled(label: str, text: str) -> str:
    return f"[{label}]\n{text}"


def _correction(rerun: Any) -> str:
    """Return the correction note of a retry or rerun. NOTES 6.4."""
    return _labelled("CORRECTION", f"This is another attempt, after this one failed:\n{as_text(rerun)}")


async def _tool_loop(
    agent: LLMAgent, parts: MeshParts, messages: Sequence[BaseMessage], tools: Toolbox, ctx: NodeContext
) -> str:
    conversation = list(messages)
    for _ in range(MOST_TURNS):
        call = agent_llm_call(agent, parts.mesh, conversation, tools.specs)
        try:
            reply: LLMReply = await ctx.perform(call)
        except Exception as error:
            if ctx.is_fatal(error) or not getattr(error, "kind", ""):
                raise
            raise _error_named_by_kind(error) from error
        if not reply.tool_calls:
            return reply.text
        conversation += await tools.answer_calls(reply)
    raise TooManyTurns(f"the model of agent '{ctx.name}' still asks for tools after {MOST_TURNS} calls")


def _error_named_by_kind(error: Exception) -> Exception:
    """Return a copy of a model error whose class is named after its kind, such as `rate_limit`. NOTES 13.6."""
    named: Exception = type(str(getattr(error, "kind", "")), (type(error),), {})(str(error))
    return named


def _parse_reply(agent: LLMAgent, text: str, ctx: NodeContext) -> Any:
    """Return `llm_response`: a mapping if the reply is a JSON object, else its text. NOTES 7.3, 7.4."""
    try:
        value: Any = json.loads(strip_code_fence(text), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        value = None
        if agent.response_format is not None:
            raise ResponseFormatError(
                f"the reply to agent '{ctx.name}' is not JSON: {text[:200]!r}"
            ) from None
    if agent.response_format is not None:
        for problem in schema_errors(schema_of(agent.response_format), value):
            raise ResponseFormatError(
                f"the reply to agent '{ctx.name}' does not match its response_format: {problem}"
            )
    return value if isinstance(value, Mapping) else text


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not valid JSON, although Python accepts it")


def schema_of(response_format: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON Schema of a `response_format`, bare or wrapped. spec: "`response_format`"."""
    if response_format.get("type") == "json_schema":
        wrapped = response_format.get("json_schema")
        schema = wrapped.get("schema") if isinstance(wrapped, Mapping) else None
        if isinstance(schema, Mapping):
            return schema
    return response_format
