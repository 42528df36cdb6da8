"""A swarm: agents hand the conversation to each other, and the one who has it answers the next turn."""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph_swarm import create_handoff_tool, create_swarm

model = ChatOpenAI(model="gpt-4o-mini")


@tool
def find_flight(destination: str) -> str:
    """Find a flight."""
    return f"LX 318 to {destination}, 240 CHF"


@tool
def find_hotel(city: str, nights: int = 1) -> str:
    """Find a hotel."""
    return f"Hotel Post in {city}: {nights * 110} CHF"


flights = create_agent(
    model,
    [
        find_flight,
        create_handoff_tool(agent_name="hotels", description="Hand over to the colleague for hotels."),
    ],
    system_prompt="You sell flights.",
    name="flights",
)
hotels = create_agent(
    model,
    [
        find_hotel,
        create_handoff_tool(agent_name="flights", description="Hand over to the colleague for flights."),
    ],
    system_prompt="You sell rooms.",
    name="hotels",
)
builder = create_swarm([flights, hotels], default_active_agent="flights")
