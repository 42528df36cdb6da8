"""A tool of the agent `pilot-office`, which reads its environment."""

import os


def measure(thing: str) -> str:
    names = ("TIDE_MARK", "LLM_AGENT_VAR_PORT_NAME", "LLM_AGENT_VAR_BERTH")
    return " ".join(os.environ.get(name, "none") for name in names)
