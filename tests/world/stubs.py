"""Effects, stubs and scripted worlds, and their answers."""

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from harness.graph.effects import LLMCall
from harness.world.scripted import ScriptedWorld
from harness.world.spec import Stub, WorldSpec


def llm(node: Any = "n", model: Any = "gpt-4o", **more: Any) -> Any:
    return LLMCall(node=node, name=model, messages=(SystemMessage("be kind"), HumanMessage("hello")), **more)


def ask(world: Any, effect: Any, state: Any = None) -> Any:
    return asyncio.run(world.answer(effect, state or {}))


def answers(spec: Any, *effects: Any, state: Any = None) -> Any:
    world = ScriptedWorld(spec)
    return [ask(world, effect, state).value for effect in effects]


def replies(*stubs: Any) -> Any:
    return WorldSpec(llm=tuple(stubs))


def reply(text: Any, **matchers: Any) -> Any:
    return Stub(answer={"reply": text}, **matchers)


async def really() -> Any:
    return "really"
