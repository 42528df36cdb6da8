"""The tool of the weather agent."""

from langchain_core.tools import tool


@tool
def forecast(city: str, day: str = "today") -> str:
    """The weather forecast for a city: sky, rain in mm, and degrees Celsius."""
    return f"{city}, {day}: rain, 12 mm, 9 degrees"
