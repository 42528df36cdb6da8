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

MAX_CALLS = 10
"""The most levels of `run_nested`: sub-agents that call each other in a circle are stopped here."""

MAX_INSIDE = 100
"""The most levels of `run_inside`: a graph that contains itself is stopped here."""

LEVELS_PER_STACK = 8
"""Levels that share a stack. One takes some 30 frames, and Python allows 1000."""

PartialUpdate = Callable[[State], Mapping[str, Any]]


class NestingError(RunError):
    """Graphs nested too deep: agents that call each other in a circle, or too many graphs inside each other."""

    code = "nesting"


@dataclass
class NestedRun:
    """A graph that runs inside a visit. `answered` is the number of its pauses that were answered."""

    caller: Caller
    conversation: Conversation
    ending: Ending
    answered: int = 0


async def run_nested(ctx: NodeContext, graph: Graph, value: Any) -> Ending:
    """Run another graph from its start, on a thread of its own, in this visit's world, clock and trace.

    A pause ends it with the status `interrupted`.

    Raises:
        NestingError: it would be deeper than `MAX_CALLS` levels.
        Exception: the error of the nested run, if it failed.
    """
    caller = _caller(ctx, calls=1)
    if caller.calls > MAX_CALLS:
        raise NestingError(
            f"agents call each other more than {MAX_CALLS} levels deep: {caller.path}{graph.name}"
        )
    conversation = await _prepare(ctx, graph, caller)
    return _checked(await _with_stack(conversation.send(value, ask=False), caller))


async def run_inside(
    ctx: NodeContext,
    graph: Graph,
    value: Any,
    *,
    key: str = "",
    attribute_to_caller: bool = False,
    partial_update: PartialUpdate | None = None,
) -> Ending:
    """Run another graph as a part of this visit: if it pauses and nobody answers, this node pauses.

    When the node is resumed and reaches this call again, the nested run continues where it paused. Several may run
    side by side (`harness.time.gather`): the node pauses when each has ended or paused, for the first of them.

    Args:
        ctx: the visit.
        graph: the graph, which runs on a thread of its own, in this visit's world, clock and trace.
        value: the input of the graph.
        key: identifies the nested run if a re-run of the node may reach its nested runs in another order.
        attribute_to_caller: the graph's effects carry this node's name, as if this node performed them.
        partial_update: makes this node's partial update while it is paused (see `NodeContext.pause`) from the state
            of the nested run.

    Raises:
        NestingError: it would be deeper than `MAX_INSIDE` levels.
        Exception: the error of the nested run, if it failed.
    """
    pauses = ctx.pauses
    point = pauses.reach(f"inside {key}")
    nested: NestedRun | None = pauses.replay.nested.get(point)
    if nested is None:
        caller = _caller(ctx, inside=1, attribute_to_caller=attribute_to_caller)
        if caller.inside > MAX_INSIDE:
            raise NestingError(
                f"graphs run inside each other more than {MAX_INSIDE} levels deep: {caller.path}{graph.name}"
            )
        with pauses.running():
            conversation = await _prepare(ctx, graph, caller)
            nested = NestedRun(caller, conversation, await _with_stack(conversation.send(value), caller))
        pauses.replay.nested[point] = nested
    else:
        pauses.replayed(nested.answered)
    while nested.ending.status == "interrupted":
        await _answer(ctx, nested, point, partial_update)
    return _checked(nested.ending)


async def _answer(
    ctx: NodeContext, nested: NestedRun, point: PausePoint, partial_update: PartialUpdate | None
) -> None:
    """Pause for each pause of a nested run, one after the other, and resume it with the answers."""
    pauses, conversation = ctx.pauses, nested.conversation
    partial = partial_update(conversation.state) if partial_update else None
    questions = dict(conversation.pending)
    if all(question.breakpoint for question in questions.values()):
        questions = dict([questions.popitem()])  # breakpoints ask nothing: one pause stands for all of them
    answers = [
        await pauses.answer(point, question.value, partial, asked=id_, breakpoint=question.breakpoint)
        for id_, question in questions.items()
    ]
    with pauses.running():
        nested.ending = await _with_stack(conversation.resume(*answers), nested.caller)
    nested.answered += len(answers)
    for id_ in questions:
        del pauses.replay.answers[point, id_]


def _caller(
    ctx: NodeContext, *, calls: int = 0, inside: int = 0, attribute_to_caller: bool = False
) -> Caller:
    """Return this visit as the caller of a nested graph. `calls` and `inside` are the levels to add."""
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


async def _prepare(ctx: NodeContext, graph: Graph, caller: Caller) -> Conversation:
    """Return a conversation with a nested graph that is ready for its input."""
    conversation = Conversation(graph, ctx.run.simulation, caller=caller, single=True)
    await conversation.prepare()
    return conversation


async def _with_stack(running: Coroutine[Any, Any, Ending], caller: Caller) -> Ending:
    """Await a nested run; every `LEVELS_PER_STACK` levels in a new task, which has a new stack."""
    if (caller.calls + caller.inside) % LEVELS_PER_STACK:
        return await running
    return await asyncio.create_task(running)


def _checked(ending: Ending) -> Ending:
    if ending.error is not None:
        raise ending.error
    return ending
