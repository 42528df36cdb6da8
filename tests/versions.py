"""A plugin of pytest for `make oldest`: skips scenarios that the installed versions cannot run, and says why."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final

import pytest
from packaging.requirements import Requirement

from harness.engine.versions import DECLARATIVE_FLOORS, too_old

NEEDS: Final = {
    "approval": ("langchain>=1.0", "create_agent, and middleware"),
    "deep_agent": ("deepagents>=0.7", "create_deep_agent takes a middleware that it has by default"),
    "functional": ("langgraph>=0.5", "@task takes a retry_policy"),
    "map_reduce": ("langgraph>=0.5", "a node has the name of a key of the state"),
    "mcp": ("mcp>=1.10", "its nodes use the SDK of MCP"),
    "memory": ("langgraph>=1.0", "Runtime, and a context that becomes an object of its schema"),
    "rag": ("langchain-core>=1.0", "the text of a message is a property"),
    "router": ("langgraph>=0.5", "a node has the name of a key of the state"),
    "stock": ("langchain>=1.0", "create_agent"),
    "streaming": ("langchain-core>=1.0", "the text of a message is a property"),
    "supervisor": ("langchain>=1.0", "create_agent"),
    "swarm": ("langchain>=1.0.2", "its node for tools gives the state to the tool that hands over"),
}
"""By the folder in `scenarios/langgraph`: what its app needs, and for what."""

OLD: Final = too_old(DECLARATIVE_FLOORS, "a declarative manifest")
declarative: Final = pytest.mark.skipif(bool(OLD), reason=OLD)
"""Marks the tests of apps that also run a declarative manifest, such as that of the mutator of prompts."""


def is_met(text: str) -> bool:
    """True if a package is installed in one of these versions."""
    requirement = Requirement(text)
    try:
        return version(requirement.name) in requirement.specifier
    except PackageNotFoundError:
        return False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needed, why = NEEDS.get(item.path.parent.name, ("", ""))
        if needed and not is_met(needed):
            item.add_marker(pytest.mark.skip(reason=f"{item.path.parent.name} needs {needed}: {why}"))
