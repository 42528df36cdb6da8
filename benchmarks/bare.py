"""The graphs of the benchmarks written by hand: bare LangGraph, with replies from a list.

They are optimized for speed: a condition that is not a coroutine would run in a thread, and `asyncio.Runner`
would convert the state to text on every run (in its handling of SIGINT) if the main task returned it.
"""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from benchmarks import scenarios

REPLIES: ContextVar[Iterator[str]] = ContextVar("replies")

SORTER = 'Answer with JSON: {"intent": "billing" or "other"}.'
HELPER = "You help the customers of a shop."


class Triage(MessagesState):
    """The state of the five-node graph."""

    verdict: str
    intent: str
    tries: int
    status: str


async def model(_messages: Sequence[BaseMessage]) -> AIMessage:
    """Return the next reply, as a model does."""
    return AIMessage(content=next(REPLIES.get()))


def triage() -> Any:
    """Return the graph of manifests/triage.yaml, written by hand."""

    async def receive(state: Triage) -> dict[str, Any]:
        return {"tries": state["tries"] + 1, "status": "open"}

    async def classify(state: Triage) -> dict[str, Any]:
        reply = await model([SystemMessage(SORTER), *state["messages"]])
        return {"verdict": reply.content}

    async def sort(state: Triage) -> dict[str, Any]:
        return {"intent": json.loads(state["verdict"])["intent"]}

    async def answer(state: Triage) -> dict[str, Any]:
        return {"messages": [await model([SystemMessage(HELPER), *state["messages"]])]}

    async def close(_state: Triage) -> dict[str, Any]:
        return {"status": "closed"}

    async def after_sort(state: Triage) -> str:
        return "answer" if state["intent"] == "billing" else "close"

    async def after_answer(state: Triage) -> str:
        return "close" if "refund" in state["messages"][-1].content else "receive"

    builder = StateGraph(Triage)
    nodes: dict[str, Any] = {n.__name__: n for n in (receive, classify, sort, answer, close)}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "receive")
    builder.add_edge("receive", "classify")
    builder.add_edge("classify", "sort")
    builder.add_conditional_edges("sort", after_sort, ["answer", "close"])
    builder.add_conditional_edges("answer", after_answer, ["close", "receive"])
    builder.add_edge("close", END)
    return builder.compile()


def run_triage(graph: Any, text: str, replies: Sequence[str]) -> dict[str, Any]:
    """Run the graph in a new event loop; return the final state."""
    REPLIES.set(iter(replies))
    first = {"messages": [HumanMessage(text)], "verdict": "", "intent": "", "tries": 0, "status": "new"}
    return _final_state(graph, first)


SORT = "The customer {email} asks: {question} Answer with one word, billing or other."


class Charges(TypedDict, total=False):
    """The state of the flow."""

    email: str
    question: str
    kind: str
    branch: str
    charges: int
    said: str


async def sort_question(state: Charges) -> dict[str, Any]:
    """Format the prompt, ask the model."""
    prompt = SORT.format(email=state["email"], question=state["question"])
    return {"kind": (await model([HumanMessage(prompt)])).content}


def find_charges(email: str) -> int:
    """Count the charges, as a tool does."""
    return scenarios.CHARGES if email else 0


async def look_up(state: Charges) -> dict[str, Any]:
    """Run the tool."""
    return {"charges": find_charges(state["email"])}


async def say(_state: Charges) -> dict[str, Any]:
    """Answer in the other branch."""
    return {"said": "A colleague will write to you."}


def charges() -> Any:
    """Return the graph of manifests/charges.yaml, written by hand, node by node."""

    async def start(state: Charges) -> dict[str, Any]:
        return {"email": state["email"], "question": state["question"]}

    async def choose(state: Charges) -> dict[str, Any]:
        return {"branch": {"billing": "charged"}.get(state["kind"], "default")}

    async def end(state: Charges) -> dict[str, Any]:
        return {"charges": state.get("charges", 0)}

    async def after_choose(state: Charges) -> str:
        return "look_up" if state["branch"] == "charged" else "say"

    builder = StateGraph(Charges)
    nodes: dict[str, Any] = {"start": start, "sort": sort_question, "choose": choose}
    nodes |= {"look_up": look_up, "say": say, "end": end}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "start")
    builder.add_edge("start", "sort")
    builder.add_edge("sort", "choose")
    builder.add_conditional_edges("choose", after_choose, ["look_up", "say"])
    builder.add_edge("look_up", "end")
    builder.add_edge("say", "end")
    builder.add_edge("end", END)
    return builder.compile()


def charges_in_two_nodes() -> Any:
    """Return an equivalent minimal graph, without nodes for the start, the choice and the end."""

    async def after_sort(state: Charges) -> str:
        return "look_up" if state["kind"] == "billing" else "say"

    builder = StateGraph(Charges)
    nodes: dict[str, Any] = {"sort": sort_question, "look_up": look_up, "say": say}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "sort")
    builder.add_conditional_edges("sort", after_sort, ["look_up", "say"])
    builder.add_edge("look_up", END)
    builder.add_edge("say", END)
    return builder.compile()


