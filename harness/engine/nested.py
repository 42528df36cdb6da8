"""Graphs that run inside a visit of a node, in the same world, clock and trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.engine.context import NodeContext
from harness.engine.conversation import Conversation, Ending
from harness.engine.pauses import Place
from harness.errors import RunError
from harness.graph.model import Graph, State

# Sub-agents that call each other for ever are stopped here.
MAX_CALLS = 10

# What a manifest nests comes to an end by itself; here Python's stack would come to its own.
MAX_INSIDE = 100

PartialUpdate = Callable[[State], Mapping[str, Any]]


class NestingError(RunError):
    """Graphs nested too deep: agents that call each other in a circle, or too many graphs in each other."""

    code = "nesting"


@dataclass(frozen=True)
class Caller:
    """The node that a graph runs inside of.

    `path` are the nodes that lead there (`outer/`), the first is `top`; `node` is what effects call it. `calls`
    and `inside` count the levels of `run_nested` and of `run_inside`. With `attribute_to_caller`,
    the effects of the nested graph are told as its own.
    """

    path: str
    top: str
    name: str
    node: str
    calls: int
    inside: int
    attribute_to_caller: bool


@dataclass
class Nested:
    """A graph that runs as a part of a visit. `answered` counts those of its pauses that got an answer."""

    conversation: Conversation
    ending: Ending
    answered: int = 0


async def run_nested(ctx: NodeContext, graph: Graph, value: Any) -> Ending:
    """See `NodeContext.run_nested`."""
    caller = _caller(ctx, calls=1)
    if caller.calls > MAX_CALLS:
        raise NestingError(
            f"agents call each other more than {MAX_CALLS} levels deep: {caller.path}{graph.name}"
        )
    conversation = await _prepared(ctx, graph, caller)
    return _not_failed(await conversation.send(value, ask=False))


async def run_inside(
    ctx: NodeContext,
    graph: Graph,
    value: Any,
    *,
    key: str,
    attribute_to_caller: bool,
    partial_update: PartialUpdate | None,
) -> Ending:
    """See `NodeContext.run_inside`."""
    pauses = ctx.pauses
    place = pauses.come_by(f"inside {key}")
    nested = pauses.replay.nested.get(place)
    if nested is None:
        caller = _caller(ctx, inside=1, attribute_to_caller=attribute_to_caller)
        if caller.inside > MAX_INSIDE:
            raise NestingError(
                f"graphs run inside each other more than {MAX_INSIDE} levels deep: {caller.path}{graph.name}"
            )
        with pauses.running():
            conversation = await _prepared(ctx, graph, caller)
            nested = Nested(conversation, await conversation.send(value))
        pauses.replay.nested[place] = nested
    else:
        pauses.skip(nested.answered)
    while nested.ending.status == "interrupted":
        await _answer(ctx, nested, place, partial_update)
    return _not_failed(nested.ending)


async def _answer(
    ctx: NodeContext, nested: Nested, place: Place, partial_update: PartialUpdate | None
) -> None:
    """Pause for each pause of a nested run, one after the other, and have it go on with the answers."""
    pauses, conversation = ctx.pauses, nested.conversation
    left = partial_update(conversation.state) if partial_update else None
    questions = dict(conversation.run.questions)
    if all(question.around for question in questions.values()):
        questions = dict([questions.popitem()])  # they ask nothing, so that one stands for all
    answers = [
        await pauses.answer(place, question.value, left, asked=id_, around=question.around)
        for id_, question in questions.items()
    ]
    with pauses.running():
        nested.ending = await conversation.resume(*answers)
    nested.answered += len(answers)
    for id_ in questions:
        del pauses.replay.answers[place, id_]


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


def _not_failed(ending: Ending) -> Ending:
    if ending.error is not None:
        raise ending.error
    return ending
