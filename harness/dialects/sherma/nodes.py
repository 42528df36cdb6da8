"""What each node type does: one function a type, and around all of them hooks and error handling.

spec: `call_llm` … `custom`, "Error handling (on_error)". A node function takes the visit and gives back its
updates as a mapping; `around` fires the hooks and turns errors into fallbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from harness.dialects.sherma import document as doc
from harness.dialects.sherma import hooks as hook
from harness.dialects.sherma.agent import Agent, Session, hook_state
from harness.dialects.sherma.registries import registries, to_ai_message
from harness.dialects.sherma.skills import Loaded, SkillNotFound, apply_calls
from harness.dialects.sherma.tools import (
    BadArguments,
    Tool,
    ToolReportedError,
    as_content,
    bound_specs,
    distinct,
    python_tool,
)
from harness.expressions.cel import compile as compile_cel
from harness.graph.context import NodeContext
from harness.graph.effects import LLMCall
from harness.graph.messages import MessageLog, to_messages
from harness.graph.model import State, Update
from harness.source.suggest import did_you_mean

Result = dict[str, Any]
INTERNAL = "__sherma__"


@dataclass(frozen=True)
class Visit:
    """One visit of a node: its definition, the state it was given, and what it may do."""

    node: Any
    state: State
    ctx: NodeContext
    session: Session

    @property
    def agent(self) -> Agent:
        """The agent the node belongs to."""
        return self.session.agent

    def evaluate(self, expression: str, **names: Any) -> Any:
        """The value of a CEL expression on this visit's state."""
        return self.agent.evaluate(expression, self.state, **names)

    async def fire(self, point: str, **fields: Any) -> Any:
        """Run the hooks of a point, with the fields its context has beside node and state."""
        context_class = hook.POINTS[point]
        info = hook.NodeInfo(self.node, config=self.agent.manifest)
        context = context_class(
            node_context=info, node_name=self.node.name, state=hook_state(self.state), **fields
        )
        return await self.session.hooks.run(point, context)


def around(node: Any, body: Callable[[Visit], Awaitable[Result]]) -> Callable[..., Awaitable[Update]]:
    """A node as the graph runs it: `node_enter`, the body, `node_exit`; then errors and what they lead to."""

    async def run(state: State, ctx: NodeContext) -> Update:
        session = Session.of(ctx.run)
        visit = Visit(node, state, ctx, session)
        try:
            if session.hooks:
                await visit.fire("node_enter", node_type=node.type)
            result = await body(visit)
            if session.hooks:
                left = await visit.fire("node_exit", node_type=node.type, result=result)
                result = left.result or {}
        except Exception as error:
            if ctx.must_end(error):
                raise
            return await _failed(visit, error)
        return Update(written(result, session.agent, ctx))

    return run


async def _failed(visit: Visit, error: Exception) -> Update:
    """spec: on_error. A fallback is taken; without one, `on_node_error` hooks may swallow the error."""
    on_error = visit.node.on_error
    if on_error is not None and on_error.fallback is not None:
        last_error = {
            "node": visit.node.name,
            "type": type(error).__name__,
            "message": str(error),
            "attempt": on_error.retry.max_attempts if on_error.retry else 1,
        }
        return Update({INTERNAL: {"last_error": last_error}}, goto=on_error.fallback)
    if visit.session.hooks:
        seen = await visit.fire("on_node_error", node_type=visit.node.type, error=error)
        if seen.error is None:
            return Update()
        if seen.error is not error:
            raise seen.error from error
    raise error


def written(result: Mapping[str, Any], agent: Agent, ctx: NodeContext) -> Result:
    """A node's updates as channels take them: `messages` become message objects, each with an id.

    Raises:
        ValueError: `messages` holds something that is no message.
    """
    update = dict(result)
    if agent.definition.keeps_messages and "messages" in update:
        update["messages"] = [_identified(message, ctx) for message in to_messages(update["messages"])]
    return update


def _identified(message: BaseMessage, ctx: NodeContext) -> BaseMessage:
    return message if message.id else message.model_copy(update={"id": ctx.new_id("message")})


# ------------------------------------------------------------------ call_llm


