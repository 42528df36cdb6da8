"""A valid workflow, which the tests change, and one with a subgraph."""

from __future__ import annotations

WORKFLOW = """\
version: "1.0"
start_at: sort
end_at: [file, bin]
interrupt_before: [file]
interrupt_after: [press]
params: {paper: thin, model: {provider: openai, name: gpt-4o-mini}}
state_schema:
  leaf: {type: messages}
  sheets: {type: list, reducer: add}
nodes:
  - {id: sort, handler: sort_leaf, retry: {max_attempts: 2, base_delay_seconds: 1}, timeout_seconds: 9}
  - {id: press, handler: press_leaf, fallback: bin}
  - {id: name, handler: llm, params: {prompt_ref: "prompts/names.yaml#latin", output_key: leaf}}
  - {id: file, handler: file_leaf, fallback: name}
  - {id: bin, handler: discard}
edges:
  - {source: sort, target: press, condition: whole}
  - {source: sort, target: bin, condition: torn}
  - {source: press, target: name, fan_out: {items_key: sheets, item_key: sheet}}
  - {source: name, target: file}
"""
PROMPTS = {
    "prompts/names.yaml": """\
_meta: {version: 2}
latin: {system: You know plants., user: 'Name {leaf}'}
plain: Hello
"""
}
EDGES = "edges:\n"


def changed(*changes: tuple[str, str]) -> str:
    """Return the valid workflow with texts in it replaced."""
    text = WORKFLOW
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


PARENT = """\
version: "1.0"
start_at: grow
end_at: [grow]
nodes: [{id: grow, handler: subgraph, params: {workflow_ref: REF}}]
edges: []
"""


def parent(reference: str) -> str:
    return PARENT.replace("REF", reference)
