"""Tools, hooks and agents that the manifests of these cases import."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.tools import BaseTool, tool
from pydantic import BaseModel
from sherma.hooks import BaseHookExecutor

HERE = Path(__file__).parent


@tool
def ring(bell: str) -> str:
    """Ring a bell."""
    return f"{bell} rings"


@tool
async def ring_later(bell: str) -> str:
    """Ring a bell in two seconds."""
    await asyncio.sleep(2)
    return f"{bell} rang"


@tool("double_it")
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def sample(kind: str) -> Any:
    """A value of a kind."""
    return {
        "map": {"a": 1, "é": None},
        "list": ["a", 2],
        "null": None,
        "yes": True,
        "half": 0.5,
        "empty": "",
    }[kind]


@tool
def climb(height: int) -> int:
    """Climb; nobody climbs down."""
    if height < 0:
        raise ValueError("that is a hole")
    return height


class Berth(BaseModel):
    harbour: str
    number: int = 1


class Side(Enum):
    port = "port"
    starboard = "starboard"


@tool
def moor(berth: Berth, side: Side = Side.port) -> str:
    """Moor at a berth."""
    return f"{berth.harbour} {berth.number} {side.value}"


class Whistle(BaseTool):
    """A tool written as a class."""

    name: str = "whistle"
    description: str = "Whistle a tune."

    def _run(self, tune: str) -> str:
        return f"♪ {tune}"


whistle = Whistle()


def add_ten(number: int) -> int:
    """Stands in for another tool."""
    return number + 10


def parrot(text: str) -> str:
    """A sub-agent that is a function."""
    return f"parrot says {text}"


def raven(text: str) -> str:
    return f"raven says {text}"


class Grades(BaseHookExecutor):
    async def node_execute(self, ctx: Any) -> Any:
        ctx.result = {"levels": {**ctx.state["levels"], 2: "top"}}
        return ctx


class Diary(BaseHookExecutor):
    """Notes every hook point; the node `dump` writes the notes to `log`."""

    def __init__(self) -> None:
        self.log: list[str] = []


def _noting(point: str) -> Any:
    async def method(self: Diary, ctx: Any) -> Any:
        names = (getattr(ctx, key, None) for key in ("node_name", "agent_id", "llm_id"))
        who = next(name for name in names if name is not None)
        self.log.append(f"{point}:{who}")
        if point == "node_execute" and who == "dump":
            ctx.result = {"log": list(self.log)}
        return ctx

    return method


for _point in [
    "before_llm_call",
    "after_llm_call",
    "before_tool_call",
    "after_tool_call",
    "before_agent_call",
    "after_agent_call",
    "node_enter",
    "node_execute",
    "node_exit",
    "before_interrupt",
    "after_interrupt",
    "on_chat_model_create",
    "before_graph_invoke",
    "after_graph_invoke",
    "on_node_error",
    "on_error",
]:
    setattr(Diary, _point, _noting(_point))


class Summariser(BaseHookExecutor):
    """Asks a model of the registries and reads a prompt."""

    async def node_execute(self, ctx: Any) -> Any:
        answer = await ctx.registries.chat_models["m"].ainvoke([*ctx.state["messages"], ("human", "Sum up.")])
        prompt = await ctx.registries.prompt_registry.get("long")
        ctx.result = {"summary": answer.content, "text": prompt.instructions}
        return ctx


class Noting(BaseHookExecutor):
    """Writes the metadata of its node."""

    async def node_execute(self, ctx: Any) -> Any:
        ctx.result = {"seen": ctx.node_context.node_def.args.metadata}
        return ctx


class Tolerant(BaseHookExecutor):
    """Catches whatever its model raises."""

    async def node_execute(self, ctx: Any) -> Any:
        try:
            await ctx.registries.chat_models["m"].ainvoke("hello?")
        except Exception:
            ctx.result = {"summary": "never mind"}
        return ctx


class Merciful(BaseHookExecutor):
    """Swallows the errors of nodes and of runs."""

    async def on_node_error(self, ctx: Any) -> Any:
        ctx.error = None
        return ctx

    async def on_error(self, ctx: Any) -> Any:
        ctx.error = None
        return ctx


class MercifulAtTheEnd(BaseHookExecutor):
    """Swallows the errors of runs."""

    async def on_error(self, ctx: Any) -> Any:
        ctx.error = None
        return ctx


class Renaming(BaseHookExecutor):
    """Puts its own error in the place of a run's."""

    async def on_error(self, ctx: Any) -> Any:
        ctx.error = OSError(f"{ctx.agent_id}: {ctx.error}")
        return ctx


