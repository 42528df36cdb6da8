"""The tool_node: runs the tool calls of the last ai message. spec: `tool_node`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage

from harness.dialects.kit.tool_calls import answer_calls, refuse_all
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.document import INTERNAL_STATE_KEY
from harness.dialects.sherma.skill_tools import register_tools
from harness.dialects.sherma.skills import LoadedSkills, SkillNotFound
from harness.dialects.sherma.tools import Tool, as_content, to_tool, unique_by_name
from harness.dialects.sherma.visit import Result, Visit


async def tool_node(visit: Visit) -> Result:
    """Run the calls of the last ai message concurrently; tool messages are in the order of the calls."""
    args: doc.ToolNode = visit.node.args
    registry = visit.session.tools
    refs = args.tools
    tools = [registry.get(ref.id, ref.version) for ref in refs] if refs else registry.all()
    if not tools:
        refuse_all(_last_calls(visit) or (), visit.ctx)
        return {"messages": []}
    calls = _last_calls(visit)
    if calls is None:
        raise ValueError(f"tool node '{visit.node.name}' finds no ai message in 'messages'")
    if visit.session.hooks:
        before = await visit.fire("before_tool_call", tool_calls=list(calls), tools=list(tools))
        tools = [to_tool(tool) for tool in before.tools]
    by_name = {tool.name: tool for tool in unique_by_name(tools)}

    async def use(tool: Tool, args: Mapping[str, Any]) -> str | list[Any]:
        return as_content(await tool.call(args, visit.ctx))

    result: Result = {"messages": await answer_calls(calls, by_name, use, visit.ctx)}
    if visit.session.hooks:
        result = (await visit.fire("after_tool_call", result=result)).result or {}
    if visit.agent.skills:
        loaded = LoadedSkills.of(visit.state)
        await _record_skills(visit, calls, loaded)
        result = {**result, INTERNAL_STATE_KEY: loaded.as_update()}
    return result


async def _record_skills(visit: Visit, calls: Sequence[Any], loaded: LoadedSkills) -> None:
    """Record the skills that `load_skill_md` and `unload_skill` calls loaded and unloaded."""
    for call in calls:
        skill_id = call["args"].get("skill_id")
        if not isinstance(skill_id, str):
            continue  # the tool refused these arguments
        version = str(call["args"].get("version") or "*")
        if call["name"] == "load_skill_md":
            try:
                skill = visit.agent.skills.get(skill_id, version)
                loaded.load(skill, version, await register_tools(visit, skill))
            except SkillNotFound as error:
                visit.ctx.warn(f"skill '{skill_id}' was not loaded: {error}")
        elif call["name"] == "unload_skill":
            loaded.unload(skill_id)


def _last_calls(visit: Visit) -> Sequence[Any] | None:
    """Return the tool calls of the last ai message; None if there is no such message."""
    messages = visit.state.get("messages", ())
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message.tool_calls
    return None
