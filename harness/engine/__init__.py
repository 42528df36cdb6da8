"""The engine: visits of nodes, and who schedules them. LangGraph runs supersteps."""