def run_charges(graph: Any, inputs: dict[str, str], replies: Sequence[str]) -> dict[str, Any]:
    """Run the graph in a new event loop; return the final state."""
    REPLIES.set(iter(replies))
    return _final_state(graph, inputs)


class Permits(TypedDict, total=False):
    """The state of the graph with two questions."""

    place: str
    permit: str
    choice: str
    remark: str


def permits() -> Any:
    """Return the graph of manifests/permits, written by hand; its interrupts need a checkpointer."""

    async def draft(state: Permits) -> dict[str, Any]:
        return {"permit": (await model([HumanMessage(f"A permit for {state['place']}")])).content}

    async def sign(state: Permits) -> dict[str, Any]:
        question = {"question": f"Sign '{state['permit']}'?", "options": ["sign", "change"]}
        return {"choice": interrupt(question)}

    async def ask(_state: Permits) -> dict[str, Any]:
        return {"remark": interrupt({"question": "What should change?"})}

    async def write(state: Permits) -> dict[str, Any]:
        return {"permit": (await model([HumanMessage(f"{state['permit']} with {state['remark']}")])).content}

    async def done(_state: Permits) -> dict[str, Any]:
        return {}

    async def after_sign(state: Permits) -> str:
        return {"sign": "done", "change": "ask"}.get(state["choice"], "ask")

    builder = StateGraph(Permits)
    nodes: dict[str, Any] = {n.__name__: n for n in (draft, sign, ask, write, done)}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "sign")
    builder.add_conditional_edges("sign", after_sign, ["done", "ask"])
    builder.add_edge("ask", "write")
    builder.add_edge("write", "done")
    builder.add_edge("done", END)
    return builder.compile(checkpointer=InMemorySaver())


def run_permits(graph: Any, place: str, replies: Sequence[str], answers: Sequence[str]) -> dict[str, Any]:
    """Run the graph on a new thread, in a new event loop; return the final state."""
    REPLIES.set(iter(replies))
    ended: dict[str, Any] = {}
    thread = {"configurable": {"thread_id": str(next(_THREADS))}}

    async def main() -> None:
        state = await graph.ainvoke({"place": place}, thread)
        for answer in answers:
            state = await graph.ainvoke(Command(resume=answer), thread)
        ended.update(state)

    asyncio.run(main())
    return ended


_THREADS = count()


def chat() -> Any:
    """Return the graph of manifests/chat.yaml, written by hand."""

    async def talk(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model(state["messages"])]}

    async def after_talk(state: MessagesState) -> str:
        return END if state["messages"][-1].content == "done" else "talk"

    builder = StateGraph(MessagesState)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    builder.add_conditional_edges("talk", after_talk, ["talk", END])
    return builder.compile()


def run_chat(graph: Any, messages: Sequence[dict[str, str]], replies: Sequence[str]) -> dict[str, Any]:
    """Run the graph in a new event loop; return the final state."""
    REPLIES.set(iter(replies))
    return _final_state(graph, {"messages": list(messages)})


class Parcels(TypedDict, total=False):
    """The state of the fan-out."""

    count: int
    parcels: list[int]
    weights: Annotated[list[int], operator.add]
    total: int


def weight(parcel: int) -> int:
    """Return the weight of a parcel."""
    return parcel % 7 + 1


def parcels() -> Any:
    """Return the graph of manifests/parcels.yaml, written by hand."""

    async def collect(state: Parcels) -> dict[str, Any]:
        return {"parcels": list(range(state["count"]))}

    async def weigh(item: dict[str, int]) -> dict[str, Any]:
        return {"weights": [weight(item["parcel"])]}

    async def add_up(state: Parcels) -> dict[str, Any]:
        return {"total": sum(state["weights"])}

    async def each_parcel(state: Parcels) -> list[Send]:
        return [Send("weigh", {"parcel": parcel}) for parcel in state["parcels"]]

    builder = StateGraph(Parcels)
    nodes: dict[str, Any] = {"collect": collect, "weigh": weigh, "add_up": add_up}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "collect")
    builder.add_conditional_edges("collect", each_parcel, ["weigh"])
    builder.add_edge("weigh", "add_up")
    builder.add_edge("add_up", END)
    return builder.compile()


def run_parcels(graph: Any, count: int) -> dict[str, Any]:
    """Run the graph in a new event loop; return the final state."""
    return _final_state(graph, {"count": count})


def _final_state(graph: Any, first: dict[str, Any]) -> dict[str, Any]:
    ended: dict[str, Any] = {}

    async def main() -> None:
        ended.update(await graph.ainvoke(first, {"recursion_limit": 100}))

    asyncio.run(main())
    return ended


def run_triage_often(times: int) -> None:
    """Run the five-node graph with the inputs of that many scenarios, one after the other."""
    graph = triage()
    for number in range(times):
        ended = run_triage(graph, f"{scenarios.TEXT} in order {number}", scenarios.REPLIES)
        assert ended["status"] == "closed"
