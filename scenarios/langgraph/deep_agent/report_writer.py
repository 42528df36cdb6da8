"""A deep agent: it plans with todos, lets a sub-agent search, and writes its report into a file of the state."""

from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool

LIBRARY = {"glacier": "The Aletsch is 22 km long.", "lake": "Lake Constance is 252 m deep."}


@tool
def search(word: str) -> str:
    """Search the library for a word."""
    return LIBRARY.get(word, "nothing found")


searcher = {
    "name": "searcher",
    "description": "Searches the library. Give it one question at a time.",
    "system_prompt": "You search the library.",
    "tools": [search],
}

agent = create_deep_agent(
    model=ChatAnthropic(model="claude-sonnet-5-5", max_tokens=2000),
    tools=[],
    system_prompt="You write short reports into files.",
    subagents=[searcher],
    middleware=[TodoListMiddleware()],
)
