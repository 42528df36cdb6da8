"""The temperatures and tool lists of LLM agents, for `harness evolve`. spec: "LLM Agent Fields"."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.dialect import Tunable
from harness.dialects.kit.manifest import mappings, only_document, plain_name, temperature, tool_lists
from harness.dialects.request import LoadRequest

_DEFAULT = 0.1


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
