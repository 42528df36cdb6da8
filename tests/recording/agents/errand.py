"""An app of LangGraph that asks two providers, one of them as a stream, and a service."""

import os
from datetime import date
from typing import Any

import httpx
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode


@tool
def stock(article: str) -> str:
    """Look up how many of an article are in stock."""
    return httpx.get(f"http://served.test/stock/{article}").text


TODAY = f"Today is {date.today()}."
clerk = ChatOpenAI(model="gpt-4o-mini").bind_tools([stock])
writer = ChatAnthropic(model="claude-sonnet-4-5")  # type: ignore[call-arg]


async def ask(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await clerk.ainvoke([("system", TODAY), *state["messages"]])]}


def write(state: MessagesState) -> dict[str, Any]:
    tone = f", {os.environ['TONE']}" if "TONE" in os.environ else ""
    text = "".join(chunk.text for chunk in writer.stream(f"Rewrite{tone}: {state['messages'][-1].content}"))
    return {"messages": [("ai", text)]}


builder = StateGraph(MessagesState)
builder.add_node("ask", ask)
builder.add_node("look", ToolNode([stock]))
builder.add_node("write", write)
builder.add_edge(START, "ask")
builder.add_edge("ask", "look")
builder.add_edge("look", "write")
builder.add_edge("write", END)
graph = builder.compile()