async def call_llm(visit: Visit) -> Result:
    """spec: `call_llm`. Prompt, tools, the model (with retries), then `state_updates` on the state before."""
    args: doc.CallLLM = visit.node.args
    messages = _prompt(visit, args)
    tools = _bound_tools(visit, args)
    if visit.session.hooks:
        messages, tools = await _before_llm_call(visit, messages, tools)
    response = await _ask_model(visit, args, messages, tools)
    if visit.session.hooks:
        response = (await visit.fire("after_llm_call", response=response)).response
    said = {"role": "ai", "content": response.content, "tool_calls": _plain_calls(response)}
    result = {
        field: visit.evaluate(expression, llm_response=said)
        for field, expression in args.state_updates.items()
    }
    if tools and "messages" not in args.state_updates:
        visit.ctx.warn(
            f"node '{visit.node.name}' has tools, but its state_updates do not write 'messages': "
            "the tools it asks for will not run"
        )
    return result


def _plain_calls(response: Any) -> list[Result]:
    calls = getattr(response, "tool_calls", None) or []
    return [{"name": call["name"], "args": call["args"], "id": call["id"]} for call in calls]


def _prompt(visit: Visit, args: doc.CallLLM) -> list[BaseMessage]:
    """spec: the `prompt` field. Items in order; nothing of the state is added by itself."""
    messages: list[BaseMessage] = []
    kinds = {"system": SystemMessage, "human": HumanMessage, "ai": AIMessage}
    for item in args.prompt:
        if item.role == "messages":
            messages += _spliced(visit, item.content)
        else:
            value = visit.evaluate(item.content)
            messages.append(kinds[item.role](content=value if isinstance(value, str) else str(value)))
    return messages


def _spliced(visit: Visit, expression: str) -> Sequence[BaseMessage]:
    """Messages of the state: the objects themselves where the expression only names them."""
    reference = compile_cel(expression, null_as_false=True).reference
    kept = visit.state.get("messages")
    if reference == ("state", "messages") and isinstance(kept, MessageLog):
        return kept
    return to_messages(visit.evaluate(expression))


def _bound_tools(visit: Visit, args: doc.CallLLM) -> list[Tool]:
    """spec: "Tool binding modes". Those of the flag first, then the explicit ones; one of each name."""
    registry = visit.session.tools
    tools: list[Tool] = []
    if args.use_tools_from_registry:
        tools += registry.all()
    if args.use_tools_from_loaded_skills:
        tools += [registry.get(id_) for id_ in Loaded.of(visit.state).tools]
    if args.use_sub_agents_as_tools:
        chosen = args.use_sub_agents_as_tools
        refs = chosen if isinstance(chosen, list) else [doc.Ref(id=id_) for id_ in visit.agent.sub_agents]
        tools += [registry.get(ref.id, ref.version) for ref in refs]
    tools += [registry.get(ref.id, ref.version) for ref in args.tools or ()]
    return distinct(tools)


async def _before_llm_call(
    visit: Visit, messages: list[BaseMessage], tools: list[Tool]
) -> tuple[list[BaseMessage], list[Tool]]:
    """With hooks, the prompt's system items become one message at the front, which hooks may change.

    System messages out of the conversation are lost then, as they are in sherma.
    """
    args: doc.CallLLM = visit.node.args
    texts = [visit.evaluate(item.content) for item in args.prompt if item.role == "system"]
    changed = await visit.fire(
        "before_llm_call",
        system_prompt="\n".join(text if isinstance(text, str) else str(text) for text in texts),
        messages=[message.model_copy() for message in messages if not isinstance(message, SystemMessage)],
        tools=list(tools),
    )
    system = [SystemMessage(content=changed.system_prompt)] if changed.system_prompt else []
    return [*system, *to_messages(changed.messages)], [_as_tool(tool) for tool in changed.tools]


def _as_tool(tool: Any) -> Tool:
    """A tool a hook left: ours, or a LangChain one it added."""
    return tool if isinstance(tool, Tool) else python_tool(tool.name, "*", tool)


