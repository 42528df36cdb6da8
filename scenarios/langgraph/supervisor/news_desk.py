"""A supervisor hands work to two agents: one does research, one does arithmetic."""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph_supervisor import create_supervisor

model = ChatOpenAI(model="gpt-4o")


@tool
def headcount(company: str) -> int:
    """Look up how many people work at a company."""
    return {"Alba": 120, "Borea": 45}[company]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


researcher = create_agent(
    model, [headcount], system_prompt="You look things up. Do no arithmetic.", name="researcher"
)
calculator = create_agent(model, [add], system_prompt="You do arithmetic.", name="calculator")

app = create_supervisor(
    [researcher, calculator],
    model=model,
    prompt="You lead a researcher and a calculator. Give work to one at a time.",
    output_mode="last_message",
).compile(name="desk")
