"""A ReAct agent that plans train trips: a model and its tools take turns."""

import time

import httpx
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

TIMETABLE = {("Bern", "Milan"): ["08:07", "10:07"], ("Bern", "Paris"): ["06:34"]}


@tool
def departures(origin: str, destination: str) -> list[str]:
    """Look up the departures of direct trains."""
    time.sleep(0.5)  # the timetable is slow
    if (origin, destination) not in TIMETABLE:
        raise ValueError(f"no direct train from {origin} to {destination}")
    return TIMETABLE[origin, destination]


@tool
def weather(city: str) -> str:
    """Look up the weather of a city."""
    response = httpx.get("https://weather.example/v1/current", params={"city": city}, timeout=5)
    response.raise_for_status()
    return f"{response.json()['celsius']} degrees in {city}"


tools = [departures, weather]
model = ChatOpenAI(model="gpt-4o-mini", temperature=0).bind_tools(tools)


def planner(state: MessagesState):
    system = SystemMessage("You plan train trips. Never invent a departure.")
    return {"messages": [model.invoke([system, *state["messages"]])]}


builder = StateGraph(MessagesState)
builder.add_node("planner", planner)
builder.add_node("tools", ToolNode(tools, handle_tool_errors=True))
builder.add_edge(START, "planner")
builder.add_conditional_edges("planner", tools_condition)
builder.add_edge("tools", "planner")
graph = builder.compile()
