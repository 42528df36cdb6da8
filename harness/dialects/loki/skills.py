"""Skills of llm nodes, from the successor of Loki: tools by which a model lists, loads and unloads them.

The scenario answers for the tools, and decides what a skill says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.dialects.loki.document import GraphFile, LLMNode
from harness.dialects.loki.tool_universe import Tool, local_tool
from harness.graph.effects import ToolSpec

_NAMED: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
SKILL_TOOLS: Final = (
    ToolSpec("skill__list", "List the skills that can be loaded.", {"type": "object", "properties": {}}),
    ToolSpec("skill__load", "Load a skill.", _NAMED),
    ToolSpec("skill__unload", "Unload a skill.", _NAMED),
)


@dataclass(frozen=True)
class Skills:
    """The skills of an llm node. `hint` is what its model is told of them."""

    names: tuple[str, ...] = ()
    hint: str = ""

    @classmethod
    def of(cls, node: LLMNode, graph: GraphFile) -> Skills:
        """Return the skills of a node: those that it names, else those of its graph, unless they are turned off."""
        names = graph.enabled_skills if node.enabled_skills is None else node.enabled_skills
        if False in (graph.skills_enabled, node.skills_enabled) or not names:
            return cls()
        inject = [each.inject_skill_instructions for each in (node, graph)]
        told = next((each for each in inject if each is not None), True)
        hint = node.skill_instructions or graph.skill_instructions or ""
        return cls(tuple(names), hint if told else "")

    def tools(self, env: Mapping[str, str]) -> list[Tool]:
        """Return the tools for its model."""
        return [local_tool(spec, env) for spec in SKILL_TOOLS] if self.names else []
