"""Routes a letter by the structured output of a model, either as a function call or as JSON with a schema."""

import os
from typing import Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, Field


class Ruling(BaseModel):
    """What a letter is about."""

    kind: Literal["lost", "found", "other"]
    item: str | None = Field(default=None, description="the thing that was lost or found")
    urgent: bool = False


class State(TypedDict, total=False):
    letter: str
    kind: str
    item: str | None
    urgent: bool
    reply: str


def router(method: str):
    model = ChatOpenAI(model="gpt-4o-mini").with_structured_output(Ruling, method=method)

    async def classify(state: State):
        ruling = await model.ainvoke([("system", "Classify this letter."), ("user", state["letter"])])
        return ruling.model_dump()

    def desk(state: State) -> Literal["lost", "found", "__end__"]:
        return END if state["kind"] == "other" else state["kind"]

    async def lost(state: State) -> Command[Literal["urgent", "__end__"]]:
        if state["urgent"]:
            return Command(goto="urgent")
        return Command(goto=END, update={"reply": f"We look for your {state['item']}."})

    async def urgent(state: State):
        name = os.environ["DESK_NAME"]
        answer = await ChatOpenAI(model="gpt-4o").ainvoke(f"Write, as {name}, about a {state['item']}.")
        return {"reply": answer.content}

    def found(state: State):
        return {"reply": f"Thank you for the {state['item']}."}

    builder = StateGraph(State)
    for node in (classify, lost, urgent, found):
        builder.add_node(node)
    builder.add_edge(START, "classify")
    builder.add_conditional_edges("classify", desk)
    builder.add_edge("urgent", END)
    builder.add_edge("found", END)
    return builder.compile()


by_function = router("function_calling")
by_schema = router("json_schema")
