"""The tunables of a graph agent: the temperatures and tool lists of its llm nodes. spec: "llm"."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.dialect import Tunable
from harness.dialects.kit.manifest import mappings, only_document, plain_name, temperature, tool_lists
from harness.dialects.request import LoadRequest


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Return the tunables of the graph's own nodes. The default temperature is that of the graph.

    Raises:
        ManifestError: the file cannot be read.
    """
    document = only_document(request, what="a Loki graph agent", yaml="1.2")
    graph = document.value if isinstance(document.value, dict) else {}
    nodes = [(str(name), node) for name, node in mappings(graph.get("nodes")) if node.get("type") == "llm"]
    default = graph.get("temperature")
    if isinstance(default, bool) or not isinstance(default, int | float):
        default = None
    found = [tunable for name, node in nodes for tunable in temperature(name, node, ("nodes", name), default)]
    lists = ((name, ("nodes", name, "tools"), node.get("tools")) for name, node in nodes)
    return [*found, *tool_lists(lists, plain_name)]
