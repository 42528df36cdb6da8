"""One of two apps of a monorepo. Both have a package `agent`, and each imports its own."""

from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph

from agent.prompts import SYSTEM
from agent.state import State

seen: list[str] = []  # what one scenario leaves here reaches no other


def billing(state: State):
    seen.append(state["invoice"])
    model = ChatOpenAI(model="gpt-4o-mini")
    note = f"{SYSTEM} Invoices so far: {', '.join(seen)}."
    return {"messages": [model.invoke([("system", note), *state["messages"]])]}


graph = StateGraph(State).add_node(billing).add_edge(START, "billing").compile()
