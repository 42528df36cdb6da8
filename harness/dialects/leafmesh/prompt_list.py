"""The prompts of a mesh as data. Ids: `<agent>.prompt`, `<agent>.context_parts.<key>`."""

from __future__ import annotations

from collections.abc import Iterator

from harness.dialects.leafmesh.document import LLMAgent
from harness.dialects.leafmesh.opening import Opened, open_mesh
from harness.dialects.prompt import Prompt
from harness.dialects.request import LoadRequest


def prompts(request: LoadRequest) -> list[Prompt]:
    """The prompts in the order of the agents.

    Raises:
        ManifestError: the mesh file is not as it should be.
    """
    return list(_prompts(open_mesh(request)))


def _prompts(opened: Opened) -> Iterator[Prompt]:
    for name, agent in opened.mesh.agents.items():
        if not isinstance(agent, LLMAgent):
            continue
        if agent.prompt is not None:
            where = opened.document.span(("agents", name, "prompt"))
            yield Prompt(f"{name}.prompt", "prompt", agent.prompt, where)
        for key, text in (agent.context_parts or {}).items():
            where = opened.document.span(("agents", name, "context_parts", key))
            yield Prompt(f"{name}.context_parts.{key}", "context_parts", text, where)
