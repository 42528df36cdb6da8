"""An agent of `create_agent`: a person approves each payment, and a middleware counts the calls of the model."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, HumanInTheLoopMiddleware
from langchain.tools import tool
from langgraph.runtime import Runtime


class CountingState(AgentState):
    model_calls: int


class CountCalls(AgentMiddleware[CountingState]):
    """Counts the calls of the model in the state, and ends the run at a limit."""

    state_schema = CountingState

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def after_model(self, state: CountingState, runtime: Runtime) -> dict[str, Any]:
        count = state.get("model_calls", 0) + 1
        if count > self.limit:
            raise RuntimeError(f"more than {self.limit} calls of the model")
        return {"model_calls": count}


@tool
def balance(account: str) -> str:
    """Read the balance of an account."""
    return {"savings": "1200 CHF", "salary": "80 CHF"}.get(account, "no such account")


@tool
def pay(to: str, amount: int) -> str:
    """Pay an amount in CHF."""
    return f"paid {amount} CHF to {to}"


graph = create_agent(
    model="openai:gpt-4o",
    tools=[balance, pay],
    system_prompt="You are a careful bank clerk.",
    middleware=[
        HumanInTheLoopMiddleware(interrupt_on={"pay": {"allowed_decisions": ["approve", "edit", "reject"]}}),
        CountCalls(limit=3),
    ],
)
