"""Pauses: an interrupt inside of a subgraph, two people asked at once, and breakpoints of a compiled graph."""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    item: str
    price: int
    approvals: Annotated[list[str], operator.add]
    status: str


def ask(role: str):
    def node(state: State):
        answer = interrupt({"role": role, "question": f"Buy {state['item']}?"})
        return {"approvals": [f"{role}: {answer}"]}

    return node


def finish(state: State):
    refused = [each for each in state["approvals"] if not each.endswith("yes")]
    return {"status": "refused" if refused else "ordered"}


# Two people are asked at once.
checks = StateGraph(State)
checks.add_node("finance", ask("finance"))
checks.add_node("security", ask("security"))
checks.add_node("finish", finish)
checks.add_edge(START, "finance")
checks.add_edge(START, "security")
checks.add_edge(["finance", "security"], "finish")
check = checks.compile()

# A subgraph asks one person.
manager = StateGraph(State)
manager.add_node("look_up", lambda state: {"price": len(state["item"]) * 10})
manager.add_node("manager", ask("manager"))
manager.add_edge(START, "look_up")
manager.add_edge("look_up", "manager")

orders = StateGraph(State)
orders.add_node("approve", manager.compile())
orders.add_node("finish", finish)
orders.add_edge(START, "approve")
orders.add_edge("approve", "finish")
order = orders.compile()

# The graph stops before a node, as with `interrupt_before` in a debugger.
steps = StateGraph(State)
steps.add_node("collect", lambda state: {"approvals": ["system: yes"]})
steps.add_node("finish", finish)
steps.add_edge(START, "collect")
steps.add_edge("collect", "finish")
guarded = steps.compile(interrupt_before=["finish"])
