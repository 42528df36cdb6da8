"""Warnings about undeclared state fields that nodes write or read. spec: "State".

sherma drops updates of such a field, and reading it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.dialects.sherma import document as doc
from harness.dialects.sherma.expressions import cel_expressions
from harness.dialects.sherma.graph_document import Node
from harness.dialects.sherma.section import INTERNAL_STATE_KEY
from harness.errors import ExpressionError, Problem, Span
from harness.expressions.cel import compile as compile_cel
from harness.expressions.cel import written_keys
from harness.graph.model import Graph
from harness.source.document import Document, DocumentPath
from harness.source.suggest import did_you_mean

MESSAGE_WRITERS = ("tool_node", "call_agent", "load_skills")
"""Node types that write `messages` and do not require the field."""


def declared_fields(agent: doc.Agent) -> list[str]:
    """Return the fields that a node may write."""
    return [*(field.name for field in agent.state.fields_), INTERNAL_STATE_KEY]


def undeclared_fields(agent: doc.Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Yield warnings about undeclared fields in the manifest. `path` is that of the graph."""
    declared = declared_fields(agent)

    def warning(text: str, field: str, where: Span) -> Problem:
        return Problem("undeclared-state", text, where, _hint(field, agent), "warning")

    for at, node in enumerate(agent.graph.nodes):
        for field, below in _written_fields(node):
            if field not in declared:
                place = (*path, "nodes", at, *below)
                where = document.key_span(place) if below[-1] == field else document.span(place)
                yield warning(dropped_text(node.name, field), field, where)
    for below, text in cel_expressions(agent):
        for field in _read_fields(text):
            if field not in declared:
                text = f"this expression reads '{field}', which the state does not declare"
                yield warning(text, field, document.span((*path, *below)))


def dropped_text(node: str, field: str) -> str:
    """Return the text of the warning that an update of an undeclared field is dropped."""
    return f"node '{node}' writes '{field}', which the state does not declare: it is dropped"


def dropped_warning(node: str, field: str, agent: doc.Agent, graph: Graph) -> str:
    """Return the warning of a run: the one reported at load if there was one, else with the node's location."""
    text = dropped_text(node, field)
    place = next((known.span for known in graph.nodes if known.name == node), None)
    found = Problem("undeclared-state", text, place, _hint(field, agent), "warning")
    return next((known for known in graph.warnings if known.message == text), found).one_line


def _hint(field: str, agent: doc.Agent) -> str:
    return did_you_mean(field, [field.name for field in agent.state.fields_])


def _written_fields(node: Node) -> Iterator[tuple[str, DocumentPath]]:
    """Yield the fields that a node writes, with their paths below the node."""
    if node.type in MESSAGE_WRITERS:
        yield "messages", ("name",)
    for section in ("state_updates", "values"):
        for field in getattr(node.args, section, None) or ():
            yield field, ("args", section, field)
    if node.type == "data_transform":
        try:
            for field in sorted(written_keys(node.args.expression)):
                yield field, ("args", "expression")
        except ExpressionError:
            return  # reported by expression_warnings


def _read_fields(text: str) -> list[str]:
    try:
        return sorted(field for name, field in compile_cel(text, null_as_false=True).reads if name == "state")
    except ExpressionError:
        return []
