"""A desk of the OpenAI Agents SDK: a triage agent that hands over to two others, with a tool and a guardrail."""

from agents import Agent, GuardrailFunctionOutput, RunContextWrapper, Runner, function_tool, input_guardrail
from pydantic import BaseModel

ORDERS = {"A1": "sent on Monday", "B2": "not yet paid"}


class Check(BaseModel):
    """The judgement of the guardrail."""

    is_abuse: bool


@function_tool
def order_status(order: str) -> str:
    """Look up an order."""
    return ORDERS.get(order, "unknown")


guard = Agent(
    name="guard", instructions="Does the text insult somebody?", output_type=Check, model="gpt-4o-mini"
)


@input_guardrail
async def no_abuse(ctx: RunContextWrapper[None], _agent: Agent, text: str) -> GuardrailFunctionOutput:
    """Stop a run whose input insults somebody."""
    found = (await Runner.run(guard, text)).final_output
    return GuardrailFunctionOutput(output_info=found, tripwire_triggered=found.is_abuse)


orders = Agent(
    name="orders",
    handoff_description="Questions about an order.",
    instructions="Answer from the order's status.",
    tools=[order_status],
    model="gpt-4o",
)
refunds = Agent(name="refunds", handoff_description="Money back.", instructions="Be fair.", model="gpt-4o")
triage = Agent(
    name="triage",
    instructions="Hand over to the agent that fits.",
    handoffs=[orders, refunds],
    input_guardrails=[no_abuse],
    model="gpt-4o",
)


async def desk(question: str) -> dict:
    """Answer a customer."""
    result = await Runner.run(triage, question, max_turns=6)
    return {"agent": result.last_agent.name, "answer": result.final_output}


async def streamed(question: str):
    """Answer piece by piece."""
    result = Runner.run_streamed(orders, question)
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            yield event.data.delta
