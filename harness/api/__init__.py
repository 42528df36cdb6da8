"""The Python side: agents that run inside of a test or a notebook (docs/python.md)."""
