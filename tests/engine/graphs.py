"""Small graphs, and helpers that run them in virtual time and a scripted world."""

import asyncio
from typing import Any

from harness.engine.conversation import Conversation
from harness.engine.standstill import Simulation
from harness.graph.effects import ToolCall
from harness.graph.model import Channel, Edge, Graph, Node, Update
from harness.time.clock import VirtualTimeLoop
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec

COUNT = Channel("n", initial=lambda: 0)
ADDED = Channel("log", reducer=lambda old, new: old + new, initial=list)


def graph(nodes: Any, edges: Any, channels: Any = (), **more: Any) -> Any:
    return Graph(
        name="g",
        dialect="test",
        nodes=tuple(Node(name, "step", run) for name, run in nodes.items()),
        edges=tuple(edge if isinstance(edge, Edge) else Edge(*edge) for edge in edges),
        channels=tuple(channels),
        **more,
    )


def writes(**values: Any) -> Any:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({key: value(state) if callable(value) else value for key, value in values.items()})

    return run


def asks(question: Any) -> Any:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": [await ctx.pause(question)]})

    return run


def asks_tool(**keywords: Any) -> Any:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({"n": await ctx.perform(ToolCall(name="t", args={}, **keywords))})

    return run


def simulate(main: Any, world: Any = None, seed: Any = 0) -> Any:
    async def inside() -> Any:
        simulation = Simulation(ScriptedWorld(world or WorldSpec()), seed)
        return await main(simulation)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(inside())


def send(built: Any, value: Any = None, world: Any = None, seed: Any = 0) -> Any:
    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        return await conversation.send({} if value is None else value), simulation.trace

    return simulate(main, world, seed)
