"""Graphs that run inside a visit of a node, in the same world, clock and trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from harness.engine.context import Caller, NodeContext
from harness.engine.conversation import Conversation, Ending
from harness.engine.pauses import PausePoint
from harness.errors import RunError
from harness.graph.model import Graph, State

# Sub-agents that call each other for ever are stopped here.
MAX_CALLS = 10

# What a manifest nests comes to an end by itself, and a graph that nests itself is stopped here.
MAX_INSIDE = 100

# A level takes some thirty frames of Python's stack, which has a thousand.
LEVELS_OF_A_STACK = 8

PartialUpdate = Callable[[State], Mapping[str, Any]]


class NestingError(RunError):
    """Graphs nested too deep: agents that call each other in a circle, or too many graphs in each other."""

    code = "nesting"


@dataclass
class Nested:
    """A graph that runs as a part of a visit. `answered` counts those of its pauses that got an answer."""

    caller: Caller
    conversation: Conversation
    ending: Ending
    answered: int = 0


async def run_nested(ctx: NodeContext, graph: Graph, value: Any) -> Ending:
    """Run another graph from its start, on a thread of its own, in this visit's world, clock and trace.

    A pause ends it with the status `interrupted`.

    Raises:
        NestingError: deeper than `MAX_CALLS` levels.
        Exception: what ended the nested run, if it failed.
    """
    caller = _caller(ctx, calls=1)
    if caller.calls > MAX_CALLS:
        raise NestingError(
            f"agents call each other more than {MAX_CALLS} levels deep: {caller.path}{graph.name}"
        )
    conversation = await _prepared(ctx, graph, caller)
    return _not_failed(await _on_the_stack(conversation.send(value, ask=False), caller))


async def run_inside(
    ctx: NodeContext,
    graph: Graph,
    value: Any,
    *,
    key: str = "",
    attribute_to_caller: bool = False,
    partial_update: PartialUpdate | None = None,
) -> Ending:
    """Run another graph as a part of this visit: when it pauses and nobody answers, this node pauses.

    When the node is resumed and reaches this call again, the nested run goes on where it was. Several may run side by
    side (`harness.time.gather`): the node pauses when each has ended or paused, for the first of them.

    Args:
        ctx: the visit.
        graph: what runs, on a thread of its own, in this world, clock and trace.
        value: its input.
        key: tells nested runs apart that may be reached in another order when the node is re-run.
        attribute_to_caller: its effects carry this node's name, as if this node made them.
        partial_update: what this node leaves while it is paused, made from the nested run's state; see
            `NodeContext.pause`.

    Raises:
        NestingError: deeper than `MAX_INSIDE` levels.
        Exception: what ended the nested run, if it failed.
    """
    pauses = ctx.pauses
    point = pauses.reach(f"inside {key}")
    nested: Nested | None = pauses.replay.nested.get(point)
    if nested is None:
        caller = _caller(ctx, inside=1, attribute_to_caller=attribute_to_caller)
        if caller.inside > MAX_INSIDE:
            raise NestingError(
                f"graphs run inside each other more than {MAX_INSIDE} levels deep: {caller.path}{graph.name}"
            )
        with pauses.running():
            conversation = await _prepared(ctx, graph, caller)
            nested = Nested(caller, conversation, await _on_the_stack(conversation.send(value), caller))
        pauses.replay.nested[point] = nested
    else:
        pauses.replayed(nested.answered)
    while nested.ending.status == "interrupted":
        await _answer(ctx, nested, point, partial_update)
    return _not_failed(nested.ending)


async def _answer(
    ctx: NodeContext, nested: Nested, point: PausePoint, partial_update: PartialUpdate | None
) -> None:
    """Pause for each pause of a nested run, one after the other, and have it go on with the answers."""
    pauses, conversation = ctx.pauses, nested.conversation
    partial = partial_update(conversation.state) if partial_update else None
    questions = dict(conversation.pending)
    if all(question.breakpoint for question in questions.values()):
        questions = dict([questions.popitem()])  # they ask nothing, so that one stands for all
    answers = [
        await pauses.answer(point, question.value, partial, asked=id_, breakpoint=question.breakpoint)
        for id_, question in questions.items()
    ]
    with pauses.running():
        nested.ending = await _on_the_stack(conversation.resume(*answers), nested.caller)
    nested.answered += len(answers)
    for id_ in questions:
        del pauses.replay.answers[point, id_]


def _caller(
    ctx: NodeContext, *, calls: int = 0, inside: int = 0, attribute_to_caller: bool = False
) -> Caller:
    """This visit as the caller of a graph, so many levels further down."""
    above = ctx.run.caller
    return Caller(
        path=f"{ctx.run.prefix}{ctx.name}/",
        top=above.top if above else ctx.name,
        name=ctx.name,
        node=ctx.run.effect_node(ctx.name),
        calls=calls + (above.calls if above else 0),
        inside=inside + (above.inside if above else 0),
        attribute_to_caller=attribute_to_caller,
    )


async def _prepared(ctx: NodeContext, graph: Graph, caller: Caller) -> Conversation:
    """A conversation with another graph, ready for its input."""
    conversation = Conversation(graph, ctx.run.simulation, caller=caller, single=True)
    await conversation.prepare()
    return conversation


async def _on_the_stack(going: Coroutine[Any, Any, Ending], caller: Caller) -> Ending:
    """Await a nested run; every so many levels in a task of its own, whose stack is new."""
    if (caller.calls + caller.inside) % LEVELS_OF_A_STACK:
        return await going
    return await asyncio.create_task(going)


def _not_failed(ending: Ending) -> Ending:
    if ending.error is not None:
        raise ending.error
    return ending
