"""The data of a Loki graph agent, as its manifest declares it.

A caller gives the prompt. Scripts may set any key: those that templates need, and that nothing else can have set, are
theirs. spec: "initial_prompt", "State and Template Syntax", "script", "Structured output".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.dialects.kit.declared import array_schema, first_read, object_schema
from harness.dialects.kit.rules import reachable
from harness.dialects.loki import document as doc
from harness.dialects.loki.document import INITIAL_PROMPT
from harness.dialects.loki.nodes import AgentContext, valid_lengths
from harness.dialects.loki.routing import links
from harness.dialects.loki.templates import is_path, paths
from harness.dialects.loki.warnings import template_texts, written_keys
from harness.graph.model import START, Declared, Schema

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
        for id_, node in graph.nodes.items()
        if isinstance(node, doc.ScriptNode)
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
