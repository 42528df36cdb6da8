"""LangGraph apps and plain callables, which run unmodified."""
