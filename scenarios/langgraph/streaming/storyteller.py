"""A node that streams the model, and passes each piece on to whoever reads the run."""

from typing import TypedDict

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph

BANNED = "dragon"


class State(TypedDict, total=False):
    hero: str
    story: str
    pieces: int
    tokens: int
    title: str


async def tell(state: State):
    write = get_stream_writer()
    story, pieces, usage = "", 0, None
    async for chunk in ChatOpenAI(model="gpt-4o", stream_usage=True).astream(f"Tell about {state['hero']}"):
        story += chunk.content
        pieces += bool(chunk.content)
        usage = chunk.usage_metadata or usage
        write({"piece": chunk.content})
        if BANNED in story:
            story = "(stopped)"
            break
    return {"story": story, "pieces": pieces, "tokens": usage["output_tokens"] if usage else 0}


def title(state: State):
    words = ""
    for chunk in ChatAnthropic(model="claude-haiku-5-5", max_tokens=50).stream(state["story"]):
        words += chunk.text
    return {"title": words.strip(' "')}


builder = StateGraph(State)
builder.add_node(tell)
builder.add_node(title)
builder.add_edge(START, "tell")
builder.add_edge("tell", "title")
graph = builder.compile()
