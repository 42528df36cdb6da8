"""Map and reduce: a planner names topics, a researcher for each runs in parallel, an editor puts them together."""

import asyncio
import operator
import time
from typing import Annotated, TypedDict

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel


class Topics(BaseModel):
    topics: list[str]


class State(TypedDict, total=False):
    subject: str
    topics: list[str]
    notes: Annotated[list[str], operator.add]
    archive: str
    report: str


class Task(TypedDict):
    topic: str


@tool
def archive_search(subject: str) -> str:
    """Search the archive, which takes its time."""
    time.sleep(4)
    return f"3 old reports on {subject}"


model = ChatOpenAI(model="gpt-4o-mini", max_retries=0)


async def plan(state: State):
    found = await model.with_structured_output(Topics).ainvoke(f"Topics for {state['subject']}?")
    return {"topics": found.topics}


def researchers(state: State):
    return [Send("research", {"topic": topic}) for topic in state["topics"]] or END


async def research(task: Task):
    answer = await model.ainvoke(task["topic"])
    return {"notes": [answer.content]}


async def archive(state: State):
    return {"archive": await asyncio.to_thread(archive_search.invoke, {"subject": state["subject"]})}


def edit(state: State):
    return {"report": " / ".join([*state["notes"], state.get("archive", "")])}


builder = StateGraph(State)
for node in (plan, research, archive, edit):
    builder.add_node(node)
builder.add_edge(START, "plan")
builder.add_edge(START, "archive")
builder.add_conditional_edges("plan", researchers, ["research", END])
builder.add_edge(["research", "archive"], "edit")
graph = builder.compile()
