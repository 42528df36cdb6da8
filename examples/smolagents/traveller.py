"""A traveller of smolagents: an agent that writes code, with a tool, and a manager that asks it."""

import time

from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool

MINUTES = {("Bonn", "Cologne"): 30, ("Cologne", "Mainz"): 105}


@tool
def train_minutes(start: str, end: str) -> int:
    """Look up how long a train takes.

    Args:
        start: the first station.
        end: the last station.
    """
    time.sleep(0.5)
    return MINUTES[start, end]


def planner(**options: object) -> CodeAgent:
    """Return an agent that writes code."""
    return CodeAgent(
        tools=[train_minutes], model=OpenAIModel("gpt-4o"), verbosity_level=0, max_steps=4, **options
    )


def plan(question: str) -> dict:
    """Answer a question about trains by code."""
    agent = planner()
    return {"minutes": agent.run(question), "steps": agent.step_number}


def manage(question: str) -> str:
    """Let a manager ask the planner."""
    inner = planner(name="planner", description="Knows trains.")
    manager = ToolCallingAgent(
        tools=[], managed_agents=[inner], model=OpenAIModel("gpt-4o-mini"), verbosity_level=0, max_steps=4
    )
    return str(manager.run(question))
