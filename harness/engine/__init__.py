"""The engine: runs graphs, with LangGraph for supersteps and a scheduler of its own for events."""
