"""Conditions that can be read, and are probably meant otherwise: what they read is nothing that there is.

A field that is not there is null, so such a condition holds for no output, without an error. What agents put out
beside their `yields` is not known; so a name is doubtful only if it is nearly another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from harness.dialects.leafmesh import conditions
from harness.dialects.leafmesh.conditions import INPUT, OUTPUT, Condition
from harness.dialects.leafmesh.document import Agent, HumanAgent, LLMAgent, Mesh
from harness.dialects.leafmesh.human_agent import output_of
from harness.dialects.leafmesh.llm_agent import schema_of
from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.source.suggest import nearest

_NEAR: Final = 0.8
_LIKE_ELSE: Final = ("else", "otherwise", "default")


def doubtful_conditions(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """A warning for each doubtful name in a condition."""
    path: DocumentPath
    for name, agent in mesh.agents.items():
        for at, call in enumerate(agent.can_call):
            condition, path = conditions.parse(call.condition), ("agents", name, "can_call", at, "condition")
            yield from _doubts(condition, (OUTPUT,), _known(agent), document, path)
    for at, entry in enumerate(mesh.entry_points):
        condition, path = (
            conditions.parse(entry.condition, of_input=True),
            ("entry_points", at, "condition"),
        )
        inputs = mesh.agents[entry.target].inputs
        yield from _doubts(condition, (OUTPUT, INPUT), list(inputs), document, path)


def _known(agent: Agent) -> list[str]:
    """The fields that an agent says it puts out."""
    known = list(agent.yields)
    if isinstance(agent, HumanAgent):
        known += output_of({}, "", "")
    if isinstance(agent, LLMAgent) and agent.response_format is not None:
        properties = schema_of(agent.response_format).get("properties")
        known += properties if isinstance(properties, dict) else []
    return known


def _doubts(
    condition: Condition,
    roots: Collection[str],
    known: Collection[str],
    document: Document,
    path: DocumentPath,
) -> Iterator[Problem]:
    where = document.span(path)
    for first, *rest in condition.paths:
        if first in known:
            continue
        if meant := nearest(first, roots if rest else (), cutoff=_NEAR) or nearest(
            first, known, cutoff=_NEAR
        ):
            text = f"the condition reads a field '{first}', which nothing declares"
            yield Problem("unknown-name", text, where, f"did you mean '{meant}'?", "warning")
        elif first in condition.words and (known or any(root in str(condition.text) for root in roots)):
            text = f"the condition compares with a field '{first}', which nothing declares"
            yield Problem("unknown-name", text, where, f"a text stands in quotes: '{first}'", "warning")
        elif condition.text in _LIKE_ELSE:
            text = f"the condition `{condition.text}` reads a field of that name, which nothing declares"
            hint = "every entry whose condition holds is called; one without a condition always is"
            yield Problem("unknown-name", text, where, hint, "warning")
