"""Small graphs, and what runs them in virtual time and a scripted world."""

import asyncio

from harness.engine.context import Simulation
from harness.engine.conversation import Conversation
from harness.graph.effects import ToolCall
from harness.graph.model import Channel, Edge, Graph, Node, Update
from harness.time.clock import VirtualTimeLoop
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec

COUNT = Channel("n", initial=lambda: 0)
ADDED = Channel("log", reducer=lambda old, new: old + new, initial=list)


def graph(nodes, edges, channels=(), **more):
    return Graph(
        name="g",
        dialect="test",
        nodes=tuple(Node(name, "step", run) for name, run in nodes.items()),
        edges=tuple(edge if isinstance(edge, Edge) else Edge(*edge) for edge in edges),
        channels=tuple(channels),
        **more,
    )


def writes(**values):
    async def run(state, ctx):
        return Update({key: value(state) if callable(value) else value for key, value in values.items()})

    return run


def asks(question):
    async def run(state, ctx):
        return Update({"log": [await ctx.pause(question)]})

    return run


def asks_tool(**keywords):
    async def run(state, ctx):
        return Update({"n": await ctx.perform(ToolCall(name="t", args={}, **keywords))})

    return run


def simulate(main, world=None, seed=0):
    async def inside():
        simulation = Simulation(ScriptedWorld(world or WorldSpec()), seed)
        return await main(simulation)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(inside())


def send(built, value=None, world=None, seed=0):
    async def main(simulation):
        conversation = Conversation(built, simulation)
        return await conversation.send({} if value is None else value), simulation.trace

    return simulate(main, world, seed)
