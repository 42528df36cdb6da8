"""The other app of the monorepo, with modules of the same names."""

from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph

from .prompts import SYSTEM
from .state import State


async def support(state: State):
    model = ChatOpenAI(model="gpt-4o-mini")
    return {"messages": [await model.ainvoke([("system", SYSTEM), *state["messages"]])]}


graph = StateGraph(State).add_node(support).add_edge(START, "support").compile()
