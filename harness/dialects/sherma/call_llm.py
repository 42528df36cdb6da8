"""The call_llm node: prompt, tools, the model call with retries, `state_updates`. spec: `call_llm`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.utils.json import parse_json_markdown

from harness.dialects.kit.attempts import backoff, with_retries
from harness.dialects.kit.tool_calls import RefusedCall, refuse, refuse_all, to_ai_message
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.model_calls import model_call
from harness.dialects.sherma.skills import LoadedSkills
from harness.dialects.sherma.tools import Tool, ToolNotFound, to_tool, tool_specs, unique_by_name
from harness.dialects.sherma.visit import Result, Visit
from harness.expressions.cel import compile as compile_cel
from harness.graph.messages import MessageLog, to_messages
from harness.source.models import describe


async def call_llm(visit: Visit) -> Result:
    """Run the node: prompt, tools, model call, then `state_updates` on the input state. spec: `call_llm`."""
    args: doc.CallLLM = visit.node.args
    messages, system = _prompt(visit, args)
    tools = _bound_tools(visit, args)
    if visit.session.hooks:
        messages, tools = await _before_llm_call(visit, messages, system, tools)
    response = await _call_model(visit, args, messages, tools)
    if visit.session.hooks:
        response = (await visit.fire("after_llm_call", response=response)).response
        if not hasattr(response, "content"):
            raise TypeError(f"hooks must leave 'response' a message, not {describe(response)}")
    calls = _tool_calls(response)
    value = {"role": "ai", "content": response.content, "tool_calls": calls}
    result = {
        field: visit.evaluate(expression, llm_response=value)
        for field, expression in args.state_updates.items()
    }
    if tools and "messages" not in args.state_updates:
        visit.ctx.warn(
            f"node '{visit.node.name}' has tools, but its state_updates do not write 'messages': "
            "the tools it asks for will not run"
        )
    _refuse_unhandled_calls(visit, args, calls)
    return result


def _refuse_unhandled_calls(visit: Visit, args: doc.CallLLM, calls: list[Result]) -> None:
    """Refuse tool calls that no node will run.

    Nothing is refused in a graph with custom nodes, whose hooks may run them.
    """
    graph = visit.agent.definition.graph
    if any(node.type == "custom" for node in graph.nodes):
        return
    if not graph.has_tool_node:
        refuse_all(calls, visit.ctx)
    elif "messages" not in args.state_updates:
        for call in calls:
            refuse(
                call, RefusedCall("no tool node sees it: state_updates do not write 'messages'"), visit.ctx
            )


def _tool_calls(response: Any) -> list[Result]:
    calls = getattr(response, "tool_calls", None) or []
    return [{"name": call["name"], "args": call["args"], "id": call["id"]} for call in calls]


def _prompt(visit: Visit, args: doc.CallLLM) -> tuple[list[BaseMessage], list[str]]:
    """Return the messages of the prompt items, in order, and the texts of the system items."""
    messages: list[BaseMessage] = []
    system: list[str] = []
    kinds = {"system": SystemMessage, "human": HumanMessage, "ai": AIMessage}
    for item in args.prompt:
        if item.role == "messages":
            messages += _spliced_messages(visit, item.content)
        else:
            value = visit.evaluate(item.content)
            text = value if isinstance(value, str) else str(value)
            messages.append(kinds[item.role](content=text))
            if item.role == "system":
                system.append(text)
    return messages, system


def _spliced_messages(visit: Visit, expression: str) -> Sequence[BaseMessage]:
    """Return the messages of a `role: messages` item; `state.messages` gives the stored objects themselves."""
    reference = compile_cel(expression, null_as_false=True).reference
    kept = visit.state.get("messages")
    if reference == ("state", "messages") and isinstance(kept, MessageLog):
        return kept
    return to_messages(visit.evaluate(expression))


def _bound_tools(visit: Visit, args: doc.CallLLM) -> list[Tool]:
    """Return the tools of the dynamic flags, then the explicit ones, one per name: "Tool binding modes"."""
    registry = visit.session.tools
    tools: list[Tool] = []
    if args.use_tools_from_registry:
        tools += registry.all()
    if args.use_tools_from_loaded_skills:
        tools += _loaded_tools(visit)
    if args.use_sub_agents_as_tools:
        chosen = args.use_sub_agents_as_tools
        bound = chosen if isinstance(chosen, list) else visit.agent.sub_agents
        tools += [registry.get(agent.id) for agent in bound]
    tools += [registry.get(ref.id, ref.version) for ref in args.tools or ()]
    return unique_by_name(tools)


def _loaded_tools(visit: Visit) -> list[Tool]:
    """Return the tools of loaded skills, with a warning for each that is not registered."""
    tools = []
    for id_ in LoadedSkills.of(visit.state).tools:
        try:
            tools.append(visit.session.tools.get(id_))
        except ToolNotFound as error:
            visit.ctx.warn(f"node '{visit.node.name}' goes without a tool of a loaded skill: {error}")
    return tools


async def _before_llm_call(
    visit: Visit, messages: list[BaseMessage], system: list[str], tools: list[Tool]
) -> tuple[list[BaseMessage], list[Tool]]:
    """Run the `before_llm_call` hooks; return the messages and tools they leave.

    As in sherma, the prompt's system items become one message at the front, and system messages from the
    conversation are dropped.
    """
    changed = await visit.fire(
        "before_llm_call",
        system_prompt="\n".join(system),
        messages=[
            message.model_copy(deep=True) for message in messages if not isinstance(message, SystemMessage)
        ],
        tools=list(tools),
    )
    front = [SystemMessage(content=changed.system_prompt)] if changed.system_prompt else []
    return [*front, *to_messages(changed.messages)], [to_tool(tool) for tool in changed.tools]


async def _call_model(
    visit: Visit, args: doc.CallLLM, messages: list[BaseMessage], tools: list[Tool]
) -> AIMessage:
    """Call the model, with the retries of `on_error`, which also parse a structured answer anew.

    Nothing else is retried. spec: on_error, retry.
    """
    manifest = visit.agent.manifest
    reference = args.llm or manifest.default_llm
    assert reference is not None  # checked when the manifest was compiled
    llm = visit.agent.llms[reference.id]
    wanted = args.response_format.model_dump(by_alias=True) if args.response_format else None
    call = model_call(visit.session, llm, messages, tool_specs(tools), wanted)
    retry = (visit.node.on_error and visit.node.on_error.retry) or doc.Retry(max_attempts=1)
    delay_s = backoff(retry.delay, exponential=retry.strategy == "exponential", most_s=retry.max_delay)

    async def attempt() -> AIMessage:
        message = to_ai_message(await visit.ctx.perform(call), visit.ctx.new_id)
        return message if wanted is None else _structured(message, visit)

    return await with_retries(attempt, visit.ctx, attempts=retry.max_attempts, delay_s=delay_s)


def _structured(message: AIMessage, visit: Visit) -> AIMessage:
    """Return a structured answer as sherma passes it on: its JSON object as text, and "" for any other JSON.

    Raises:
        OutputParserException: it is no JSON.
    """
    text = message.text.strip()
    try:
        value = parse_json_markdown(text)
    except json.JSONDecodeError as error:
        raise OutputParserException(f"Invalid json output: {text}", llm_output=text) from error
    if not isinstance(value, dict):
        visit.ctx.warn(
            f"node '{visit.node.name}' asked for a JSON object, and the model wrote {describe(value)}: "
            "sherma drops it"
        )
    text = json.dumps(value) if isinstance(value, dict) else ""
    return message.model_copy(update={"content": text, "tool_calls": []})
