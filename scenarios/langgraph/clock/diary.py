"""A diary that reads the clock, draws ids and chance, and guards every call with `except Exception`."""

import random
import time
import uuid
from datetime import UTC, datetime
from typing import TypedDict

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    note: str
    id: str
    written: str
    mood: int
    seconds: float
    summary: str


@tool
def stamp() -> str:
    """Return the time of day."""
    time.sleep(30)
    return datetime.now(UTC).strftime("%H:%M:%S")


def write(state: State):
    began = time.monotonic()
    written = stamp.invoke({})
    return {
        "id": str(uuid.uuid4()),
        "written": f"{datetime.now(UTC):%Y-%m-%d} {written}",
        "mood": random.randint(1, 10**6),
        "seconds": time.monotonic() - began,
    }


async def summarise(state: State):
    try:
        answer = await ChatOpenAI(model="gpt-4o-mini").ainvoke(state["note"])
        return {"summary": answer.content}
    except Exception:
        return {"summary": "no summary today"}


builder = StateGraph(State)
builder.add_node(write)
builder.add_node(summarise)
builder.add_edge(START, "write")
builder.add_edge("write", "summarise")
graph = builder.compile()
