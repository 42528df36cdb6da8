"""Warnings about valid conditions that probably contain a mistake: they read a field that nothing declares.

A missing field is null, so such a condition is false for every output, without an error. An output may have
fields beyond the agent's `yields`; so only names are reported that resemble a known one or look like text
without quotes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from harness.dialects.leafmesh import conditions
from harness.dialects.leafmesh.conditions import INPUT, OUTPUT, Condition
from harness.dialects.leafmesh.document import Agent, HumanAgent, LLMAgent, Mesh
from harness.dialects.leafmesh.human_agent import output_of
from harness.dialects.leafmesh.llm_agent import schema_of
from harness.errors import Problem, Span
from harness.source.document import Document
from harness.source.suggest import nearest

_NEAR: Final = 0.8
_LIKE_ELSE: Final = ("else", "otherwise", "default")


def condition_warnings(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """Yield a warning for each suspicious name in a condition."""
    for name, agent in mesh.agents.items():
        for at, call in enumerate(agent.can_call):
            where = document.span(("agents", name, "can_call", at, "condition"))
            yield from _warnings_of(
                conditions.parse(call.condition), (OUTPUT,), _declared_output(agent), where
            )
    for at, entry in enumerate(mesh.entry_points):
        condition = conditions.parse(entry.condition, of_input=True)
        where = document.span(("entry_points", at, "condition"))
        yield from _warnings_of(condition, (OUTPUT, INPUT), mesh.agents[entry.target].inputs, where)


def _declared_output(agent: Agent) -> list[str]:
    """Return the output fields of an agent that are known before it runs."""
    known = list(agent.yields)
    if isinstance(agent, HumanAgent):
        known += output_of({}, "", "")
    if isinstance(agent, LLMAgent) and agent.response_format is not None:
        properties = schema_of(agent.response_format).get("properties")
        known += properties if isinstance(properties, dict) else []
    return known


def _warnings_of(
    condition: Condition, roots: Collection[str], known: Collection[str], where: Span
) -> Iterator[Problem]:
    """Yield the warnings for one condition.

    `roots` are the names that stand for the whole output or input, `known` are its declared fields.
    """
    for first, *rest in condition.paths:
        if first in known:
            continue
        near_root = nearest(first, roots, cutoff=_NEAR) if rest else None
        if meant := near_root or nearest(first, known, cutoff=_NEAR):
            text = f"the condition reads a field '{first}', which nothing declares"
            yield Problem("unknown-name", text, where, f"did you mean '{meant}'?", "warning")
        elif first in condition.words and (known or any(root in str(condition.text) for root in roots)):
            text = f"the condition compares with a field '{first}', which nothing declares"
            yield Problem("unknown-name", text, where, f"text is written in quotes: '{first}'", "warning")
        elif condition.text in _LIKE_ELSE:
            text = f"the condition `{condition.text}` reads a field of that name, which nothing declares"
            hint = "every entry whose condition holds is called; one without a condition always is"
            yield Problem("unknown-name", text, where, hint, "warning")
