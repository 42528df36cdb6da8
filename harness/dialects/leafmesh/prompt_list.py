"""The prompts of a mesh, as data for `harness prompts`.

Ids: `<agent>.prompt`, `<agent>.context_parts.<key>`, `<agent>.narration` and `manager.prompt`. Variables are
not replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.dialects.dialect import Prompt, Tunable
from harness.dialects.kit.manifest import mappings, only_document, plain_name, temperature, tool_lists
from harness.dialects.leafmesh.path_patterns import EACH, texts
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.source.models import describe

_PROMPTS: Final = (
    ("agents", EACH, "prompt"),
    ("agents", EACH, "context_parts", EACH),
    ("agents", EACH, "narration"),
    ("manager", "prompt"),
)


def prompts(request: LoadRequest) -> list[Prompt]:
    """Return the prompts in the order of the file.

    Raises:
        ManifestError: the file cannot be parsed, or `agents` is not a mapping.
    """
    document = only_document(request, what="a LeafMesh mesh", yaml="templated")
    agents = document.value.get("agents", {}) if isinstance(document.value, dict) else document.value
    if not isinstance(agents, dict):
        text = f"agents: expected a mapping, found {describe(agents)}"
        raise ManifestError(Problem("wrong-type", text, document.span(("agents",))))
    found = []
    for pattern in _PROMPTS:
        for path, text in texts(document.value, *pattern):
            id_ = [str(step) for step in (path[1:] if path[0] == "agents" else path)]
            found.append(Prompt(".".join(id_), id_[1], text, document.span(path)))
    return sorted(found, key=lambda prompt: (prompt.where.line, prompt.where.column))


_DEFAULT: Final = 0.1
"""The temperature of an agent that has none."""


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Return the tunable values, in file order. A missing temperature has the documented default.

    Raises:
        ManifestError: the file cannot be parsed.
    """
    document = only_document(request, what="a LeafMesh mesh", yaml="templated")
    written = document.value.get("agents") if isinstance(document.value, dict) else None
    agents = [
        (str(name), agent) for name, agent in mappings(written) if agent.get("agent_type", "llm") == "llm"
    ]
    found = [each for name, agent in agents for each in temperature(name, agent, ("agents", name), _DEFAULT)]
    lists = ((name, ("agents", name, "tools"), agent.get("tools")) for name, agent in agents)
    return [*found, *tool_lists(lists, plain_name)]
