"""The llm node. One attempt is the whole tool-call loop of the model. spec: "llm"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from harness.dialects.kit.attempts import with_retries, with_timeout
from harness.dialects.kit.templates import strip_code_fence
from harness.dialects.kit.tool_calls import ToolReportedError, answer_call, to_ai_message
from harness.dialects.loki.document import LLMNode
from harness.dialects.loki.routing import exit_after_failure, exit_update
from harness.dialects.loki.templates import apply_state_updates, parse_json, render
from harness.dialects.loki.tool_universe import Tool, ToolUniverse
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import ACTIVE, LLMCall, LLMReply, ToolSpec
from harness.graph.model import State, Update
from harness.graph.to_json import error_text


class HasModel(Protocol):
    """The fields of agents, graphs and llm nodes that choose a model."""

    model: str | None
    temperature: float | None
    top_p: float | None


@dataclass(frozen=True)
class ModelSettings:
    """A model (`client:name`, or only a name) and its parameters."""

    model: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, *owners: HasModel) -> ModelSettings:
        """Take each setting from the first owner that has it."""

        def first(name: str) -> float | None:
            return next((value for owner in owners if (value := getattr(owner, name)) is not None), None)

        given = {name: value for name in ("temperature", "top_p") if (value := first(name)) is not None}
        return cls(next((owner.model for owner in owners if owner.model is not None), None), given)

    @property
    def provider(self) -> str:
        """The client of the model; empty if none is named."""
        client, colon, _ = (self.model or ACTIVE).partition(":")
        return client if colon else ""

    @property
    def name(self) -> str:
        """The name of the model: the part after the first colon, such as `llama3.1:8b` of `ollama:llama3.1:8b`."""
        return (self.model or ACTIVE).removeprefix(f"{self.provider}:")

    def call(self, messages: Sequence[BaseMessage], tools: Sequence[ToolSpec] = ()) -> LLMCall:
        """Return the effect of one model call."""
        return LLMCall(
            name=self.name,
            provider=self.provider,
            params=self.params,
            messages=tuple(messages),
            tools=tuple(tools),
        )


_HINT: Final = """\
Respond with a JSON object that matches this schema. Output ONLY the JSON
object with no surrounding prose or markdown fences.

Schema:
{schema}"""

_EXTRACT: Final = """\
Extract a JSON object that matches this schema from the text that the user gives you. Output ONLY the JSON object, \
without surrounding prose or markdown fences.

Schema:
{schema}"""

_EXTRACTOR_CALLS: Final = 2  # the second is the repair


class ExtractionFailed(HarnessError):
    """An output that is not JSON, and from which the extractor made no JSON either."""

    code = "extraction"


def schema_hint(schema: Any) -> str:
    """Return the text that is appended to the prompt of an llm node. spec: "schema-hint injection"."""
    return _HINT.format(schema=_shown(schema))


async def parse_structured_output(text: str, schema: Any, model: ModelSettings, ctx: NodeContext) -> Any:
    """Parse an output as JSON. If it is not JSON, let the extractor, a call of `model`, extract JSON from it.

    The value is not checked against the schema.

    Raises:
        ExtractionFailed: both replies of the extractor are not JSON.
        Exception: the error of a call of the extractor.
    """
    system = SystemMessage(content=_EXTRACT.format(schema=_shown(schema)))
    why = ""
    for calls_left in range(_EXTRACTOR_CALLS, -1, -1):
        try:
            return parse_json(strip_code_fence(text))
        except ValueError as error:
            why = str(error)
        if calls_left:
            reply: LLMReply = await ctx.perform(model.call((system, HumanMessage(content=text))))
            text = reply.text
    raise ExtractionFailed(
        f"the output does not match output_schema: it is not JSON, and neither are the answers of "
        f"{_EXTRACTOR_CALLS} calls that were to extract it ({why})"
    )


def merge_output(state: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return the state with the top-level keys of a structured output merged in. Only objects have keys."""
    return {**state, **value} if isinstance(value, Mapping) else dict(state)


def _shown(schema: Any) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2)


class TooManyIterations(HarnessError):
    """A model that still requests tools in the last permitted call."""

    code = "max-iterations"


async def tool_loop(
    model: ModelSettings,
    messages: Sequence[BaseMessage],
    tools: Sequence[Tool],
    max_iterations: int,
    ctx: NodeContext,
) -> str:
    """Run the tool-call loop and return the texts of all replies, joined by newlines.

    The tools of one reply run one after the other. The failure of a tool is sent to the model as its result.

    Args:
        model: the model.
        messages: the first messages of the conversation.
        tools: the tools of the model.
        max_iterations: the maximum number of model calls.
        ctx: the context of the visit.

    Raises:
        TooManyIterations: the reply of the last call requests tools.
        Exception: the error of a model call.
    """

    async def use(tool: Tool, args: Mapping[str, Any]) -> str:
        try:
            return await tool.call(args, ctx)
        except Exception as error:
            if ctx.is_fatal(error) or isinstance(error, ToolReportedError):
                raise
            raise ToolReportedError(error_text(error)) from error

    conversation = list(messages)
    specs, by_name = [tool.spec for tool in tools], {tool.spec.name: tool for tool in tools}
    texts: list[str] = []
    for _ in range(max_iterations):
        reply: LLMReply = await ctx.perform(model.call(conversation, specs))
        texts += [reply.text] if reply.text else []
        if not reply.tool_calls:
            return "\n".join(texts)
        message = to_ai_message(reply, ctx.new_id)
        conversation.append(message)
        for call in message.tool_calls:
            conversation.append(await answer_call(call, by_name, use, ctx))
    raise TooManyIterations(f"the model still asks for tools after max_iterations={max_iterations} calls")


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
