"""Small graphs with breakpoints, and a helper that holds a conversation with one."""

from typing import Any

from harness.engine.conversation import Conversation
from harness.graph import observe
from harness.graph.model import END, START, Dispatch, Edge
from tests.engine.graphs import ADDED, COUNT, graph, simulate, writes
from tests.world.stubs import world_spec

ANYBODY = world_spec(human=[{"times": "any", "reply": "yes"}])


class Talk:
    """A conversation: the endings and the events of its turns."""

    def __init__(self, built: Any, *turns: Any, value: Any = None, world: Any = None) -> None:
        self.endings: list[Any] = []
        self.turns: list[list[Any]] = []

        async def main(simulation: Any) -> None:
            conversation, events = Conversation(built, simulation), simulation.trace.events
            self.trace = simulation.trace
            for number, turn in enumerate([value or {}, *turns]):
                first = len(events)
                self.endings.append(await (conversation.resume(turn) if number else conversation.send(turn)))
                self.turns.append(events[first:])

        simulate(main, world)

    @property
    def statuses(self) -> Any:
        return [ending.status for ending in self.endings]

    @property
    def paths(self) -> Any:
        return [observe.path(turn) for turn in self.turns]

    @property
    def interrupts(self) -> Any:
        return [observe.interrupts(turn) for turn in self.turns]

    @property
    def logs(self) -> Any:
        return [ending.state.get("log") for ending in self.endings]

    @property
    def routes(self) -> Any:
        return observe.routes(self.trace.events)

    @property
    def last(self) -> Any:
        return self.endings[-1]


def logs(names: Any, **more: Any) -> Any:
    """Return nodes that write their names to the log."""
    return {name: writes(log=[name], **more) for name in names}


def chain(names: Any = "ab", **more: Any) -> Any:
    """Return a graph of nodes that run one after the other."""
    return graph(logs(names), zip([START, *names], [*names, END], strict=True), [ADDED, COUNT], **more)


def pauses(*, before: Any = "", after: Any = "") -> Any:
    return {"pause_before": frozenset(before), "pause_after": frozenset(after)}


def fork(**more: Any) -> Any:
    """Return a graph of two parallel nodes, and one that joins them."""
    edges = [(START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    return graph(logs("abcd"), edges, [ADDED], **more)


def mapping(**more: Any) -> Any:
    """Return a graph that maps `work` over the items of the log, then counts."""

    async def scatter(state: Any, run: Any) -> Any:
        return [Dispatch(edge, {"n": item}) for item in state["log"] if item < 100]

    edge = Edge("a", "work")
    nodes = {
        "a": writes(),
        "work": writes(log=lambda state: [state["n"] * 100]),
        "count": writes(n=lambda state: len(state["log"])),
    }
    edges = [(START, "a"), edge, ("work", "count")]
    return graph(nodes, edges, [ADDED, COUNT], routers={"a": scatter}, **more)
