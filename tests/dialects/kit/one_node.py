"""Running one visit of a node in virtual time and a scripted world."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from harness.engine.context import NodeContext
from harness.engine.conversation import Conversation, Ending
from harness.engine.standstill import Simulation
from harness.graph import observe
from harness.graph.model import START, Channel, Edge, Graph, Node, State, Update
from harness.world.spec import WorldSpec
from tests.engine.graphs import simulate

Work = Callable[[NodeContext], Awaitable[Any]]


@dataclass
class VisitResult:
    """The result of a visit: the value of the work or its error, its virtual seconds, calls and warnings."""

    ending: Ending
    seconds: float
    calls: list[dict[str, Any]]
    warnings: list[str]

    @property
    def value(self) -> Any:
        return self.ending.state["value"]

    @property
    def error(self) -> Exception | None:
        return self.ending.error


def visit(work: Work, *answers: Any, world: WorldSpec | None = None) -> VisitResult:
    """Run a node that does this work. Each pause is resumed with the next answer."""

    async def run(_state: State, ctx: NodeContext) -> Update:
        return Update({"value": await work(ctx)})

    async def main(simulation: Simulation) -> VisitResult:
        graph = Graph("g", "test", (Node("n", "step", run),), (Edge(START, "n"),), (Channel("value"),))
        conversation = Conversation(graph, simulation)
        ending = await conversation.send({})
        for answer in answers:
            assert ending.status == "interrupted"
            ending = await conversation.resume(answer)
        events = simulation.trace.events
        return VisitResult(ending, simulation.now, observe.calls(events), observe.warnings(events))

    result: VisitResult = simulate(main, world)
    return result
