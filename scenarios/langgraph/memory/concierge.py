"""A concierge that keeps what guests like in the store, and reads it in later conversations."""

from dataclasses import dataclass
from typing import Annotated

from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedStore, ToolNode, tools_condition
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base import BaseStore


@dataclass
class Context:
    guest: str = "walk-in"
    model: str = "gpt-4o-mini"


@tool
async def remember(topic: str, fact: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
    """Keep a fact about the guest."""
    guest = get_runtime(Context).context.guest
    await store.aput(("guests", guest), topic, {"fact": fact})
    return f"kept {topic}"


async def concierge(state: MessagesState, runtime: Runtime[Context]):
    known = await runtime.store.asearch(("guests", runtime.context.guest))
    facts = "\n".join(f"{item.key}: {item.value['fact']}" for item in known) or "nothing yet"
    model = ChatOpenAI(model=runtime.context.model).bind_tools([remember])
    system = SystemMessage(f"You are a concierge. About this guest you know:\n{facts}")
    return {"messages": [await model.ainvoke([system, *state["messages"]])]}


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_node(concierge)
builder.add_node("tools", ToolNode([remember]))
builder.add_edge(START, "concierge")
builder.add_conditional_edges("concierge", tools_condition)
builder.add_edge("tools", "concierge")
graph = builder.compile()
