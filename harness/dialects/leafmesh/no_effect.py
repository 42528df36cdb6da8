"""Notes about fields of a mesh file that have no effect in a simulated run, for `harness validate`. NOTES 17."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from harness.dialects.kit.manifest import warning
from harness.dialects.leafmesh import conditions
from harness.dialects.leafmesh.agents import output_of
from harness.dialects.leafmesh.conditions import INPUT, OUTPUT, Condition
from harness.dialects.leafmesh.document import Agent, HumanAgent, LLMAgent, Mesh
from harness.dialects.leafmesh.llm_agent import schema_of
from harness.dialects.leafmesh.path_patterns import EACH, Match, matches
from harness.dialects.leafmesh.routing import reads_narrations
from harness.errors import Problem, Span
from harness.source.display import nearest
from harness.source.document import Document, DocumentPath

_FIELDS: Final[Mapping[Sequence[Any], Sequence[str]]] = {
    (): ("debug", "log_level", "environment", "redis", "api", "mesh", "data_structures"),
    ("manager",): (
        *("domain", "coordination_rules", "chain_completion_timeout", "health_check_interval", "knowledge"),
        *("human_input_rules", "timeout_rules", "workflow_pause_rules", "human_response_rules"),
    ),
    ("agents", EACH): (
        *("wake_up", "reasoning", "thinking", "thinking_budget", "enable_prompt_caching"),
        *("optimization_strategy", "human_context_template", "require_human_confirmation"),
        *("human_escalation_triggers", "operator_ids", "is_human_powered"),
    ),
    ("agents", EACH, "memory"): ("cross_session",),
    ("agents", EACH, "webhook_config"): ("inbound_endpoint", "inbound_auth_token", "response_mapping"),
    ("agents", EACH, "connector_config"): ("poll_interval", "max_poll_seconds"),
}
_VALUES: Final[Mapping[Sequence[Any], Sequence[str]]] = {
    ("manager", "routing", "mode"): ("learning",),
    ("agents", EACH, "memory", "strategy"): ("relevance", "hybrid"),
}
"""Fields for which these values behave like the default."""
_NEEDED: Final[Mapping[str, tuple[str, Any, str]]] = {
    "max_concurrent": ("parallel", False, "parallel: true"),
    "wait_for_timeout": ("wait_for", None, "wait_for"),
    "enforce_yields": ("yields", None, "yields"),
    "enforce_yields_retry": ("enforce_yields", False, "enforce_yields: true"),
    "fallback_response": ("fallback_on_timeout", True, "fallback_on_timeout: true"),
    "memory_limit": ("memory", False, "memory"),
}
"""Agent fields that count only together with another: its name, its default, and the required setting."""


def no_effect_notes(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """Yield a note for each section and field without effect, at its first occurrence."""
    for section, keys in _FIELDS.items():
        for key in keys:
            yield from _note(document, [p for p in matches(document.value, *section, key) if p.value])
    for pattern, values in _VALUES.items():
        for value in values:
            found = [p for p in matches(document.value, *pattern) if p.value == value]
            yield from _note(document, found, f": {value}")
    for path, agent in matches(document.value, "agents", EACH):
        for key, (needed, default, written) in _NEEDED.items() if isinstance(agent, dict) else ():
            if agent.get(key) and not agent.get(needed, default):
                yield _no_effect(document, (*path, key), f"without `{written}`")
    for path, config in matches(document.value, "agents", EACH, "connector_config"):
        yield from _connector_notes(document, path, config)
    yield from _manager_notes(mesh, document)
    for name, one in mesh.agents.items():
        if one.enabled_knowledge is not None and not isinstance(one, LLMAgent):
            why = "in a simulated run: only llm agents look it up"
            yield _no_effect(document, ("agents", name, "knowledge"), why)


def _connector_notes(document: Document, path: DocumentPath, config: Any) -> Iterator[Problem]:
    """Yield notes for keys of the other mode or transport. spec: "Common connector_config fields", "mcp"."""
    if not isinstance(config, dict):
        return
    needed = {"callback_timeout": ("mode", "sync", "callback")}
    if "tool_name" in config:
        needed |= dict.fromkeys(("url", "auth_token"), ("transport", "stdio", "http"))
        needed |= dict.fromkeys(("command", "args", "env"), ("transport", "stdio", "stdio"))
    for key, (field, default, value) in needed.items():
        if key in config and config.get(field, default) != value:
            yield _no_effect(document, (*path, key), f"without `{field}: {value}`")


def _manager_notes(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """Yield notes for keys that need an enabled manager or its Summarizer. spec: "Narration Routing"."""
    narrating = [("agents", name, "narration") for name, agent in mesh.agents.items() if agent.narration]
    if not reads_narrations(mesh):
        needed = "manager.can_intervene" if mesh.manager.enabled else "manager.enabled"
        yield from (_no_effect(document, path, f"without `{needed}: true`") for path in narrating)
    if not mesh.manager.enabled and mesh.manager.escalation is not None:
        yield _no_effect(document, ("manager", "escalation"), "without `manager.enabled: true`")
    if not narrating or not reads_narrations(mesh):
        for key in ("prompt", "model"):
            if key in mesh.manager.model_fields_set:
                why = "without a `narration` of an agent for it to read"
                yield _no_effect(document, ("manager", key), why)


def _no_effect(document: Document, path: DocumentPath, why: str) -> Problem:
    what = f"'{path[-1]}' of agent '{path[1]}'" if path[0] == "agents" else f"'{path[0]}.{path[-1]}'"
    return Problem("no-effect", f"{what} changes nothing {why}", document.key_span(path), severity="note")


def _note(document: Document, found: Sequence[Match], value: str = "") -> Iterator[Problem]:
    if found:
        path = found[0].path
        names = [str(step) for step in path]
        shown = ".".join(names[2:] if names[0] == "agents" else names) + value
        others = f", here and at {len(found) - 1} more" if len(found) > 1 else ""
        text = f"'{shown}' changes nothing in a simulated run{others}"
        yield Problem("no-effect", text, document.key_span(path), severity="note")


_NEAR: Final = 0.8
_LIKE_ELSE: Final = ("else", "otherwise", "default")


def condition_warnings(mesh: Mesh, document: Document) -> Iterator[Problem]:
    """Yield a warning for each suspicious name in a condition."""
    for name, agent in mesh.agents.items():
        for at, call in enumerate(agent.can_call):
            condition = conditions.parse(call.condition)
            where = document.span(("agents", name, "can_call", at, "condition"))
            yield from _warnings_of(condition, (OUTPUT,), _declared_output(agent), where)
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
            yield warning("unknown-name", text, where, f"did you mean '{meant}'?")
        elif first in condition.words and (known or any(root in str(condition.text) for root in roots)):
            text = f"the condition compares with a field '{first}', which nothing declares"
            yield warning("unknown-name", text, where, f"text is written in quotes: '{first}'")
        elif condition.text in _LIKE_ELSE:
            text = f"the condition `{condition.text}` reads a field of that name, which nothing declares"
            hint = "every entry whose condition holds is called; one without a condition always is"
            yield warning("unknown-name", text, where, hint)
