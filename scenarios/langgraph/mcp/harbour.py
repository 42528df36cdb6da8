"""A harbour master's assistant, whose nodes ask two MCP servers through the SDK: one it starts, and one over HTTP."""

import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from mcp import ClientSession, StdioServerParameters
from mcp.client import streamable_http
from mcp.client.stdio import stdio_client

TIDES = StdioServerParameters(command="tide-server", args=["--port", "Brest"])
BERTHS = "https://berths.example.com/mcp"


class State(TypedDict, total=False):
    ship: str
    draught: float
    facts: Annotated[list[str], operator.add]
    advice: str


def text_of(result) -> str:
    return " ".join(block.text for block in result.content)


async def read_tide(state: State):
    async with stdio_client(TIDES) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        result = await session.call_tool("tide", {"hours": 6})
    return {"facts": [f"tide: {text_of(result)}"]}


async def find_berth(state: State):
    # Version 2 of the SDK has only the second name, and version 1.0 only the first.
    connect = (
        getattr(streamable_http, "streamablehttp_client", None) or streamable_http.streamable_http_client
    )
    async with connect(BERTHS) as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        offered = [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool(offered[0], {"draught": state["draught"]})
    return {"facts": [f"berth: {text_of(result)}"]}


async def advise(state: State):
    facts = "\n".join(sorted(state["facts"]))
    answer = await ChatOpenAI(model="gpt-4o-mini").ainvoke(f"Advise {state['ship']}.\n{facts}")
    return {"advice": answer.content}


builder = StateGraph(State)
builder.add_node(read_tide)
builder.add_node(find_berth)
builder.add_node(advise)
builder.add_edge(START, "read_tide")
builder.add_edge(START, "find_berth")
builder.add_edge(["read_tide", "find_berth"], "advise")
builder.add_edge("advise", END)
graph = builder.compile()
