"""Hooks that reach what the manifest declares, and hooks that are not written as they should be."""

from typing import Any

from pydantic import BaseModel

from harness.dialects.sherma.hooks import BaseHookExecutor


class Verdict(BaseModel):
    """What the model decided."""

    ring: bool
    why: str = ""


class Reaching(BaseHookExecutor):
    """Lets a model decide, calls a tool of each kind, and asks a sub-agent."""

    async def node_execute(self, ctx: Any) -> Any:
        registries = ctx.registries
        verdict = await registries.chat_models["m"].with_structured_output(Verdict).ainvoke("Shall I ring?")
        ring = await registries.tool_registry.get("ring")
        old = await registries.tool_registry.get("ring", "1.2")
        guide = await registries.tool_registry.get("guide")
        ctx.result = {
            "seen": [
                verdict.ring,
                await ring.function.ainvoke({"bell": "new"}),
                await old.function.ainvoke({"bell": "old"}),
                await guide.function.ainvoke({"request": "where?"}),
                (await registries.prompt_registry.get("p", "2.0.0")).instructions,
            ]
        }
        return ctx


class AsksAServer(BaseHookExecutor):
    """Calls a tool of an MCP server."""

    async def node_execute(self, ctx: Any) -> Any:
        high = await ctx.registries.tool_registry.get("sea_high")
        ctx.result = {"seen": [await high.function.ainvoke({})]}
        return ctx


class WrongVersion(BaseHookExecutor):
    """Asks for a version that nobody declared."""

    async def node_execute(self, ctx: Any) -> None:
        await ctx.registries.llm_registry.get("m", "9.0.0")


class NeedsWords(BaseHookExecutor):
    """Cannot be made without arguments."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    async def node_execute(self, ctx: Any) -> None:
        ctx.result = {"seen": self.words}


class Misspelt(BaseHookExecutor):
    """Has no method that is called."""

    async def node_excute(self, ctx: Any) -> None:
        ctx.result = {"seen": ["misspelt"]}


class Idle(BaseHookExecutor):
    """Overrides nothing."""


class OfModels(BaseHookExecutor):
    """Has nothing for custom nodes, and a method of its own."""

    def node_entered(self) -> bool:
        return True

    async def before_llm_call(self, ctx: Any) -> Any:
        return ctx


class GivesAMapping(BaseHookExecutor):
    """Returns the result in place of the context."""

    async def node_execute(self, ctx: Any) -> Any:
        return {"seen": [ctx.node_name]}


class LeavesText(BaseHookExecutor):
    """Leaves a result that is no mapping."""

    async def node_execute(self, ctx: Any) -> None:
        ctx.result = "done"


def count_to(end: int) -> list[int]:
    """Count."""
    return list(range(1, end + 1))


class LeavesTools(BaseHookExecutor):
    """Gives the model a function, and the tool node a number."""

    async def before_llm_call(self, ctx: Any) -> Any:
        ctx.tools = [*ctx.tools, count_to]
        return ctx

    async def before_tool_call(self, ctx: Any) -> Any:
        ctx.tools = [7]
        return ctx


class LeavesAnAnswer(BaseHookExecutor):
    """Puts text in the place of the model's message."""

    async def after_llm_call(self, ctx: Any) -> Any:
        ctx.response = ctx.response.content.upper()
        return ctx


class LeavesAKey(BaseHookExecutor):
    """Puts a key in the place of all settings."""

    async def on_chat_model_create(self, ctx: Any) -> Any:
        ctx.kwargs = "sk-1"
        return ctx


def not_a_hook() -> None:
    """No class, and no methods."""
