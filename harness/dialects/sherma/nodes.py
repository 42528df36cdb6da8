"""The node types: one function each, from a visit to the node's updates, listed in `NODE_FUNCTIONS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from harness.dialects.kit.tool_calls import answer_calls, refuse_all
from harness.dialects.sherma import document as doc
from harness.dialects.sherma import hooks as hook
from harness.dialects.sherma.agent import Fetch, LoadedSkills, Skill, SkillNotFound, Skills
from harness.dialects.sherma.call_llm import Result, Visit, call_llm
from harness.dialects.sherma.document import INTERNAL_STATE_KEY
from harness.dialects.sherma.registries import registries
from harness.dialects.sherma.tools import (
    Origin,
    Tool,
    as_content,
    mcp_tool,
    python_tool,
    to_tool,
    unique_by_name,
)
from harness.engine.context import NodeContext
from harness.graph.effects import MCPEndpoint
from harness.graph.http_call import http_call
from harness.graph.messages import message_text


async def register_tools(visit: Visit, skill: Skill) -> list[str]:
    """Register the tools of a skill, and return their ids.

    Raises:
        SkillNotFound: an MCP server of the skill cannot be used.
    """
    ids = skill.tool_ids
    for server in skill.card.mcps.values():
        endpoint = MCPEndpoint(server.id, server.transport.replace("-", "_"), server.url)
        try:
            listed = await visit.ctx.run.world.mcp_tools(endpoint)
        except Exception as error:
            if visit.ctx.is_fatal(error):
                raise
            text = f"MCP server '{server.id}' of skill '{skill.id}' cannot be used: {error}"
            raise SkillNotFound(text) from error
        for tool in listed:
            visit.session.tools.add(mcp_tool(endpoint, server.version, "", tool))
            ids.append(tool.name)
    return ids


def skill_tools(skills: Skills) -> list[Tool]:
    """Return the seven tools of progressive disclosure. They are native: they need no stub."""

    async def no_fetch(url: str) -> str:
        raise SkillNotFound(f"nothing to fetch {url} with")

    def tool(name: str, function: Any) -> Tool:
        def native(ctx: NodeContext) -> Any:
            return _skill_functions(skills, make_fetch(ctx))[name]

        return python_tool(name, "*", function, native=native, origin=Origin.SKILL)

    return [tool(name, function) for name, function in _skill_functions(skills, no_fetch).items()]


def make_fetch(ctx: NodeContext) -> Fetch:
    """Return a function that fetches text over HTTP, as effects of a node."""

    async def fetch(url: str) -> str:
        reply = await ctx.perform(http_call("GET", url, hint=f"or give the skill a card in a file: {url}"))
        if reply.status >= 400:
            raise SkillNotFound(f"{url} answers with status {reply.status}")
        return str(reply.text)

    return fetch


def _skill_functions(skills: Skills, fetch: Fetch) -> dict[str, Callable[..., Awaitable[Any]]]:
    """Return the seven tools as functions; models see their signatures and docstrings."""

    async def list_skills() -> list[dict[str, str]]:
        """List all available skills with their id, version, name and description."""
        return skills.listed()

    async def load_skill_md(skill_id: str, version: str = "*") -> str:
        """Load the SKILL.md of a skill, and with it the tools of the skill."""
        return await skills.get(skill_id, version).text("SKILL.md", fetch)

    async def unload_skill(skill_id: str, version: str = "*") -> str:
        """Unload a skill that is no longer needed; its tools can then no longer be called."""
        ids = skills.get(skill_id, version).tool_ids
        gone = f"Unbound tools: {', '.join(ids)}" if ids else "It had no tools."
        return f"Skill '{skill_id}' unloaded. {gone}"

    async def list_skill_resources(skill_id: str, version: str = "*") -> list[str]:
        """List the reference files of a skill."""
        return skills.get(skill_id, version).files_under("references/")

    async def load_skill_resource(skill_id: str, resource_path: str, version: str = "*") -> str:
        """Load a reference file of a skill."""
        return await _listed_file(skills.get(skill_id, version), resource_path, "references/", fetch)

    async def list_skill_assets(skill_id: str, version: str = "*") -> list[str]:
        """List the assets of a skill."""
        return skills.get(skill_id, version).files_under("assets/")

    async def load_skill_asset(skill_id: str, asset_path: str, version: str = "*") -> str:
        """Load an asset of a skill."""
        return await _listed_file(skills.get(skill_id, version), asset_path, "assets/", fetch)

    functions = (
        *(list_skills, load_skill_md, unload_skill),
        *(list_skill_resources, load_skill_resource, list_skill_assets, load_skill_asset),
    )
    return {function.__name__: function for function in functions}


async def _listed_file(skill: Skill, name: str, prefix: str, fetch: Fetch) -> str:
    """Return the text of a listed file, or an error text that names the listed files."""
    available = skill.files_under(prefix)
    if name not in available:
        return f"Error: '{name}' not found. Available: {', '.join(available) or 'none'}"
    return await skill.text(name, fetch)


async def tool_node(visit: Visit) -> Result:
    """Run the calls of the last ai message concurrently; tool messages are in the order of the calls."""
    args: doc.ToolNode = visit.node.args
    registry = visit.session.tools
    refs, calls = args.tools, _last_calls(visit)
    tools = [registry.get(ref.id, ref.version) for ref in refs] if refs else registry.all()
    if not tools:
        refuse_all(calls or (), visit.ctx)
        return {"messages": []}
    if calls is None:
        raise ValueError(f"tool node '{visit.node.name}' finds no ai message in 'messages'")
    before = await visit.fire("before_tool_call", tool_calls=list(calls), tools=list(tools))
    by_name = {tool.name: tool for tool in unique_by_name(map(to_tool, before.tools))}

    async def use(tool: Tool, args: Mapping[str, Any]) -> str | list[Any]:
        return as_content(await tool.call(args, visit.ctx))

    answers: Result = {"messages": await answer_calls(calls, by_name, use, visit.ctx)}
    result = (await visit.fire("after_tool_call", result=answers)).result or {}
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
    messages = reversed(visit.state.get("messages", ()))
    return next((message.tool_calls for message in messages if isinstance(message, AIMessage)), None)


# ------------------------------------------------------------------ call_agent


async def call_agent(visit: Visit) -> Result:
    """Send the text of `input` to an agent, and append its answer. spec: `call_agent`."""
    args: doc.CallAgent = visit.node.args
    value = visit.evaluate(args.input)
    agent = visit.agent.sub_agent(args.agent.id, args.agent.version)
    value = (await visit.fire("before_agent_call", input_value=value, agent=agent)).input_value
    answer = await agent.call(_input_text(value), visit.ctx)
    given = {} if answer is None else {"messages": [AIMessage(content=answer)]}
    result: Result = (await visit.fire("after_agent_call", result=given)).result
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
    value = (await visit.fire("before_interrupt", value=visit.evaluate(args.value))).value
    response = await visit.ctx.pause(value)
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


_FUNCTIONS: Final = (
    call_llm,
    tool_node,
    call_agent,
    data_transform,
    set_state,
    interrupt,
    load_skills,
    custom,
)
NODE_FUNCTIONS: Final[Mapping[str, Callable[[Visit], Awaitable[Result]]]] = {
    function.__name__: function for function in _FUNCTIONS
}
"""The function of each node type, which has its name."""
