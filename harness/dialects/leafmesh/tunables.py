"""The temperatures and lists of tools of LLM agents. spec: "LLM Agent Fields"."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.kit.manifest import only_document
from harness.dialects.kit.tuning import mappings, plain_name, temperature, tool_lists
from harness.dialects.request import LoadRequest
from harness.dialects.tunable import Tunable

_DEFAULT = 0.1


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Those of the agents, in the order of the file. One that writes no temperature has the document's default.

    Raises:
        ManifestError: the file cannot be read.
    """
    document = only_document(request, what="a LeafMesh mesh", yaml="templated")
    written = document.value.get("agents") if isinstance(document.value, dict) else None
    agents = [
        (str(name), agent) for name, agent in mappings(written) if agent.get("agent_type", "llm") == "llm"
    ]
    found = [each for name, agent in agents for each in temperature(name, agent, ("agents", name), _DEFAULT)]
    lists = ((name, ("agents", name, "tools"), agent.get("tools")) for name, agent in agents)
    return [*found, *tool_lists(lists, plain_name)]
