"""The node types: one function each, from a visit to the node's updates, listed in `NODE_FUNCTIONS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from harness.dialects.sherma import document as doc
from harness.dialects.sherma import hooks as hook
from harness.dialects.sherma.call_llm import call_llm
from harness.dialects.sherma.document import INTERNAL_STATE_KEY
from harness.dialects.sherma.registries import registries
from harness.dialects.sherma.skill_tools import make_fetch, register_tools
from harness.dialects.sherma.skills import LoadedSkills, SkillNotFound
from harness.dialects.sherma.tool_node import tool_node
from harness.dialects.sherma.visit import Result, Visit
from harness.graph.messages import message_text

# ------------------------------------------------------------------ call_agent


async def call_agent(visit: Visit) -> Result:
    """Send the text of `input` to an agent, and append its answer. spec: `call_agent`."""
    args: doc.CallAgent = visit.node.args
    value = visit.evaluate(args.input)
    agent = visit.agent.sub_agent(args.agent.id, args.agent.version)
    if visit.session.hooks:
        value = (await visit.fire("before_agent_call", input_value=value, agent=agent)).input_value
    answer = await agent.call(_input_text(value), visit.ctx)
    result: Result = {} if answer is None else {"messages": [AIMessage(content=answer)]}
    if visit.session.hooks:
        result = (await visit.fire("after_agent_call", result=result)).result
    return result


def _input_text(value: Any) -> str:
    """Return a value as text for an agent: a message's text, text as it is, other values as `str()`."""
    if isinstance(value, Mapping) and "content" in value and ("type" in value or "role" in value):
        value = value["content"]
        if isinstance(value, list) and all(isinstance(block, (str, dict)) for block in value):
            return message_text(HumanMessage(content=value))
    return value if isinstance(value, str) else str(value)


# ------------------------------------------------------------------ state


async def data_transform(visit: Visit) -> Result:
    """Return the map of updates; any other value goes to the field `result`. spec: `data_transform`."""
    args: doc.DataTransform = visit.node.args
    value = visit.evaluate(args.expression)
    return value if isinstance(value, dict) else {"result": value}


async def set_state(visit: Visit) -> Result:
    """Evaluate all values on the state before the node. spec: `set_state`."""
    args: doc.SetState = visit.node.args
    return {field: visit.evaluate(expression) for field, expression in args.values.items()}


# ------------------------------------------------------------------ interrupt


async def interrupt(visit: Visit) -> Result:
    """Pause; append the response: messages as they are, other values as a human message. spec: `interrupt`."""
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
    """Load skills, and write the messages that a model loading them would produce. spec: `load_skills`.

    Skills that fail to load are skipped with a warning.
    """
    args: doc.LoadSkills = visit.node.args
    wanted = visit.evaluate(args.skill_ids)
    if not isinstance(wanted, list):
        raise ValueError(f"skill_ids of node '{visit.node.name}' must be a list, not {type(wanted).__name__}")
    loaded = LoadedSkills.of(visit.state)
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
    return {"messages": messages, INTERNAL_STATE_KEY: loaded.as_update()}


async def _load_skill(visit: Visit, id_: str, version: str, loaded: LoadedSkills) -> str:
    """Load a skill between its hooks; return its SKILL.md."""
    hooks = visit.session.hooks
    info = visit.node_info()
    before = await hooks.run("before_skill_load", hook.BeforeSkillLoadContext(info, id_, version))
    skill = visit.agent.skills.get(before.skill_id, before.version)
    content = await skill.text("SKILL.md", make_fetch(visit.ctx))
    tool_ids = await register_tools(visit, skill)
    after = hook.AfterSkillLoadContext(info, skill.id, before.version, content, tool_ids)
    content = (await hooks.run("after_skill_load", after)).content
    loaded.load(skill, before.version, tool_ids)
    return content


# ------------------------------------------------------------------ custom


async def custom(visit: Visit) -> Result:
    """Run the `node_execute` hooks; the node does nothing else. spec: `custom`."""
    hooks = visit.session.hooks
    if not hooks:
        return {}
    bundle = registries(visit.session, visit.ctx)
    info = visit.node_info(bundle)
    context = hook.NodeExecuteContext(info, visit.node.name, visit.hook_state, registries=bundle)
    return (await hooks.run("node_execute", context)).result or {}


NODE_FUNCTIONS: Mapping[str, Callable[[Visit], Awaitable[Result]]] = {
    "call_llm": call_llm,
    "tool_node": tool_node,
    "call_agent": call_agent,
    "data_transform": data_transform,
    "set_state": set_state,
    "interrupt": interrupt,
    "load_skills": load_skills,
    "custom": custom,
}
"""The function of each node type."""
