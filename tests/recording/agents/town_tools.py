"""Tools and handlers of the agents here."""

from typing import Any

from langchain_core.tools import tool

SKY = {"Lisbon": "sunny", "Bergen": "rain"}


@tool
def forecast(city: str) -> str:
    """Tomorrow's weather in a city."""
    return f"{city}: {SKY.get(city, 'unknown')}"


def join(state: Any, params: Any) -> Any:
    return {"text": "|".join(state["output"])}


def nothing(state: Any, params: Any) -> Any:
    return {}


def guess(state: Any, params: Any) -> Any:
    return {"output": f"Clouds, I suppose ({state['__error__']})."}