class Rewriting(BaseHookExecutor):
    """Changes what goes into and comes out of models, agents and people."""

    async def before_llm_call(self, ctx: Any) -> Any:
        ctx.messages = [*ctx.messages, HumanMessage(content="by the way")]
        return ctx

    async def before_agent_call(self, ctx: Any) -> Any:
        ctx.input_value = f"please: {ctx.input_value}"
        return ctx

    async def after_agent_call(self, ctx: Any) -> Any:
        ctx.result = {"messages": [AIMessage(content=ctx.result["messages"][0].content + "!")]}
        return ctx

    async def before_interrupt(self, ctx: Any) -> Any:
        ctx.value = {"asked": ctx.value}
        return ctx

    async def after_interrupt(self, ctx: Any) -> Any:
        ctx.response = f"heard {ctx.response}"
        return ctx


class ShortLeash(BaseHookExecutor):
    """Four supersteps are enough."""

    async def before_graph_invoke(self, ctx: Any) -> Any:
        ctx.config["recursion_limit"] = 4
        return ctx


class Metering(BaseHookExecutor):
    """Says what the provider reported."""

    async def after_llm_call(self, ctx: Any) -> Any:
        used, metadata = ctx.response.usage_metadata, ctx.response.response_metadata
        ctx.response.content = f"{used['input_tokens']}/{used['output_tokens']}/{metadata['finish_reason']}"
        return ctx


class Editor(BaseHookExecutor):
    """Replaces the first message in `swap` and removes it in `drop`."""

    async def node_execute(self, ctx: Any) -> Any:
        first = ctx.state["messages"][0]
        if ctx.node_name == "swap":
            ctx.result = {"messages": [HumanMessage(id=first.id, content="new"), AIMessage(content="tail")]}
        else:
            ctx.result = {"messages": [RemoveMessage(id=first.id)]}
        return ctx


class Toolsmith(BaseHookExecutor):
    """Adds a tool for the model, takes one from the tool node, marks the answers."""

    async def before_llm_call(self, ctx: Any) -> Any:
        ctx.tools = [*ctx.tools, double]
        return ctx

    async def before_tool_call(self, ctx: Any) -> Any:
        ctx.tools = [item for item in ctx.tools if item.name != "climb"]
        return ctx

    async def after_tool_call(self, ctx: Any) -> Any:
        for message in ctx.result["messages"]:
            message.content = f"[{message.name}] {message.content}"
        return ctx


class SkillNickname(BaseHookExecutor):
    """Knows a skill by another name and rewrites what is read."""

    async def before_skill_load(self, ctx: Any) -> Any:
        if ctx.skill_id == "light":
            ctx.skill_id = "lamp"
        return ctx

    async def after_skill_load(self, ctx: Any) -> Any:
        ctx.content = f"{ctx.skill_id} with {', '.join(ctx.tools_loaded)}"
        return ctx


class AddsAField(BaseHookExecutor):
    """Adds a field to what the node `hooked` writes."""

    async def node_exit(self, ctx: Any) -> Any:
        if ctx.node_name == "hooked":
            ctx.result["founds"] = 1
        return ctx


class Decides(BaseHookExecutor):
    """Tags what a reviewer says with a decision."""

    async def node_exit(self, ctx: Any) -> Any:
        if ctx.node_type == "interrupt":
            text = str(ctx.result["messages"][-1].content)
            decision = "approve" if text.lower().startswith("approve") else "revise"
            ctx.result["messages"] = [HumanMessage(text, additional_kwargs={"decision": decision})]
            return ctx
        return None


class Timing(BaseHookExecutor):
    """Notes in the state, when a node is entered, what it reads when the node is left."""

    async def node_enter(self, ctx: Any) -> None:
        ctx.state["__noted__"] = ctx.node_name

    async def node_exit(self, ctx: Any) -> Any:
        ctx.result["messages"][0] = AIMessage("ok", additional_kwargs={"noted": ctx.state["__noted__"]})
        return ctx


class OtherModel(BaseHookExecutor):
    """Has another model made."""

    async def on_chat_model_create(self, ctx: Any) -> Any:
        ctx.kwargs["model"] = "gpt-other"
        return ctx
