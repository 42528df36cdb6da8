"""Effects, stubs and scripted worlds, and their answers."""

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from harness.graph.effects import LLMCall
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec


def world_spec(**keys: Any) -> WorldSpec:
    """Return the world that a scenario with these keys has."""
    return WorldSpec.model_validate(keys)


def llm(node: Any = "n", model: Any = "gpt-4o", **more: Any) -> Any:
    return LLMCall(node=node, name=model, messages=(SystemMessage("be kind"), HumanMessage("hello")), **more)


def ask(world: Any, effect: Any, state: Any = None) -> Any:
    return asyncio.run(world.answer(effect, state or {}))


def answers(spec: Any, *effects: Any, state: Any = None) -> Any:
    world = ScriptedWorld(spec)
    return [ask(world, effect, state).value for effect in effects]


def replies(*stubs: Any) -> Any:
    return world_spec(llm=[*stubs])


def reply(text: Any, **matchers: Any) -> Any:
    return {**matchers, "reply": text}


async def really() -> Any:
    return "really"