async def _ask_model(
    visit: Visit, args: doc.CallLLM, messages: list[BaseMessage], tools: list[Tool]
) -> AIMessage:
    """spec: on_error, retry. Only the model call is retried; no delay after the last attempt."""
    manifest = visit.agent.manifest
    reference = args.llm or manifest.default_llm
    assert reference is not None  # checked when the manifest was compiled
    llm = visit.agent.llms[reference.id]
    call = LLMCall(
        name=visit.session.invocation.get("models", {}).get(llm.id, llm.model_name),
        provider=llm.provider,
        messages=tuple(messages),
        tools=tuple(bound_specs(tools)),
        response_format=args.response_format.model_dump(by_alias=True) if args.response_format else None,
    )
    retry = (visit.node.on_error and visit.node.on_error.retry) or doc.Retry(max_attempts=1)
    for attempt in range(1, retry.max_attempts):
        try:
            return to_ai_message(await visit.ctx.perform(call), visit.ctx.new_id)
        except Exception as error:
            if visit.ctx.must_end(error):
                raise
            await visit.ctx.sleep(retry.delay_after(attempt))
    return to_ai_message(await visit.ctx.perform(call), visit.ctx.new_id)


# ------------------------------------------------------------------ tool_node


async def tool_node(visit: Visit) -> Result:
    """spec: `tool_node`. The calls of the last ai message, together; answers in the order of the calls."""
    args: doc.ToolNode = visit.node.args
    registry = visit.session.tools
    refs = args.tools
    tools = [registry.get(ref.id, ref.version) for ref in refs] if refs else registry.all()
    if not tools:
        return {"messages": []}
    calls = _last_calls(visit)
    if visit.session.hooks:
        before = await visit.fire("before_tool_call", tool_calls=list(calls), tools=list(tools))
        tools = [_as_tool(tool) for tool in before.tools]
    by_name = {tool.name: tool for tool in tools}
    result: Result = {"messages": await _together([_tool_message(visit, by_name, call) for call in calls])}
    if visit.session.hooks:
        result = (await visit.fire("after_tool_call", result=result)).result
    if visit.agent.skills:
        loaded = Loaded.of(visit.state)
        apply_calls(calls, visit.agent.skills, loaded, visit.ctx.warn)
        result = {**result, INTERNAL: loaded.as_update()}
    return result


def _last_calls(visit: Visit) -> Sequence[Any]:
    messages = visit.state.get("messages", ())
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message.tool_calls
    raise ValueError(f"tool node '{visit.node.name}' finds no ai message in 'messages'")


async def _together(calls: Sequence[Awaitable[ToolMessage]]) -> list[ToolMessage]:
    """Run tool calls side by side; when one fails the others are stopped, and none of them counts."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _tool_message(visit: Visit, tools: Mapping[str, Tool], call: Any) -> ToolMessage:
    """One call's answer. What the model got wrong comes back to it as text; what a tool raises does not."""
    name = call["name"]
    status = "error"
    tool = tools.get(name)
    if tool is None:
        hint = did_you_mean(name, tools)
        content: Any = f"Error: {name} is not a valid tool" + (f" ({hint})." if hint else ".")
    else:
        try:
            content = as_content(await tool.call(tool.checked(call["args"]), visit.ctx))
            status = "success"
        except BadArguments as error:
            content = (
                f"Error: the arguments of tool '{name}' do not fit: {error}. Please fix them and try again."
            )
        except ToolReportedError as error:
            content = f"Error: {error}"
    return ToolMessage(content=content, name=name, tool_call_id=call["id"], status=status)


# ------------------------------------------------------------------ call_agent


async def call_agent(visit: Visit) -> Result:
    """spec: `call_agent`. Sends the text of `input`, appends the answer."""
    args: doc.CallAgent = visit.node.args
    value = visit.evaluate(args.input)
    agent = visit.agent.sub_agents[args.agent.id]
    if visit.session.hooks:
        value = (await visit.fire("before_agent_call", input_value=value, agent=agent)).input_value
    answer = await agent.call(_as_text(value), visit.ctx)
    result: Result = {} if answer is None else {"messages": [AIMessage(content=answer)]}
    if visit.session.hooks:
        result = (await visit.fire("after_agent_call", result=result)).result
    return result


def _as_text(value: Any) -> str:
    """What is sent to an agent: a message's content, text as it is, anything else in Python's spelling."""
    if isinstance(value, Mapping) and "content" in value and ("type" in value or "role" in value):
        value = value["content"]
    return value if isinstance(value, str) else str(value)


# ------------------------------------------------------------------ state


