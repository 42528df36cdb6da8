"""The data of a Loki graph agent, as its manifest declares it, and its prompts with those of the agents it spawns.

A caller gives the prompt. Scripts may set any key: those that templates need, and that nothing else can have set, are
theirs. spec: "initial_prompt", "State and Template Syntax", "script", "Structured output".

Ids of prompts are `<node>.instructions` and `<node>.prompt`. Those of a spawned agent begin with `<agent>/`, and an
ordinary agent has `<agent>/instructions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness.dialects.dialect import Prompt, Tunable
from harness.dialects.kit.declared import array_schema, first_read, object_schema
from harness.dialects.kit.manifest import mappings, only_document, tunables_in
from harness.dialects.kit.rules import reachable
from harness.dialects.loki import document as doc
from harness.dialects.loki.dialect import MANIFEST
from harness.dialects.loki.document import INITIAL_PROMPT, GraphFile
from harness.dialects.loki.model_nodes import CONFIG, sibling_folder
from harness.dialects.loki.nodes import AgentContext, valid_lengths
from harness.dialects.loki.routing import links
from harness.dialects.loki.templates import is_path, paths
from harness.dialects.loki.warnings import template_texts, written_keys
from harness.dialects.request import LoadRequest
from harness.graph.model import START, Declared, Schema
from harness.source.document import real_path
from harness.source.models import validate

_TEXT: Final[Schema] = {"type": "string"}
_STEP: Final = re.compile(r"\w+", re.ASCII)


def declared_data(context: AgentContext) -> Declared:
    """Return what the manifest of a graph agent declares."""
    nodes = context.graph.nodes
    return Declared(
        input=object_schema({INITIAL_PROMPT: _TEXT}),
        takes_text=True,
        output=_TEXT,
        results=dict(_results(context)),
        handles_faults=any(
            getattr(node, "fallback", None) is not None or getattr(node, "max_attempts", 1) > 1
            for node in nodes.values()
        ),
    )


def _results(context: AgentContext) -> Iterator[tuple[tuple[str, str], Schema]]:
    scripts = _script_outputs(context.graph)
    for id_, node in context.graph.nodes.items():
        match node:
            case doc.LLMNode(output_schema=Mapping() as schema):
                yield ("llm", id_), schema
            case doc.AgentNode(output_schema=Mapping() as schema):
                yield ("agent", node.agent), schema
            case doc.ScriptNode():
                keys = scripts[id_]
                targets = _named_targets(context, id_)
                yield ("script", id_), object_schema({**keys, **targets}, keys)
            case doc.InputNode(validation=str() as validation):
                yield ("human", id_), {**_TEXT, **valid_lengths(validation)}


def _named_targets(context: AgentContext, script: str) -> dict[str, Schema]:
    """Return the schema of the `_next` of a script: the nodes that its file names, if it names any."""
    try:
        text = context.scripts[script].read_text(encoding="utf-8", errors="replace")
    except (KeyError, OSError):
        return {}
    words = dict.fromkeys(re.findall(r"[\w-]+", text)) if "_next" in text else {}
    named = [id_ for id_ in context.graph.nodes if id_ in words]
    return {"_next": {"enum": named}} if named else {}


def _script_outputs(graph: doc.GraphFile) -> Mapping[str, Mapping[str, Schema]]:
    """Return the schemas of the keys that each script must set."""
    edges = [(START, graph.start), *links(graph)]
    reads: list[tuple[str, str]] = []
    below: dict[str, list[Sequence[str]]] = {}
    for id_, node in graph.nodes.items():
        for site in template_texts(id_, node):
            for path in filter(is_path, paths(site.text)):
                key, *rest = _STEP.findall(path)
                if not (site.is_update and key == node.scoped) and key not in graph.initial_state:
                    reads.append((id_, key))
                    below.setdefault(key, []).append(rest)
    writes = {
        id_: [*written_keys(node), *([node.as_] if isinstance(node, doc.MapNode) else ())]
        for id_, node in graph.nodes.items()
    }
    unset = [key for key in first_read(edges, reads, writes) if key != INITIAL_PROMPT]
    return {
        id_: {
            key: _shape(below[key])
            for at, key in reads
            if key in unset and at in reachable(id_, edges)
        }
        for id_ in graph.of(doc.ScriptNode)
    }  # fmt: skip


def _shape(steps: Sequence[Sequence[str]]) -> Schema:
    """Return the schema of a value that has all these paths; it is a text where they end."""
    parts: dict[str, list[Sequence[str]]] = {}
    for first, *rest in filter(None, steps):
        parts.setdefault(first, []).append(rest)
    if not parts:
        return _TEXT
    if all(part.isdigit() for part in parts):
        items: list[Any] = [rest for rests in parts.values() for rest in rests]
        return array_schema(_shape(items), minItems=max(map(int, parts)) + 1)
    return object_schema({part: _shape(rests) for part, rests in parts.items()})


# ------------------------------------------------------------------ prompts and tunables


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
    for node in graph.of(doc.AgentNode).values():
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
    return tunables_in("nodes", nodes, default)
