"""Warnings about CEL expressions that will fail; sherma reports them only when they are evaluated. spec: CEL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness.dialects.sherma.agent import Agent
from harness.dialects.sherma.expressions import cel_expressions
from harness.errors import ExpressionError, Problem
from harness.expressions.cel import Expression
from harness.expressions.cel import compile as compile_cel
from harness.source.document import Document, DocumentPath
from harness.source.suggest import did_you_mean

_RESPONSE: Final = "llm_response"
_WORDS: Final = re.compile(r"[A-Za-z][\w ,.;:!?'’-]{0,60}")
"""Matches invalid expressions that are probably text without quotes."""
_NAMES: Final = re.compile(r"\b(state|prompts|llms|skills|llm_response)\b")


def expression_warnings(agent: Agent, document: Document, path: DocumentPath) -> Iterator[Problem]:
    """Yield the warnings for all expressions of an agent. `path` is that of its graph."""
    variables = ["state", *agent.variables]
    if agent.remote_skills and "skills" not in variables:
        variables.append("skills")
    for below, text in cel_expressions(agent.definition):
        place = (*path, *below)
        try:
            expression = compile_cel(text, null_as_false=True)
        except ExpressionError as error:
            message = f"this expression will fail when it is evaluated: {error}"
            yield Problem("cel-syntax", message, document.span(place), _quote_hint(text), "warning")
            continue
        try:
            expression.check_names([*variables, _RESPONSE] if "state_updates" in below else variables)
        except ExpressionError as error:
            where = document.span_within(place, error.line, error.column)
            message = f"this expression refers to a name that does not exist: {error}"
            yield Problem("cel-name", message, where, _name_hint(expression, agent), "warning")
        yield from _check_declared(expression, agent, document, place)


def _quote_hint(text: str) -> str:
    """Return a hint about missing quotes.

    spec: "String literals must be double-quoted inside the YAML string".
    """
    words = text.strip()
    is_text = _WORDS.fullmatch(words) and not _NAMES.search(words)
    return f"text needs quotes of its own: '\"{words}\"'" if is_text else ""


def _name_hint(expression: Expression, agent: Agent) -> str:
    """Return a hint for an unknown name. spec: "always accessed through the state prefix"."""
    for field in agent.definition.state.fields_:
        if field.name in expression.names and field.name not in agent.variables:
            return f"fields are read from the state: state.{field.name}"
    if _RESPONSE in expression.names:
        return f"'{_RESPONSE}' is available only in the 'state_updates' of a call_llm node"
    if "skills" in expression.names and not agent.manifest.skills:
        return "'skills' is available only if the manifest declares any"
    reference = expression.reference
    return _quote_hint(expression.source) if reference is not None and len(reference) == 1 else ""


def _check_declared(
    expression: Expression, agent: Agent, document: Document, place: DocumentPath
) -> Iterator[Problem]:
    """Yield references to undeclared items in `prompts["id"]`, `llms["id"]` and `skills["id"]`."""
    declared = {
        "prompts": [prompt.id for prompt in agent.manifest.prompts],
        "llms": [llm.id for llm in agent.manifest.llms],
        "skills": [skill.id for skill in agent.manifest.skills],
    }
    for section, id_ in sorted(expression.reads):
        if declared.get(section) and id_ not in declared[section]:
            message = f"this expression refers to a name that does not exist: '{id_}' is not in '{section}'"
            hint = did_you_mean(id_, declared[section])
            yield Problem("cel-name", message, document.span(place), hint, "warning")