async def data_transform(visit: Visit) -> Result:
    """spec: `data_transform`. A value that is no map is written to the field `result`."""
    args: doc.DataTransform = visit.node.args
    value = visit.evaluate(args.expression)
    return value if isinstance(value, dict) else {"result": value}


async def set_state(visit: Visit) -> Result:
    """spec: `set_state`. All values are evaluated on the state before."""
    args: doc.SetState = visit.node.args
    return {field: visit.evaluate(expression) for field, expression in args.values.items()}


# ------------------------------------------------------------------ interrupt


async def interrupt(visit: Visit) -> Result:
    """spec: `interrupt`. Messages in the answer are kept as they are; anything else becomes a human one."""
    args: doc.Interrupt = visit.node.args
    value = visit.evaluate(args.value)
    if visit.session.hooks:
        value = (await visit.fire("before_interrupt", value=value)).value
    response = await visit.ctx.pause(value)
    if visit.session.hooks:
        response = (await visit.fire("after_interrupt", value=value, response=response)).response
    if isinstance(response, BaseMessage):
        return {"messages": [response]}
    if isinstance(response, list) and all(isinstance(item, BaseMessage) for item in response):
        return {"messages": list(response)}
    return {"messages": [HumanMessage(content=str(response))]}


# ------------------------------------------------------------------ load_skills


async def load_skills(visit: Visit) -> Result:
    """spec: `load_skills`. The messages are those a model would have made; what fails is skipped."""
    args: doc.LoadSkills = visit.node.args
    wanted = visit.evaluate(args.skill_ids)
    if not isinstance(wanted, list):
        raise ValueError(f"skill_ids of node '{visit.node.name}' must be a list, not {type(wanted).__name__}")
    loaded = Loaded.of(visit.state)
    calls: list[Any] = []
    answers: list[ToolMessage] = []
    for entry in wanted:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
            visit.ctx.warn(f"node '{visit.node.name}' skips a skill without an id: {entry!r}")
            continue
        version = str(entry.get("version") or "*")
        try:
            content = await _load_skill(visit, entry["id"], version, loaded)
        except SkillNotFound as error:
            visit.ctx.warn(f"node '{visit.node.name}' skips skill '{entry['id']}': {error}")
            continue
        call_id = visit.ctx.new_id("load_skill")
        calls.append(
            {"name": "load_skill_md", "args": {"skill_id": entry["id"], "version": version}, "id": call_id}
        )
        answers.append(ToolMessage(content=content, name="load_skill_md", tool_call_id=call_id))
    messages = [AIMessage(content="", tool_calls=calls), *answers] if calls else []
    return {"messages": messages, INTERNAL: loaded.as_update()}


async def _load_skill(visit: Visit, id_: str, version: str, loaded: Loaded) -> str:
    """The SKILL.md of a skill, its tools noted as loaded; hooks may change what is loaded and its text."""
    hooks = visit.session.hooks
    info = hook.NodeInfo(visit.node, config=visit.agent.manifest)
    before = await hooks.run("before_skill_load", hook.BeforeSkillLoadContext(info, id_, version))
    skill = visit.agent.skills.get(before.skill_id, before.version)
    content = skill.text("SKILL.md")
    after = hook.AfterSkillLoadContext(info, skill.id, before.version, content, skill.tool_ids)
    content = (await hooks.run("after_skill_load", after)).content
    loaded.load(skill, before.version)
    return content


# ------------------------------------------------------------------ custom


async def custom(visit: Visit) -> Result:
    """spec: `custom`. Nothing but what a `node_execute` hook does."""
    hooks = visit.session.hooks
    if not hooks:
        return {}
    bundle = registries(visit.session, visit.ctx)
    info = hook.NodeInfo(visit.node, config=visit.agent.manifest, registries=bundle)
    context = hook.NodeExecuteContext(info, visit.node.name, hook_state(visit.state), registries=bundle)
    return (await hooks.run("node_execute", context)).result or {}


BODIES: Mapping[str, Callable[[Visit], Awaitable[Result]]] = {
    "call_llm": call_llm,
    "tool_node": tool_node,
    "call_agent": call_agent,
    "data_transform": data_transform,
    "set_state": set_state,
    "interrupt": interrupt,
    "load_skills": load_skills,
    "custom": custom,
}
"""What each node type of the document does."""
