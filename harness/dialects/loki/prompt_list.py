"""The prompts of a graph agent, and of the agents it spawns, as data.

Ids are `<node>.instructions` and `<node>.prompt`. Those of a spawned agent begin with `<agent>/`, and an ordinary
agent has `<agent>/instructions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.dialects.dialect import Prompt, Tunable
from harness.dialects.kit.manifest import mappings, only_document, plain_name, temperature, tool_lists
from harness.dialects.loki.dialect import MANIFEST
from harness.dialects.loki.document import AgentNode, GraphFile
from harness.dialects.loki.model_nodes import CONFIG, sibling_folder
from harness.dialects.request import LoadRequest
from harness.source.document import real_path
from harness.source.models import validate


def prompts(request: LoadRequest) -> list[Prompt]:
    """Return the prompts in the order of the nodes, then those of the agents they spawn, each agent once.

    Raises:
        ManifestError: one of the manifests is malformed.
    """
    return list(_of_graph(request, "", {real_path(request.path).parent}))


def _of_graph(request: LoadRequest, prefix: str, seen: set[Path]) -> Iterator[Prompt]:
    document = only_document(request, what="a Loki graph agent", yaml="1.2")
    graph = validate(GraphFile, document)
    for id_, node in graph.nodes.items():
        for field in ("instructions", "prompt"):
            if (text := getattr(node, field, None)) is not None:
                yield Prompt(f"{prefix}{id_}.{field}", field, text, document.span(("nodes", id_, field)))
    for node in graph.nodes.values():
        if isinstance(node, AgentNode):
            folder = sibling_folder(request, node.agent)
            if folder is not None and folder not in seen:
                seen.add(folder)
                yield from _of_child(request, folder, node.agent, seen)


def _of_child(request: LoadRequest, folder: Path, agent: str, seen: set[Path]) -> Iterator[Prompt]:
    if (folder / MANIFEST).is_file():
        yield from _of_graph(request.for_manifest(folder / MANIFEST, None), f"{agent}/", seen)
    elif (folder / CONFIG).is_file():
        document = request.read(folder / CONFIG, yaml="1.2")
        if isinstance(document.value, dict) and isinstance(document.value.get("instructions"), str):
            span = document.span(("instructions",))
            yield Prompt(f"{agent}/instructions", "instructions", document.value["instructions"], span)


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
