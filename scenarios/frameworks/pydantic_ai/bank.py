"""A bank of pydantic-ai: an agent with dependencies, a tool that asks to be called again, and a typed output."""

from dataclasses import dataclass

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, RunContext

BALANCES = {"ada": 120.5}


@dataclass
class Customer:
    """The customer who asks."""

    name: str


class Advice(BaseModel):
    """The output: what to tell, and how urgent it is."""

    text: str
    risk: int = Field(ge=0, le=10)


support = Agent(
    "openai:gpt-4o",
    deps_type=Customer,
    output_type=Advice,
    retries=2,
    system_prompt="You are a clerk of our bank.",
)
writer = Agent("anthropic:claude-sonnet-4-5", system_prompt="You write short letters.")


@support.system_prompt
def name_of_customer(ctx: RunContext[Customer]) -> str:
    """Tell the model who asks."""
    return f"The customer is {ctx.deps.name}."


@support.tool
def balance(ctx: RunContext[Customer], currency: str) -> float:
    """Return the balance."""
    if currency != "EUR":
        raise ModelRetry("only EUR is known")
    return BALANCES[ctx.deps.name]


@support.tool_plain
async def write_letter(about: str) -> str:
    """Let another agent write a letter."""
    return (await writer.run(about)).output


async def answer(question: str, config: dict) -> dict:
    """Answer a customer."""
    customer = Customer(config["configurable"]["customer"])
    result = await support.run(question, deps=customer)
    return {**result.output.model_dump(), "requests": result.usage.requests}


def in_thread(question: str) -> str:
    """Run the writer from code that is not async."""
    return writer.run_sync(question).output


async def streamed(question: str):
    """Write piece by piece."""
    async with writer.run_stream(question) as result:
        async for piece in result.stream_text(delta=True, debounce_by=None):
            yield piece
