"""A kitchen of Strands: an agent at Bedrock with tools, one of which is another agent, at OpenAI."""

import asyncio

from pydantic import BaseModel
from strands import Agent, tool
from strands.models import BedrockModel
from strands.models.openai import OpenAIModel

STOCK = {"eggs": 4, "milk": 0}


class Recipe(BaseModel):
    """A recipe."""

    name: str
    minutes: int


@tool
def stock(item: str) -> int:
    """Count what is there.

    Args:
        item: what to count.
    """
    return STOCK[item]


@tool
async def ask_cook(question: str) -> str:
    """Ask the cook.

    Args:
        question: what to ask.
    """
    await asyncio.sleep(0.5)
    return str(await cook().invoke_async(question))


def cook() -> Agent:
    """Return the cook."""
    return Agent(
        name="cook",
        model=OpenAIModel(model_id="gpt-4o"),
        system_prompt="You are a cook.",
        callback_handler=None,
    )


def kitchen() -> Agent:
    """Return the agent that plans."""
    return Agent(
        name="kitchen",
        model=BedrockModel(model_id="anthropic.claude-sonnet-4", region_name="eu-central-1"),
        system_prompt="You plan meals.",
        tools=[stock, ask_cook],
        callback_handler=None,
    )


async def plan(question: str) -> str:
    """Plan a meal."""
    return str(await kitchen().invoke_async(question)).strip()


def plan_at_once(question: str) -> str:
    """Plan a meal, from code that is not async."""
    return str(kitchen()(question)).strip()


async def recipe(question: str) -> dict:
    """Return a recipe as data."""
    return (
        await cook().invoke_async(question, structured_output_model=Recipe)
    ).structured_output.model_dump()
