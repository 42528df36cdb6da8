"""The tool lists of call_llm nodes, for `harness evolve`. spec: `call_llm`. Manifests have no temperatures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.dialects.dialect import Tunable
from harness.dialects.kit.manifest import mappings, only_document, tool_lists
from harness.dialects.request import LoadRequest
from harness.source.document import DocumentPath


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Return the tool lists, named `<agent>.<node>`, with the tools of section `tools` as choices.

    Raises:
        ManifestError: the file cannot be parsed.
    """
    document = only_document(request, what="a sherma manifest", yaml="scalar-keys")
    manifest = document.value if isinstance(document.value, dict) else {}
    declared = [
        {key: tool[key] for key in ("id", "version") if key in tool}
        for _, tool in mappings(manifest.get("tools"))
    ]
    return tool_lists(_lists(manifest), _id, declared)


def _lists(manifest: dict[str, Any]) -> Iterator[tuple[str, DocumentPath, Any]]:
    for agent, definition in mappings(manifest.get("agents")):
        graph = definition.get("graph")
        for at, node in mappings(graph.get("nodes") if isinstance(graph, dict) else None):
            args = node.get("args")
            if node.get("type") == "call_llm" and isinstance(args, dict):
                path = ("agents", agent, "graph", "nodes", at, "args", "tools")
                yield f"{agent}.{node.get('name')}", path, args.get("tools")


def _id(tool: Any) -> str | None:
    id_ = tool.get("id") if isinstance(tool, dict) else None
    return id_ if isinstance(id_, str) else None
