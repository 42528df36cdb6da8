"""Tools of the recorded agents. They run for real, when a scenario is recorded and when it is replayed."""

from langchain_core.tools import tool

SKY = {"Lisbon": "sunny", "Bergen": "rain", "Paris": "cloudy"}


@tool
def forecast(city: str) -> str:
    """Tomorrow's weather in a city."""
    return f"{city}: {SKY.get(city, 'unknown')}, {len(city) * 3} degrees"
