"""The llm node. One attempt is the whole tool-call loop of the model. spec: "llm"."""

from __future__ import annotations

from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.attempts import with_retries, with_timeout
from harness.dialects.loki.document import LLMNode
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.routing import exit_after_failure, exit_update
from harness.dialects.loki.state import apply_state_updates
from harness.dialects.loki.structured import merge_output, parse_structured_output, schema_hint
from harness.dialects.loki.templates import render
from harness.dialects.loki.tool_loop import tool_loop
from harness.dialects.loki.tool_universe import ToolUniverse
from harness.engine.context import NodeContext
from harness.graph.model import State, Update
from harness.graph.to_json import error_text

TRANSIENT: Final = (
    "timed out",
    "rate limit",
    "429",
    "Connection reset",
    "Connection refused",
    "produced no output",
)
"""Errors whose messages contain one of these texts are retried. spec: "Retries"."""


async def call_llm(
    node: LLMNode,
    node_model: ModelSettings,
    agent_model: ModelSettings,
    tools: ToolUniverse,
    state: State,
    ctx: NodeContext,
) -> Update:
    """Call the model and update the state with its output; after a failure, with a text that describes the error.

    Args:
        node: the node.
        node_model: the model of the node.
        agent_model: the model of the agent, which extracts structured output.
        tools: the tools of the agent, from which the node's whitelist selects.
        state: the state.
        ctx: the context of the visit.

    Raises:
        Exception: the node failed and has neither `fallback` nor `next`.
    """

    async def body() -> tuple[dict[str, Any], Any]:
        messages = _messages(node, state)
        selected = await tools.select(node.tools, ctx.run)
        text = await with_retries(
            lambda: tool_loop(node_model, messages, selected, node.max_iterations, ctx),
            ctx,
            attempts=node.max_attempts,
            delay_s=lambda _failures: 0.0,
            only=is_transient,
        )
        if node.output_schema is None:
            return dict(state), text
        value = await parse_structured_output(text, node.output_schema, agent_model, ctx)
        return merge_output(state, value), value

    try:
        after, output = await with_timeout(body, ctx, node.timeout, f"node '{ctx.name}'")
    except Exception as error:
        if ctx.is_fatal(error) or (node.fallback is None and node.next is None):
            raise
        failure = f"LLM node failed: {error_text(error)}"
        if node.fallback is None:
            ctx.warn(f"node '{ctx.name}' failed, and the run goes on to '{node.next}': {error_text(error)}")
        return exit_update(apply_state_updates(state, node, failure), exit_after_failure(node))
    return exit_update(apply_state_updates(after, node, output))


def is_transient(error: Exception) -> bool:
    """True if an error is retried."""
    message = error_text(error)
    return any(text in message for text in TRANSIENT)


def _messages(node: LLMNode, state: State) -> list[BaseMessage]:
    """Return a system message, if there are instructions, and a user message.

    Raises:
        MissingPath: a template has a path that the state does not have.
    """
    system = None if node.instructions is None else render(node.instructions, state)
    prompt = render(node.prompt, state)
    if node.output_schema is not None:
        hint = schema_hint(node.output_schema)
        if system is None:
            prompt = f"{prompt}\n\n{hint}"
        else:
            system = f"{system}\n\n{hint}"
    front: list[BaseMessage] = [] if system is None else [SystemMessage(content=system)]
    return [*front, HumanMessage(content=prompt)]
